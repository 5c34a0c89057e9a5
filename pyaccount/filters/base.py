"""What filters have in common: their questions, how an entry is read, and sums that are rounded outward.

An entry is a document, or the certificate of one. Its cost follows from the rounds of its plan, which bound the mechanism given
everything that was released before; a certificate adds nothing to that, except for a filter in (ε, δ) terms. If records are of
several kinds, as in disjoint parts, the cost is that of the worst kind of each phase.

Every double is a fraction, so that a sum is computed exactly and rounded once: 0.1 added ten times is rounded ten times,
each time by less than one unit in the last place, and a sum that is a double itself is not moved at all. Sums of exponentials are
taken by their logarithms, which neither overflow nor lose a small one beside 1.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

from pyaccount.certificate.certificate import Certificate
from pyaccount.document.document import Document
from pyaccount.document.mechanisms.base import rounded_up
from pyaccount.document.resting import rests_on
from pyaccount.document.tree import Node
from pyaccount.errors import DocumentError, Path, Problem
from pyaccount.plan.compiled import BOUNDS_OF_THE_GUARANTEE, Instance
from pyaccount.plan.rounds import alternatives_of, largest_loss
from pyaccount.profiles import GuaranteesProfile, ProfileKind, Rounds
from pyaccount.rounding import up


def sum_up(*numbers: float) -> float:
    """Return the least double that is at least the sum of non-negative numbers, infinity among them."""
    if math.inf in numbers:
        return math.inf
    return rounded_up(sum(map(Fraction, numbers), Fraction(0)))


def fits(budget: Fraction | float, *numbers: float) -> bool:
    """Return whether the exact sum of non-negative numbers is at most the budget."""
    return math.inf not in numbers and sum(map(Fraction, numbers), Fraction(0)) <= Fraction(budget)


def left_down(budget: Fraction | float, spent: float) -> float:
    """Return the largest double that is at most budget − spent, and at least 0."""
    if spent == math.inf:
        return 0.0
    exact = Fraction(budget) - Fraction(spent)
    return max(0.0, -rounded_up(-exact))


#: What may be released: a document, or its certificate.
Entry = "Document | Certificate"


class Filter(ABC):
    """A budget, and the rule by which entries that are chosen adaptively may spend it.

    `spent` and costs are tuples of the same length, one number for each of `terms`. All are upper bounds.
    """

    #: What kind of filter it is, in words.
    called: ClassVar[str]

    @property
    @abstractmethod
    def terms(self) -> tuple[str, ...]:
        """Return what the numbers of a cost are, in words."""

    @property
    @abstractmethod
    def nothing(self) -> tuple[float, ...]:
        """Return what is spent before the first entry: 0 in every term."""

    @abstractmethod
    def cost(self, entry: Document | Certificate) -> tuple[float, ...]:
        """Return an upper bound on what an entry costs, in the filter's terms.

        Raises `DocumentError` with the slug `no-valid-bound` for an entry that has no bound in these terms, with
        `unfilled-blank` for a document in which a value of the mechanism is still blank, and `CertificateError` for a
        certificate whose claim does not hold.
        """

    def after(self, spent: tuple[float, ...], cost: tuple[float, ...]) -> tuple[float, ...]:
        """Return what is spent after another entry, rounded up."""
        return tuple(map(sum_up, spent, cost))

    @abstractmethod
    def admits(self, spent: tuple[float, ...], cost: tuple[float, ...]) -> bool:
        """Return whether another entry may be released: whether the budget holds with it.

        `spent` may be infinite, as after an entry that was released although no bound was known; then nothing is admitted.
        """

    @abstractmethod
    def remaining(self, spent: tuple[float, ...]) -> tuple[float, ...]:
        """Return what is left, rounded down; 0 where more than the budget was spent."""

    @abstractmethod
    def phase(self) -> dict[str, Any]:
        """Return the body of a document whose pair is the filter's whole budget: a `stated` mechanism.

        If entries are costed for groups of records, the budget is that of a group; a document for groups would count the
        group a second time, which is an upper bound, but not a useful one.
        """

    def mapping(self) -> dict[str, Any]:
        """Return the budget as `filter_of` reads it."""
        return {key: value for key, value in self.phase()["mechanism"].items() if key != "kind"}


class AdditiveFilter(Filter):
    """A filter whose rule is that no sum of costs exceeds its limit."""

    @property
    @abstractmethod
    def limits(self) -> tuple[Fraction, ...]:
        """Return the budget in each term, exactly."""

    @property
    def nothing(self) -> tuple[float, ...]:
        """Return what is spent before the first entry: 0 in every term."""
        return (0.0,) * len(self.limits)

    def admits(self, spent: tuple[float, ...], cost: tuple[float, ...]) -> bool:
        """Return whether the sums with another entry are within the limits, in every term."""
        return all(fits(limit, before, more) for limit, before, more in zip(self.limits, spent, cost, strict=True))

    def remaining(self, spent: tuple[float, ...]) -> tuple[float, ...]:
        """Return what is left in each term, rounded down; 0 where more than the budget was spent."""
        return tuple(map(left_down, self.limits, spent))


class RoundsOfKind(NamedTuple):
    """The rounds of a phase for one kind of record, in both directions."""

    remove: tuple[Rounds, ...]
    add: tuple[Rounds, ...]

    def sides(self) -> tuple[tuple[tuple[ProfileKind, int], ...], ...]:
        """Return the profiles with their counts of each direction; once if both directions have the same."""
        sides = (self.remove,) if self.remove == self.add else (self.remove, self.add)
        return tuple(tuple(flattened(side)) for side in sides)

    def pure(self, part: ProfileKind) -> ProfileKind | None:
        """Return the profile of pure ε for an ε of this mechanism in both directions; None if none is known.

        ε is the larger one of the largest losses of the profile and of its reversal. A bound whose reversal is not known has
        another one as its partner in the other direction. Which one is not recorded, so the largest loss of all such profiles is
        used; a phase usually has one.
        """
        reversal = part.reversed()
        both = [part, reversal] if reversal is not None else self._without_reversal()
        losses = [_at_most(one) for one in both]
        known = [loss for loss in losses if loss is not None]
        return GuaranteesProfile(((max(known), 0.0),)) if len(known) == len(losses) else None

    def _without_reversal(self) -> list[ProfileKind]:
        """Return the profiles of both directions whose reversals are not known."""
        return [other for side in self.sides() for other, _ in side if other.reversed() is None]


def _at_most(part: ProfileKind) -> float | None:
    """Return an upper bound on the loss of a profile in its direction; None if none is known."""
    loss = largest_loss((Rounds(part, 1),))
    return None if loss is None else loss.at_most


@dataclass(frozen=True, slots=True)
class PricedPhase:
    """The rounds of one phase of an entry, for each kind of record: in direction remove, and in direction add."""

    document: Document
    node: Node
    kinds: tuple[RoundsOfKind, ...]

    def compositions(self) -> Iterator[tuple[RoundsOfKind, tuple[tuple[ProfileKind, int], ...]]]:
        """Yield each composition whose worst is the cost: for every kind of record, the profiles of each direction."""
        for kind in self.kinds:
            for side in kind.sides():
                yield kind, side

    @property
    def path(self) -> Path:
        """Return the place that a refusal of this phase names."""
        if self.node.key != "training":
            return self.node.at(self.node.key)
        return self.node.at("sampler", "kind")

    def worst(
        self, price: Callable[[ProfileKind, RoundsOfKind], Fraction | None], reason: Callable[[ProfileKind], str]
    ) -> Fraction:
        """Return the largest sum of the prices of the profiles, over all kinds of records and both directions.

        Raises `DocumentError` with `reason` for a profile without a price.
        """
        worst = Fraction(0)
        for kind, side in self.compositions():
            total = Fraction(0)
            for part, count in side:
                known = price(part, kind)
                if known is None:
                    raise self.refused(f"no bound is implemented for {reason(part)}")
                total += count * known
            worst = max(worst, total)
        return worst

    def refused(self, message: str, allowed: str | None = None) -> DocumentError:
        """Return the refusal of this phase."""
        return DocumentError([self.document.problem("no-valid-bound", self.path, message, allowed=allowed)])


def document_of(entry: Document | Certificate) -> Document:
    """Return the document of an entry, with the certified values in its blanks. Raises as `Filter.cost`."""
    if not isinstance(entry, Certificate):
        return entry
    from pyaccount.certificate.claimed import claimed_document

    return claimed_document(entry, "entry of a filter")


def instance_of(document: Document) -> Instance:
    """Return the plan of an entry. Raises `DocumentError` for a blank of the mechanism, and for what no theorem covers."""
    from pyaccount.plan.compiling import compile_document

    unknown: list[Problem] = []
    remedy = "certify the document and give its certificate, which has the value"
    if document.blank is not None and document.blank[-1] not in BOUNDS_OF_THE_GUARANTEE:
        message = f"what is released must be known, but this value is still blank: {remedy}"
        unknown.append(document.problem("unfilled-blank", document.blank, message, allowed="a value"))
    if document.choices or document.searched:
        message = f"what is released must be known, but the matrix or the sampler is still to be chosen: {remedy}"
        unknown.append(document.problem("unfilled-blank", document.phases[0].at("matrix"), message, allowed="a value"))
    failure = rests_on(document.to_mapping()).failure_probability
    if failure > 0.0:
        message = (
            f"no bound is implemented for a guarantee that is false with probability {up(failure)}: a filter promises what holds "
            "for certain. State a guarantee that is proven, or verified by a test"
        )
        unknown.append(
            document.problem("no-valid-bound", ("privacy",), message, allowed="a proven or verified guarantee")
        )
    if unknown:
        raise DocumentError(unknown)
    return compile_document(document).at()


def released(entry: Document | Certificate, instead: str) -> Iterator[PricedPhase]:
    """Yield the rounds of each phase of an entry; `instead` says what to do with one that has none. Raises as `Filter.cost`."""
    document = document_of(entry)
    instance = instance_of(document)
    for node, bounds in zip(instance.document.phases, instance.parts(), strict=True):
        if bounds is None:
            nothing = PricedPhase(instance.document, node, ())
            raise nothing.refused(
                f"no bound is implemented for {node.sampler_kind} sampling in this filter: the whole run is analysed by "
                f"drawing samples of its loss, or by moments in one direction, which bound no divergence. {instead}"
            )
        kinds = tuple(RoundsOfKind(kind["remove"].upper, kind["add"].upper) for kind in alternatives_of(bounds))
        yield PricedPhase(instance.document, node, kinds)


def flattened(rounds: tuple[Rounds, ...]) -> Iterator[tuple[ProfileKind, int]]:
    """Yield each profile with how often it is composed; those inside a composed profile one by one."""
    for item in rounds:
        yield from ((inner, item.count * count) for inner, count in item.profile.flat())


def words_of(part: ProfileKind, node: Node) -> str:
    """Return what has no bound, in words for a refusal."""
    return part.called or f"{node.sampler_kind} sampling"


def log_sum(logarithms: Sequence[float]) -> float:
    """Return ln Σ e^x."""
    most = max(logarithms)
    if not math.isfinite(most):
        return most
    return most + math.log(math.fsum(math.exp(one - most) for one in logarithms))

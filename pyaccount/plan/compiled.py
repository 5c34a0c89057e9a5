"""A document with its theorems, as data: what is known before any ε or δ is computed. The blank is its parameter."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

from pyaccount.document.document import Document
from pyaccount.document.tree import TrainingNode
from pyaccount.errors import Path, path_text
from pyaccount.plan.alike import MANY, grouped_alike
from pyaccount.plan.common import length_text
from pyaccount.plan.disjoint import MOST_KINDS
from pyaccount.plan.protection import Protection, RunCase
from pyaccount.plan.recursion import RecursionTheorem, in_effect, recursion_bounds
from pyaccount.plan.rounds import Alternative, DirectedBounds, combine
from pyaccount.plan.sampled import SampledMechanism, together
from pyaccount.plan.schedule_values import kinds_of
from pyaccount.plan.theorem import Reduction, Theorem
from pyaccount.reading.fields import NOISE_BLANKS
from pyaccount.risk.budgets import budget_of
from pyaccount.rounding import shortest

#: The relative width of the answer's interval if the document states none.
COMPOSED_TOLERANCE, SAMPLED_TOLERANCE = 1e-4, 1e-2
#: The same for long schedules, whose nearly alike rounds are bounded by the worst of them.
LONG_TOLERANCE = 5e-3

#: Blanks that are a bound of the guarantee: with these the mechanism itself is fully known.
BOUNDS_OF_THE_GUARANTEE = ("epsilon", "delta")


@dataclass(frozen=True, slots=True)
class Considered:
    """A candidate of a choice, with the pilot's estimate of the noise multiplier that it needs and of its errors."""

    matrix: str
    bands: int
    noise_multiplier: float
    prefix_sum_mse: float
    #: The error that is compared: the squared error under the workload; `prefix_sum_mse` if the document has no workload.
    squared_error: float
    #: The sampler's fields that were to be chosen, by key. Batches may then differ in size, so `relative_error` is compared: the
    #: squared error over the square of the share of the records in a batch, which is the error of means up to a common factor.
    chosen: tuple[tuple[str, int], ...] = ()
    relative_error: float | None = None

    @property
    def compared(self) -> float:
        """Return the error by which candidates are compared; it is the same one for all candidates of a choice."""
        return self.squared_error if self.relative_error is None else self.relative_error


@dataclass(frozen=True, slots=True)
class Proposed:
    """A matrix with the noise multiplier that it needs and the resulting errors. All numbers are estimates."""

    noise_multiplier: float
    prefix_sum_mse: float
    #: The error to be minimised: the squared error under the workload; `prefix_sum_mse` if the document has no workload.
    squared_error: float


@dataclass(frozen=True, slots=True)
class Searched:
    """The result of a search for the matrix of a plan: estimates, none of which enters the guarantee."""

    #: The matrix that the search began with, the better of the two that are known without sampling, and the one that it found.
    start: Proposed
    found: Proposed
    #: The norm of the gradient of the squared error's logarithm at the matrix found, in the parameters of the search, estimated
    #: from samples that the matrix was not fitted to; and the norm of the standard errors of its components.
    gradient_norm: float
    gradient_error: float
    rounds: int
    #: A note on how the search ended; None if it ended because nothing more could be gained.
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Instance:
    """A plan at a value of its blank: the mechanism with all of its numbers. `CompiledDocument.at` makes it."""

    #: The document with its blank filled, unless the blank is ε or δ.
    document: Document
    #: The theorem of each phase of this document.
    theorems: tuple[Theorem, ...]

    @classmethod
    def of(cls, document: Document, theorems: tuple[Theorem, ...]) -> Instance:
        """Return the theorems for the phases of a document of the same shape."""
        asked = Protection.of(document)
        return cls(document, tuple(one.on(phase, asked) for one, phase in zip(theorems, document.phases, strict=True)))

    @property
    def merges(self) -> bool:
        """Whether Gaussian mechanisms are composed in closed form."""
        return self.document.accounting.method == "auto"

    @property
    def reductions(self) -> tuple[Reduction, ...]:
        """Return the theorems in words, with this value of the blank, and with a recursion only where it bounds these numbers."""
        return worded(in_effect(self.document.privacy, self.theorems))

    def parts(self) -> list[DirectedBounds | None]:
        """Return the rounds of each phase; None for a sampled one. Raises `DocumentError` for numbers without bound."""
        return [None if one.sampled else one.bounds() for one in self.theorems]

    def bounds(self, width: float | None = None) -> DirectedBounds:
        """Return the rounds to compose, of a plan that is not sampled.

        Given a `width`, nearly alike rounds of long schedules are bounded by the worst of them. This makes the interval
        of ε wider by about this fraction of ε: see `pyaccount.plan.alike`.
        """
        exact = self.composed()
        sharper = recursion_bounds(self.document.privacy, self.theorems, exact, merge_gaussians=self.merges)
        if sharper is not None:
            return sharper
        return exact if width is None else grouped_alike(exact, width)

    @property
    def recursive(self) -> bool:
        """Whether a recursion over rounds bounds some phases from above."""
        found = in_effect(self.document.privacy, self.theorems)
        return any(isinstance(one, RecursionTheorem) and one.once for one in found)

    def composed(self) -> DirectedBounds:
        """Return the rounds to compose, none of which are analysed by a recursion (`pyaccount.plan.recursion`)."""
        return self._combined(one.bounds() for one in self.theorems)

    def composed_bounds(self) -> DirectedBounds | None:
        """Return the rounds of the phases that are not sampled; None if all are sampled."""
        parts = [part for part in self.parts() if part is not None]
        return self._combined(parts) if parts else None

    def alternatives(self) -> tuple[Alternative, ...]:
        """Return the name and the rounds of each kind of record, the rest of the document included.

        A kind is a part, a stratum, or a stratum in a part. Empty for documents all of whose records are of one kind. Strata
        are left out if there would be very many kinds, and beside phases that are sampled.
        """
        strata, sampled = _strata_of(self.document), any(one.sampled for one in self.theorems)
        if sampled or len(strata) < 2:
            return () if sampled else self._of_parts()
        kinds: list[Alternative] = []
        for stratum in strata:
            filled = Instance.of(stratum.document, self.theorems)
            inside = filled._of_parts() or (Alternative("", filled.bounds()),)
            kinds += [Alternative(", and ".join(filter(None, (stratum.name, one.name))), one.bounds) for one in inside]
            if len(kinds) > MOST_KINDS:
                return self._of_parts()
        return tuple(kinds)

    def _of_parts(self) -> tuple[Alternative, ...]:
        """Return the kinds of records by the parts that they are in; empty if there are no disjoint parts."""
        if not any(one.of_kinds for one in self.theorems):
            return ()
        kinds = [one.alternatives() if one.of_kinds else (Alternative("", one.bounds()),) for one in self.theorems]
        return tuple(
            Alternative(
                ", and ".join(one.name for one in choice if one.name), self._combined(one.bounds for one in choice)
            )
            for choice in product(*kinds)
        )

    def bounds_beside(self, path: Path) -> DirectedBounds | None:
        """Return the rounds of all phases except the one that contains `path`; of disjoint parts only that part is left out.

        Returns None if no phase contains it, if there is no other phase, or if another phase is sampled.
        """
        if not any(one.node.path and one.node.contains(path) for one in self.theorems):
            return None
        rest = []
        for one in self.theorems:
            left: Theorem | None = one
            if one.node.contains(path):
                left = one.without(path)
            if left is None:
                continue
            if left.sampled:
                return None
            rest.append(left.bounds())
        return self._combined(rest) if rest else None

    def mechanism(self) -> SampledMechanism:
        """Return the sampled phases as one mechanism, without the rounds that are composed with them."""
        return together([(one.mechanism(), one.node.count) for one in self.theorems if one.sampled])

    def _combined(self, parts: Iterable[DirectedBounds]) -> DirectedBounds:
        return combine(parts, merge_gaussians=self.merges)


class _FilledStratum(NamedTuple):
    """The records of a stratum in words, and the document in which all records are drawn as these are."""

    name: str
    document: Document


def _strata_of(document: Document) -> tuple[_FilledStratum, ...]:
    """Return the strata of a document, those with the largest probabilities first; the blank of the document is filled.

    The row of a name is about a record that is of the stratum with this name in every phase that names it. A phase that does
    not name it counts with its largest probability.
    """
    stated = {
        node.at_probability(): node.own_probabilities
        for node in document.every_node()
        if node.own_probabilities is not None
    }
    largest: dict[str, float] = {}
    for stratum in (stratum for own in stated.values() for stratum in own.named()):
        largest[stratum.name] = max(stratum.probability, largest.get(stratum.name, 0.0))
    found = []
    for name in sorted(largest, key=lambda name: (-largest[name], name)):
        filled = document
        for path, own in stated.items():
            filled = filled.with_value(path, dict(own.named()).get(name, own.largest()))
        found.append(_FilledStratum(_called(document, name), filled))
    return tuple(found)


def _called(document: Document, name: str) -> str:
    """Return the protected records of a stratum in words."""
    privacy = document.privacy
    called = name if privacy.group_size == 1 else f"{privacy.group_size} records of {name}"
    return f"{called}, replaced within the stratum" if privacy.adjacency == "replace-one" else called


@dataclass(frozen=True, slots=True)
class CompiledDocument:
    """A document with the theorem for each of its bodies; no ε, δ or blank has been computed.

    It is data and can be pickled. `at` returns the mechanism at a value of the blank, without compiling or validating
    again.
    """

    document: Document
    theorems: tuple[Theorem, ...]
    #: The theorems in words, in which the blank is written as its symbol.
    reductions: tuple[Reduction, ...]
    #: The candidates of the `choose:` lists, or the one document whose matrix is searched for; and the document that asks for
    #: this. Empty and None for a document that leaves nothing to choose.
    candidates: tuple[Document, ...] = ()
    asked: Document | None = None
    #: The candidates that were compared to make the choices.
    considered: tuple[Considered, ...] = ()
    #: The search that found its matrix, if there was one.
    searched: Searched | None = None

    def at(self, value: float | None = None) -> Instance:
        """Return the plan at a value of its blank, which must be in the blank's range.

        `value` may be left out only if the blank is no part of the mechanism.
        """
        blank = self.document.blank
        if value is None:
            assert blank is None or blank[-1] in BOUNDS_OF_THE_GUARANTEE, "a blank of the mechanism needs a value"
            return Instance(self.document, self.theorems)
        return Instance.of(self.document.filled(value), self.theorems)

    @property
    def recursive(self) -> bool:
        """Whether a recursion over rounds bounds some phases from above."""
        return any(isinstance(one, RecursionTheorem) and one.once and one.used() for one in self.theorems)

    @property
    def attacked(self) -> bool:
        """Whether an attack over all rounds bounds the document from below."""
        return any(isinstance(one, RecursionTheorem) and one.used() for one in self.theorems)

    def without_recursion(self) -> CompiledDocument:
        """Return the plan by the composed bounds alone."""
        return replace(
            self, theorems=tuple(one.inner if isinstance(one, RecursionTheorem) else one for one in self.theorems)
        )

    @property
    def blank(self) -> str | None:
        """Return the name of the blank if it is part of the mechanism; None for ε, δ and claims."""
        path = self.document.blank
        return None if path is None or path[-1] in BOUNDS_OF_THE_GUARANTEE else str(path[-1])

    @property
    def only_run(self) -> RunCase:
        """The question about the only training run, for plans that are known to have one."""
        (run,) = self.theorems[0].asked.runs()
        return run

    @property
    def sampled(self) -> bool:
        """Whether some part of the mechanism is analysed by sampling its privacy loss."""
        return any(one.sampled for one in self.theorems)

    @property
    def mixed(self) -> bool:
        """Whether the document has both sampled phases and phases that compose."""
        return self.sampled and not all(one.sampled for one in self.theorems)

    @property
    def tolerance(self) -> float:
        """Return the relative width of the answer's interval: the document's, or the engine's default."""
        stated = self.document.accounting.tolerance
        if stated is not None:
            return stated
        return SAMPLED_TOLERANCE if self.sampled else LONG_TOLERANCE if self.long else COMPOSED_TOLERANCE

    @property
    def long(self) -> bool:
        """Whether there are so many kinds of rounds that nearly alike ones may be bounded by the worst of them."""
        if self.sampled or self.closed_form or budget_of(self.document) is not None:
            return False
        alike = [one for one in self.theorems if one.alike]
        if len(alike) <= MANY and not any(one.node.schedules() for one in alike):
            return False
        return len({kind for one in alike for kind in self._kinds(one)}) > MANY

    def _kinds(self, one: Theorem) -> Iterable[object]:
        """Return what distinguishes the kinds of rounds of a body; nothing while the length of its schedule is the blank."""
        run = one.node
        assert isinstance(run, TrainingNode)
        noise, batch = run.noise.multiplier, run.training.expected_batch_size
        if run.schedules():
            known = run.training.iterations != "solve"
            return [(run.path, kind.values) for kind in kinds_of(RunCase(one.asked, run))] if known else []
        return [(noise, "solve", 0.0) if batch == "solve" else (noise, batch, run.sampling_probability())]

    @property
    def closed_form(self) -> bool:
        """Whether the whole composition is one Gaussian mechanism, which needs no discretisation."""
        return all(one.gaussian for one in self.theorems) and self.document.accounting.method == "auto"

    @property
    def engine(self) -> str:
        """Return the name of the engine, as text for people."""
        if self.mixed:
            return (
                "Monte Carlo: samples of the sampled phases' privacy loss, bounded by their proposal, each weighed with the "
                "composed profile of the other phases, and bets against the claim"
            )
        if self.document.accounting.method == "renyi":
            return "moments of the likelihood ratio, by an exact chain over replicas of a record's participations"
        if self.sampled:
            return "Monte Carlo: samples of the privacy loss, bounded by their proposal, and bets against the claim"
        if self.closed_form:
            return "closed form (one Gaussian mechanism)"
        if all(isinstance(one, RecursionTheorem) and one.once and one.used() for one in self.theorems):
            return "a recursion over the rounds, on a lattice of likelihood ratios, from above and from below"
        return "privacy loss distributions: connect-the-dots upper and lower bounds, tilted FFT, both directions"

    @property
    def question(self) -> str:
        """Return what will be computed, as text for people."""
        blank, privacy, budget = self.document.blank, self.document.privacy, budget_of(self.document)
        if budget is not None:
            allowed = f"{budget.words} of at most {shortest(budget.limit)} {budget.note}"
            if blank is None:
                return f"is a {allowed} kept?"
            return f"the {'smallest' if blank[-1] in NOISE_BLANKS else 'largest'} {path_text(blank)} with a {allowed}"
        epsilon, delta = (
            "solve" if value == "solve" else shortest(value) for value in (privacy.epsilon, privacy.delta)
        )
        target = f"({epsilon}, {delta})"
        if blank is None:
            return f"does {target}-DP hold?"
        name = blank[-1]
        if name == "epsilon":
            return f"the smallest ε at δ = {delta}"
        if name == "delta":
            return f"the smallest δ at ε = {epsilon}"
        extreme = "smallest" if name in NOISE_BLANKS else "largest"
        return f"the {extreme} {path_text(blank)} with {target}-DP"


def worded(theorems: tuple[Theorem, ...]) -> tuple[Reduction, ...]:
    """Return the theorem for each phase in words. For one that counts in epochs, its length is an assumption too."""
    reductions = []
    for one in theorems:
        reduction, length = one.words(), length_text(one.node) if isinstance(one.node, TrainingNode) else None
        reductions.append(reduction if length is None else replace(reduction, assumed=(*reduction.assumed, length)))
    return tuple(reductions)

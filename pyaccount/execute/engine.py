"""Ask the core on this machine questions about compositions, and return the proven intervals.

**Where no ε is finite.** A round whose loss is infinite with probability aᵢ, such as one that is stated with a δ, tells the two
data sets apart for certain in these outcomes, and no ε covers them. The loss of independent rounds is infinite if that of one is,
so that δ(ε) is at least 1 − Π (1 − aᵢ)^nᵢ for every ε, with nᵢ rounds of each kind. Each profile of the core has a lower bound on
its own aᵢ.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from pyaccount import _core
from pyaccount.directions import DIRECTIONS, Direction
from pyaccount.document.document import Document
from pyaccount.document.ranges import SMALLEST_DELTA
from pyaccount.document.stated import number_or_none
from pyaccount.errors import TIME_IS_UP, DocumentError, LimitError, NumericsError
from pyaccount.plan.rounds import DirectedBounds, chosen, compositions, largest_loss, losses_bounded
from pyaccount.profiles import Rounds
from pyaccount.rounding import up

#: The range of δ at which ε is asked: below it only δ = 0 is resolved, and closer to 1 there is nothing to resolve.
RESOLVED = (SMALLEST_DELTA, 1.0 - 1e-9)

#: Noise multipliers outside this range are not searched.
NOISE_RANGE = (1e-2, 1e6)


@dataclass(frozen=True, slots=True)
class Question:
    """A question for ε at a given δ, or for δ at a given ε, with the relative width (`tolerance`) asked for.

    ε may be asked at δ = 0 only if losses are bounded: see `asked_at`.
    """

    epsilon: float | None
    delta: float | None
    tolerance: float


@dataclass(frozen=True, slots=True)
class DirectedAnswer:
    """A proven interval for one direction, and the core's own intervals for the upper and the lower rounds.

    If records are of several kinds, the core's intervals are those of the kind with the largest upper end.
    """

    lower: float
    upper: float
    upper_account: _core.ProvenInterval
    lower_account: _core.ProvenInterval


@dataclass(frozen=True, slots=True)
class Answer:
    """A proven interval for the guarantee, which is the larger of its two directions."""

    question: Question
    directions: dict[Direction, DirectedAnswer]
    #: The work that its compositions took, in cells.
    work: int = 0

    @property
    def upper(self) -> float:
        """The upper bound: the true value is at most this."""
        return max(answer.upper for answer in self.directions.values())

    @property
    def lower(self) -> float:
        """The lower bound: the true value is at least this."""
        return max(answer.lower for answer in self.directions.values())

    @property
    def within_tolerance(self) -> bool:
        """Whether every composition met the tolerance that was asked for."""
        return all(
            answer.upper_account.within_tolerance and answer.lower_account.within_tolerance
            for answer in self.directions.values()
        )


class _Worst(NamedTuple):
    """A proven interval for the worst of several compositions: its lower end, and the interval with the largest upper end."""

    lower: float
    account: _core.ProvenInterval
    #: The work that all of these compositions took.
    work: int


class CurveAnswer(NamedTuple):
    """Bounds on δ at many ε, and what they took."""

    #: (lower, upper) for each ε.
    points: list[tuple[float, float]]
    compositions: int
    work: int
    #: Whether some bounds are wider because no more work was allowed.
    coarser: bool


@dataclass(slots=True)
class Allowance:
    """How much work several questions may take together, in cells.

    An entry of a transform is a cell, and so is a pair of atoms of a product. Their number does not depend on the machine.
    """

    most: int
    taken: int = 0
    #: Whether some answer is wider because no more work was allowed.
    coarser: bool = False

    def each(self, number: int, quarters: int) -> int:
        """Return how much each of so many questions may take: an equal share of so many quarters of what is left."""
        return quarters * max(0, self.most - self.taken) // (4 * max(1, number))


class _CurveAsked(NamedTuple):
    """A question for bounds on δ at many ε of one composition: the arguments of `Engine.curves`."""

    rounds: tuple[Rounds, ...]
    epsilons: tuple[float, ...]
    tolerance: float
    ignored: float
    most_work: int | None


class Engine:
    """The core on this machine, with a number of threads and one deadline for all questions together."""

    def __init__(self, *, threads: int = 0, time_limit: float | None = None) -> None:
        self._threads = threads
        self._deadline = None if time_limit is None else time.monotonic() + time_limit
        #: The curves computed so far. Risks ask twice for those of a mechanism whose bounds are attained.
        self._curves: dict[_CurveAsked, CurveAnswer] = {}
        self._allowance: Allowance | None = None
        #: The number of compositions finished so far.
        self.compositions = 0

    def ask(self, bounds: DirectedBounds, question: Question) -> Answer:
        """Return the answer to one question. Raises `LimitError` at the deadline, `NumericsError` if bounds cross."""
        return self.ask_all([(bounds, question)])[0]

    def ask_all(self, items: Sequence[tuple[DirectedBounds, Question]]) -> list[Answer]:
        """Return the answers to several questions, in parallel; composes equal rounds only once. Raises as `ask`."""
        wanted: dict[tuple[tuple[Rounds, ...], Question], int] = {}
        for bounds, question in items:
            for direction in DIRECTIONS:
                for rounds in (bounds[direction].upper, bounds[direction].lower):
                    wanted.setdefault((rounds, question), len(wanted))
        intervals = self._worst(list(wanted))
        answers = []
        for bounds, question in items:
            directions: dict[Direction, DirectedAnswer] = {}
            for direction in DIRECTIONS:
                above = intervals[wanted[bounds[direction].upper, question]]
                below = intervals[wanted[bounds[direction].lower, question]]
                if below.lower > above.account.upper:
                    raise NumericsError(
                        f"the lower bound {below.lower!r} is above the upper bound {above.account.upper!r}: "
                        "this is a defect, nothing is certified"
                    )
                directions[direction] = DirectedAnswer(below.lower, above.account.upper, above.account, below.account)
            laws = {law for side in DIRECTIONS for law in (bounds[side].upper, bounds[side].lower)}
            answers.append(Answer(question, directions, sum(intervals[wanted[law, question]].work for law in laws)))
        return answers

    def _worst(self, wanted: Sequence[tuple[tuple[Rounds, ...], Question]]) -> list[_Worst]:
        """Return the interval of the worst composition for each item; most have only one."""
        single = list(dict.fromkeys((one, question) for rounds, question in wanted for one in compositions(rounds)))
        intervals = dict(zip(single, self._intervals(single), strict=True))
        answers = []
        for rounds, question in wanted:
            found = [intervals[one, question] for one in compositions(rounds)]
            pick = chosen(rounds)
            account = pick(found, key=lambda interval: (interval.upper, interval.lower))
            lower, work = pick(interval.lower for interval in found), sum(interval.work for interval in found)
            answers.append(_Worst(lower, account, work))
        return answers

    def _intervals(self, wanted: Sequence[tuple[tuple[Rounds, ...], Question]]) -> list[_core.ProvenInterval]:
        """Return the intervals of single compositions: from the largest loss if that suffices, else from the core."""
        settled = [_beyond(*one) for one in wanted]
        items = [one for one, known in zip(wanted, settled, strict=True) if known is None]
        asked = self._composed(items)
        if self._allowance is not None:
            # Most questions take less than their share, so those for which it did not suffice are asked again for what is left.
            coarse = [k for k, interval in enumerate(asked) if interval.coarser]
            for k, interval in zip(coarse, self._composed([items[k] for k in coarse]), strict=True):
                asked[k] = interval if interval.upper - interval.lower <= asked[k].upper - asked[k].lower else asked[k]
            self._allowance.coarser |= any(interval.coarser for interval in asked)
        self.compositions += len(wanted)
        rest = iter(asked)
        return [
            _capped(next(rest), *one) if known is None else known for one, known in zip(wanted, settled, strict=True)
        ]

    def _composed(self, items: Sequence[tuple[tuple[Rounds, ...], Question]]) -> list[_core.ProvenInterval]:
        """Return the core's intervals, each with an equal share of the work that is allowed."""
        if not items:
            return []
        with self._counting():
            asked = _core.answer_all(
                [
                    ([(r.profile.build(), r.count) for r in rounds], q.epsilon, q.delta, q.tolerance)
                    for rounds, q in items
                ],
                threads=self._threads,
                time_limit=self._remaining(),
                most_work=None if self._allowance is None else self._allowance.each(len(items), 2),
            )
        if self._allowance is not None:
            self._allowance.taken += sum(interval.work for interval in asked)
        return asked

    def curves(
        self, items: Sequence[tuple[tuple[Rounds, ...], Sequence[float]]], tolerance: float, ignored: float
    ) -> list[CurveAnswer]:
        """Return proven (lower, upper) bounds on δ at many ε: each item is (rounds, ascending ε ≥ 0).

        They are as narrow as the relative tolerance where δ is above `ignored`. A curve that was computed before is not
        computed again.
        """
        allowance = self._allowance
        different = len({(one, tuple(epsilons)) for rounds, epsilons in items for one in compositions(rounds)})
        most_work = None if allowance is None else allowance.each(different, 3)
        single = [
            _CurveAsked(one, tuple(epsilons), tolerance, ignored, most_work)
            for rounds, epsilons in items
            for one in compositions(rounds)
        ]
        new = [one for one in dict.fromkeys(single) if one not in self._curves]
        with self._counting():
            asked = [
                ([(r.profile.build(), r.count) for r in one.rounds], list(one.epsilons), tolerance, ignored)
                for one in new
            ]
            curves = [
                CurveAnswer(*curve)
                for curve in _core.curve_all(
                    asked, threads=self._threads, time_limit=self._remaining(), most_work=most_work
                )
            ]
        self.compositions += sum(curve.compositions for curve in curves)
        if allowance is not None:
            allowance.taken += sum(curve.work for curve in curves)
            allowance.coarser |= any(curve.coarser for curve in curves)
        self._curves.update(zip(new, curves, strict=True))
        found = iter([self._curves[one] for one in single])
        return [_joined([next(found) for _ in compositions(rounds)], chosen(rounds)) for rounds, _ in items]

    def log_moment(
        self, mechanism: _core.Sampled, order: int, *, most_busy: int | None = None, gap: float = 1e-3
    ) -> tuple[float, float, float]:
        """Return bounds on ln E f^order, for f = dP/dQ of a mechanism and the mean under Q. The upper may be infinite.

        They may differ by `gap` where steps settle. If no more than `most_busy` replicas may be busy at once, the third
        number is the part of the upper bound that accounts for the configurations left out; otherwise it is 0.
        """
        return mechanism.log_moment(
            order, most_busy=most_busy, gap=gap, threads=self._threads, time_limit=self._remaining()
        )

    @contextmanager
    def within(self, allowance: Allowance) -> Iterator[None]:
        """Let what is asked meanwhile take no more work than this, as `Allowance.each` divides it."""
        self._allowance = allowance
        try:
            yield
        finally:
            self._allowance = None

    @contextmanager
    def _counting(self) -> Iterator[None]:
        """Record in a `LimitError` how many compositions were finished."""
        try:
            yield
        except LimitError as error:
            error.compositions = self.compositions
            raise

    def _remaining(self) -> float | None:
        if self._deadline is None:
            return None
        remaining = self._deadline - time.monotonic()
        if remaining <= 0.0:
            raise LimitError(TIME_IS_UP)
        return remaining


def _joined(curves: Sequence[CurveAnswer], pick: Callable[[Iterable[float]], float]) -> CurveAnswer:
    """Return the largest of several curves at each ε, or the least, and what all of them took."""
    if len(curves) == 1:
        return curves[0]
    points = [
        (pick(lower for lower, _ in bounds), pick(upper for _, upper in bounds))
        for bounds in zip(*(curve.points for curve in curves), strict=True)
    ]
    return CurveAnswer(
        points,
        sum(curve.compositions for curve in curves),
        sum(curve.work for curve in curves),
        any(curve.coarser for curve in curves),
    )


def asked_at(bounds: DirectedBounds, delta: float) -> float:
    """Return the δ nearest to this one at which ε can be asked; δ = 0 can be asked only if losses are bounded.

    At δ = 1 everything has ε = 0.
    """
    if delta == 1.0 or (delta == 0.0 and losses_bounded(bounds)):
        return delta
    least, largest = RESOLVED
    return min(max(delta, least), largest)


def _beyond(rounds: tuple[Rounds, ...], question: Question) -> _core.ProvenInterval | None:
    """Return the answer if none is composed for it: ε at δ = 1 or 0, and δ = 0 from the largest loss on. None otherwise."""
    if question.delta == 1.0:
        return _core.ProvenInterval.proven(0.0, 0.0)
    largest = largest_loss(rounds)
    if question.delta == 0.0:
        if largest is None:
            raise NumericsError("no ε holds at δ = 0: the privacy loss has no bound")
        return _core.ProvenInterval.proven(*largest)
    if largest is not None and question.epsilon is not None and question.epsilon >= largest.at_most:
        return _core.ProvenInterval.proven(0.0, 0.0)
    return None


def _capped(interval: _core.ProvenInterval, rounds: tuple[Rounds, ...], question: Question) -> _core.ProvenInterval:
    """Return an interval for ε, its upper bound replaced by the largest loss, unrounded, where that is smaller."""
    largest = None if question.delta is None else largest_loss(rounds)
    return interval if largest is None else interval.at_most(largest.at_most)


def finite(answer: Answer) -> Answer:
    """Return the answer. Raises `NumericsError` if its upper bound is infinite."""
    if not math.isfinite(answer.upper):
        raise NumericsError("the composition could not be bounded from above at this δ; try a larger delta")
    return answer


def _log_finite(item: Rounds) -> float:
    """Return an upper bound on ln Pr[L < ∞], L the loss of all these rounds: n·ln(1 − a)."""
    mass = item.profile.build().mass_at_infinity()
    return item.count * math.log1p(-mass) if mass < 1.0 else -math.inf


def mass_at_infinity(rounds: tuple[Rounds, ...]) -> float:
    """Return the probability that the loss of all rounds together is infinite, a few units of rounding from below."""
    least: float = chosen(rounds)(-math.expm1(math.fsum(map(_log_finite, one))) for one in compositions(rounds))
    return least


def refuse_infinite(document: Document, bounds: DirectedBounds) -> None:
    """Raise `DocumentError` if no ε is finite at the document's δ, or none that is proven; return if that is not known."""
    delta = number_or_none(document.privacy.delta)
    if delta is None:
        return
    above, below = (
        up(max(mass_at_infinity(rounds) for rounds in rounds_of_side))
        for rounds_of_side in ([side.upper for side in bounds.values()], [side.lower for side in bounds.values()])
    )
    # The message is true of every δ below the number that it shows, up to its rounding.
    if delta >= float(above):
        return
    known = f"no ε is finite below δ = {below}" if delta < float(below) else f"no finite ε is proven below δ = {above}"
    message = (
        f"{known} (rounded up): with this probability, what is released may tell the data sets apart for certain, as it "
        f"may for a mechanism that is stated with a δ. Give a delta of at least {above}, or release less that has a δ of its own"
    )
    allowed = f"a number at least {above} and less than 1"
    raise DocumentError([document.problem("out-of-range", ("privacy", "delta"), message, allowed=allowed)])

"""Questions to the core and the intervals that come back, on this machine."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyaccount import _core
from pyaccount.directions import DIRECTIONS, Direction
from pyaccount.document.ranges import SMALLEST_DELTA
from pyaccount.errors import TIME_IS_UP, LimitError, NumericsError
from pyaccount.plan.largest_loss import bounded, largest_loss
from pyaccount.plan.rounds import DirectedBounds

if TYPE_CHECKING:
    from pyaccount.plan.rounds import Part, Rounds

#: The δ at which ε is asked: nothing below is resolved but 0, and close to 1 there is nothing to resolve.
RESOLVED = (SMALLEST_DELTA, 1.0 - 1e-9)

#: Noise multipliers outside this range are not searched.
NOISE_RANGE = (1e-2, 1e6)


@dataclass(frozen=True, slots=True)
class Question:
    """ε at this δ, or δ at this ε: exactly one is given. `tolerance` is the relative width asked for.

    ε is asked at δ = 0 where losses are bounded: see `asked_at`.
    """

    epsilon: float | None
    delta: float | None
    tolerance: float


@dataclass(frozen=True, slots=True)
class DirectedAnswer:
    """A proven interval for one direction, and the core's account of each side."""

    lower: float
    upper: float
    upper_account: _core.ProvenInterval
    lower_account: _core.ProvenInterval


@dataclass(frozen=True, slots=True)
class Answer:
    """A proven interval for the guarantee, which is the larger of its two directions."""

    question: Question
    directions: dict[Direction, DirectedAnswer]

    @property
    def upper(self) -> float:
        """The true value is at most this."""
        return max(answer.upper for answer in self.directions.values())

    @property
    def lower(self) -> float:
        """The true value is at least this."""
        return max(answer.lower for answer in self.directions.values())

    @property
    def within_tolerance(self) -> bool:
        """Whether every composition met the tolerance asked for."""
        return all(
            answer.upper_account.within_tolerance and answer.lower_account.within_tolerance
            for answer in self.directions.values()
        )


class Engine:
    """The core on this machine, with a number of threads and a deadline for all questions together."""

    def __init__(self, *, threads: int = 0, time_limit: float | None = None) -> None:
        self._threads = threads
        self._deadline = None if time_limit is None else time.monotonic() + time_limit
        self._profiles: dict[Part, _core.RoundProfile] = {}
        #: How many compositions it has finished.
        self.compositions = 0

    def ask(self, bounds: DirectedBounds, question: Question) -> Answer:
        """The answer to one question."""
        return self.ask_all([(bounds, question)])[0]

    def ask_all(self, items: Sequence[tuple[DirectedBounds, Question]]) -> list[Answer]:
        """The answers to several questions, computed side by side; equal compositions are computed once."""
        wanted: dict[tuple[tuple[Rounds, ...], Question], int] = {}
        for bounds, question in items:
            for direction in DIRECTIONS:
                for rounds in (bounds[direction].upper, bounds[direction].lower):
                    wanted.setdefault((rounds, question), len(wanted))
        intervals = self._intervals(list(wanted))
        answers = []
        for bounds, question in items:
            directions: dict[Direction, DirectedAnswer] = {}
            for direction in DIRECTIONS:
                above = intervals[wanted[bounds[direction].upper, question]]
                below = intervals[wanted[bounds[direction].lower, question]]
                if below.lower > above.upper:
                    raise NumericsError(
                        f"the bounds cross ({below.lower!r} above {above.upper!r}): this is a defect, nothing is certified"
                    )
                directions[direction] = DirectedAnswer(below.lower, above.upper, above, below)
            answers.append(Answer(question, directions))
        return answers

    def _intervals(self, wanted: Sequence[tuple[tuple[Rounds, ...], Question]]) -> list[_core.ProvenInterval]:
        """The answers of single compositions: those beyond the largest loss at once, the others by the core."""
        settled = [_beyond(*one) for one in wanted]
        with self._counting():
            asked = _core.answer_all(
                [
                    ([(self._profile(r.part), r.count) for r in rounds], q.epsilon, q.delta, q.tolerance)
                    for (rounds, q), known in zip(wanted, settled, strict=True)
                    if known is None
                ],
                threads=self._threads,
                time_limit=self._remaining(),
            )
        self.compositions += len(wanted)
        rest = iter(asked)
        return [
            _capped(next(rest), *one) if known is None else known for one, known in zip(wanted, settled, strict=True)
        ]

    def curves(
        self, items: Sequence[tuple[tuple[Rounds, ...], Sequence[float]]], tolerance: float, ignored: float
    ) -> list[tuple[list[tuple[float, float]], int]]:
        """Proven (lower, upper) bounds on δ at many ε: each item is (rounds, ascending ε ≥ 0).

        They are as narrow as the relative tolerance where δ is above `ignored`. Gives with each curve how often its rounds were
        composed.
        """
        with self._counting():
            curves = _core.curve_all(
                [
                    ([(self._profile(r.part), r.count) for r in rounds], list(epsilons), tolerance, ignored)
                    for rounds, epsilons in items
                ],
                threads=self._threads,
                time_limit=self._remaining(),
            )
        self.compositions += sum(count for _, count in curves)
        return curves

    def log_moment(
        self, mechanism: _core.Sampled, order: int, *, most_busy: int | None = None, gap: float = 1e-3
    ) -> tuple[float, float, float]:
        """Return bounds on ln E f^order, f = dP/dQ of a mechanism and the mean under Q; the upper one may be infinite.

        They may be apart by `gap` where steps settle. Where no more than `most_busy` replicas are busy at once, the third number
        is how much of the upper bound is for what that leaves out; 0 otherwise.
        """
        return mechanism.log_moment(
            order, most_busy=most_busy, gap=gap, threads=self._threads, time_limit=self._remaining()
        )

    @contextmanager
    def _counting(self) -> Iterator[None]:
        """Let what stops the work say how many compositions were finished."""
        try:
            yield
        except LimitError as error:
            error.compositions = self.compositions
            raise

    def _profile(self, part: Part) -> _core.RoundProfile:
        if part not in self._profiles:
            self._profiles[part] = part.build()
        return self._profiles[part]

    def _remaining(self) -> float | None:
        if self._deadline is None:
            return None
        remaining = self._deadline - time.monotonic()
        if remaining <= 0.0:
            raise LimitError(TIME_IS_UP)
        return remaining


def asked_at(bounds: DirectedBounds, delta: float) -> float:
    """The δ nearest to this one at which ε is asked: 0 is one of them where losses are bounded."""
    if delta == 0.0 and bounded(bounds):
        return 0.0
    least, largest = RESOLVED
    return min(max(delta, least), largest)


def _beyond(rounds: tuple[Rounds, ...], question: Question) -> _core.ProvenInterval | None:
    """What the largest loss answers by itself: ε at δ = 0, and δ = 0 from that ε on; None elsewhere."""
    largest = largest_loss(rounds)
    if question.delta == 0.0:
        if largest is None:
            raise NumericsError("no ε holds at δ = 0: the privacy loss has no bound")
        return _core.ProvenInterval.proven(*largest)
    if largest is not None and question.epsilon is not None and question.epsilon >= largest.at_most:
        return _core.ProvenInterval.proven(0.0, 0.0)
    return None


def _capped(interval: _core.ProvenInterval, rounds: tuple[Rounds, ...], question: Question) -> _core.ProvenInterval:
    """An interval for ε, which is at most the largest loss at every δ: here without the core's rounding of that."""
    largest = None if question.delta is None else largest_loss(rounds)
    return interval if largest is None else interval.at_most(largest.at_most)


def finite(answer: Answer) -> Answer:
    """The answer, unless its upper end could not be bounded."""
    if not math.isfinite(answer.upper):
        raise NumericsError("the composition could not be bounded from above at this δ")
    return answer

"""The target of a document: a number that must not exceed a limit, and how to bound that number by a proven interval.

For a claim (ε, δ) the number is ε at the document's δ, or δ if ε is 0 or near it; for a budget of risk it is the measure of risk,
which points of a profile bound: points are added where they matter until the interval is narrow.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from pyaccount.directions import DIRECTIONS, Direction
from pyaccount.document.document import Document
from pyaccount.execute.engine import Answer, DirectedAnswer, Engine, Question
from pyaccount.plan.alike import composed_alike
from pyaccount.plan.common import number
from pyaccount.plan.rounds import Bounds, DirectedBounds, alternatives_of, reversed_rounds
from pyaccount.profiles import Rounds
from pyaccount.risk.budget import Budget, Enclosure, Points, attained_at_least
from pyaccount.risk.budgets import budget_of
from pyaccount.rounding import down, shortest, up

#: The largest number of passes that add points, and the width of δ at them relative to the width asked for.
PASSES, SHARE = 12, 0.25
#: Adding points goes on while it narrows the interval to at most this share of its width before.
STALLED = 0.8
#: A measure that is at least this many times the limit need not be known more precisely.
HOPELESS = 4.0


@dataclass(frozen=True, slots=True)
class MeasuredRisk:
    """A proven interval for a measure of risk."""

    budget: Budget
    lower: float
    upper: float
    #: Whether the interval is as narrow as asked for.
    within_tolerance: bool


def risk_of_bound(engine: Engine, bounds: DirectedBounds, budget: Budget, tolerance: float) -> MeasuredRisk:
    """Return the risk of the rounds that bound the mechanism from above; its upper end bounds the mechanism's risk.

    If records are of several kinds, it is the largest risk of one kind: an attack is about records of one kind.
    """
    found = [
        _narrowed(engine, {side: one[side].upper for side in DIRECTIONS}, budget, tolerance, budget.at_least)
        for one in alternatives_of(bounds)
    ]
    worst = max(found, key=lambda risk: (risk.upper, risk.lower))
    return replace(worst, lower=max(risk.lower for risk in found))


def risk_attained(engine: Engine, bounds: DirectedBounds, budget: Budget, tolerance: float) -> float:
    """Return a lower bound on the mechanism's risk: that of two data sets, or of the bound itself if it is attained."""
    return max(_attained(engine, one, budget, tolerance) for one in alternatives_of(bounds))


def _attained(engine: Engine, bounds: DirectedBounds, budget: Budget, tolerance: float) -> float:
    """Return a lower bound on the risk for records of one kind."""
    rounds = {side: bounds[side].lower for side in DIRECTIONS}

    def at_least(points: Points) -> float:
        # If both directions are about the same two data sets, the points of both can be used together.
        one_pair = reversed_rounds(rounds["remove"]) == rounds["add"]
        return budget.at_least(points) if one_pair else attained_at_least(budget, points)

    return _narrowed(engine, rounds, budget, tolerance, at_least).lower


def _narrowed(
    engine: Engine,
    rounds: Mapping[Direction, tuple[Rounds, ...]],
    budget: Budget,
    tolerance: float,
    at_least: Callable[[Points], float],
) -> MeasuredRisk:
    known: dict[Direction, dict[float, Enclosure]] = {side: {} for side in DIRECTIONS}
    wanted, width = dict.fromkeys(DIRECTIONS, budget.places()), math.inf
    for _ in range(PASSES):
        # Directions with the same composition share their points.
        asked = list(dict.fromkeys((rounds[side], wanted[side]) for side in wanted))
        found = dict(zip(asked, engine.curves(asked, SHARE * tolerance, budget.negligible), strict=True))
        for side, epsilons in wanted.items():
            for epsilon, (lower, upper) in zip(epsilons, found[rounds[side], epsilons].points, strict=True):
                known[side][epsilon] = Enclosure(epsilon, lower, min(1.0, upper))
        points = {side: [known[side][epsilon] for epsilon in sorted(known[side])] for side in DIRECTIONS}
        least, most = at_least(points), budget.at_most(points)
        if least > HOPELESS * budget.limit:
            return MeasuredRisk(budget, min(least, most), most, within_tolerance=False)
        width, before = most - least, width
        within = width <= tolerance * most
        # If more points hardly narrow the interval, its width comes from that of δ at the points themselves.
        wanted = {} if within or width > STALLED * before else budget.finer(points, tolerance)
        if not wanted:
            break
    return MeasuredRisk(budget, min(least, most), most, within)


#: A claim of an ε up to this one is judged by δ at this ε, if its δ is smaller than δ(0) by no more than the share `HARDLY`.
NEAR_ZERO, HARDLY = 1e-3, 0.01


@dataclass(frozen=True, slots=True)
class Found:
    """The target's number is at most `upper`. The bound that is used is at least `lower`.

    If `upper` is within the limit, the target holds; if `lower` exceeds the limit, the bound fails.
    """

    lower: float
    upper: float
    #: Whether the interval is as narrow as asked for.
    within_tolerance: bool
    #: The interval, in words.
    said: str
    answer: Answer | None = None
    risk: MeasuredRisk | None = None
    #: Whether rounds that are nearly alike were grouped for it, so that a narrower interval may need finer groups.
    grouped: bool = False
    #: What the number must not exceed, if that is not the limit of the target.
    limit: float | None = None


class Target(ABC):
    """A number that must not exceed a limit."""

    #: The smallest relative width to which intervals are narrowed to reach a verdict.
    finest: ClassVar[float]
    #: What to change if no value reaches the target, and if every value does.
    looser: ClassVar[str]
    tighter: ClassVar[str]

    @property
    @abstractmethod
    def limit(self) -> float:
        """The largest value that the number may have."""

    @property
    @abstractmethod
    def words(self) -> str:
        """The target, in words."""

    @abstractmethod
    def exceeded(self, bound: float) -> str:
        """Return in words that the number is at least `bound`."""

    def width(self, tolerance: float) -> float | None:
        """Return how much wider groups of rounds may make the interval; None if rounds are to be composed ungrouped."""
        return None

    @abstractmethod
    def find(self, engine: Engine, bounds: DirectedBounds, tolerance: float) -> Found:
        """Return an interval for the number, of this relative width if that can be reached."""


@dataclass(frozen=True, slots=True)
class ClaimTarget(Target):
    """The target (ε, δ)-differential privacy."""

    finest: ClassVar[float] = 1e-7
    looser: ClassVar[str] = "a larger epsilon or delta"
    tighter: ClassVar[str] = "a smaller epsilon or delta"

    epsilon: float
    delta: float
    #: Whether the document has no blank.
    claimed: bool = False

    @property
    def limit(self) -> float:
        """ε, or δ if ε is 0."""
        return self.epsilon if self.epsilon > 0.0 else self.delta

    @property
    def words(self) -> str:
        """The claimed ε and δ, in words."""
        return f"ε = {self.epsilon:g} at δ = {self.delta:g}"

    def exceeded(self, bound: float) -> str:
        """Return in words a lower bound on ε, or on δ if ε is 0."""
        return f"ε ≥ {down(bound)} at δ = {self.delta:g}" if self.epsilon > 0.0 else f"δ ≥ {down(bound)} at ε = 0"

    def width(self, tolerance: float) -> float | None:
        """Return half of the tolerance; None at the finest tolerance, where rounds are composed without groups."""
        return None if tolerance <= self.finest else 0.5 * tolerance

    def near_zero(self, engine: Engine, bounds: DirectedBounds) -> bool:
        """Whether a claim of an ε near zero is judged by δ at this ε, because δ is hardly below δ(0).

        Then the ε at this δ is near zero too, and its relative width is that of δ many times over.
        """
        if not self.claimed or not 0.0 < self.epsilon <= NEAR_ZERO or composed_alike(bounds):
            return False
        at_zero = engine.ask(bounds, Question(0.0, None, 0.01 * HARDLY))
        return (1.0 - HARDLY) * at_zero.lower <= self.delta < at_zero.upper

    def find(self, engine: Engine, bounds: DirectedBounds, tolerance: float) -> Found:
        """Return the interval for ε at the claimed δ, or for δ at ε = 0 or near it."""
        question = Question(None, self.delta, tolerance) if self.epsilon > 0.0 else Question(0.0, None, tolerance)
        if self.near_zero(engine, bounds):
            question = Question(self.epsilon, None, tolerance)
        answer = engine.ask(bounds, question)
        # Every bound that the theorem's rounds can give is at least this.
        bound = max(bound_at_least(bounds[side], answer.directions[side]) for side in DIRECTIONS)
        within, alike = answer.within_tolerance, composed_alike(bounds)
        limit = self.limit if question.epsilon is None else self.delta
        return Found(bound, answer.upper, within, interval_words(answer), answer=answer, grouped=alike, limit=limit)


@dataclass(frozen=True, slots=True)
class RiskTarget(Target):
    """The target that a measure of risk stays within its budget."""

    #: Many points of a profile take longer than one, so the finest width is larger than for a claim.
    finest: ClassVar[float] = 1e-5
    looser: ClassVar[str] = "a larger budget"
    tighter: ClassVar[str] = "a smaller budget"

    budget: Budget

    @property
    def limit(self) -> float:
        """The budget's limit."""
        return self.budget.limit

    @property
    def words(self) -> str:
        """The budget with its measure, in words."""
        return f"{self.budget.words} = {shortest(self.limit)} {self.budget.note}"

    def exceeded(self, bound: float) -> str:
        """Return in words a lower bound on the measure."""
        return f"{self.budget.words} ≥ {down(bound)} {self.budget.note}"

    def find(self, engine: Engine, bounds: DirectedBounds, tolerance: float) -> Found:
        """Return the interval for the measure, from points of the profile."""
        risk = risk_of_bound(engine, bounds, self.budget, tolerance)
        sentence = f"{self.budget.words} is at least {down(risk.lower)} and at most {up(risk.upper)} {self.budget.note}"
        return Found(risk.lower, risk.upper, risk.within_tolerance, sentence, risk=risk)


def bound_at_least(bounds: Bounds, answer: DirectedAnswer) -> float:
    """Return a lower bound on what the theorem's own rounds compose to, even if groups of them were composed."""
    return answer.upper_account.lower if bounds.kinds is None else answer.lower


def target_of(document: Document) -> Target:
    """Return the target of a document that has a blank in its mechanism or is a claim."""
    budget, privacy = budget_of(document), document.privacy
    if budget is not None:
        return RiskTarget(budget)
    return ClaimTarget(number(privacy.epsilon), number(privacy.delta), document.blank is None)


def interval_words(answer: Answer) -> str:
    """Return a proven interval in words."""
    asked, ends = answer.question, f"at least {down(answer.lower)} and at most {up(answer.upper)}"
    if asked.delta is not None:
        return f"ε is {ends} at δ = {shortest(asked.delta)}"
    assert asked.epsilon is not None
    return f"δ is {ends} at ε = {shortest(asked.epsilon)}"

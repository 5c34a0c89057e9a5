"""What a value of the blank is judged by: a number that must not exceed a limit, found as a proven interval.

The claim (ε, δ) of a document is ε at its δ, or δ at ε = 0; a budget of risk is its measure.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pyaccount.directions import DIRECTIONS
from pyaccount.execute.engine import Answer, DirectedAnswer, Engine, Question
from pyaccount.execute.measure import MeasuredRisk, risk_of_bound
from pyaccount.plan.alike import composed_alike
from pyaccount.risk.budgets import budget_of
from pyaccount.rounding import down, plain, up

if TYPE_CHECKING:
    from pyaccount.document.document import Document
    from pyaccount.plan.rounds import Bounds, DirectedBounds
    from pyaccount.risk.budget import Budget


@dataclass(frozen=True, slots=True)
class Found:
    """The number lies below `upper`; what bounds it is at least `lower`: beyond the limit, the bound fails."""

    lower: float
    upper: float
    #: Whether the interval is as narrow as asked for.
    within_tolerance: bool
    #: What was found, in words.
    said: str
    answer: Answer | None = None
    risk: MeasuredRisk | None = None
    #: Whether nearly alike rounds were bounded by others for it, so that a finer interval may need finer groups.
    grouped: bool = False


class Target(ABC):
    """What must not exceed a limit."""

    #: Intervals are not narrowed below this to reach a verdict.
    finest: ClassVar[float]
    #: What to change about a target that nothing reaches, and about one that everything does.
    looser: ClassVar[str]
    tighter: ClassVar[str]

    @property
    @abstractmethod
    def limit(self) -> float:
        """What the number may be at most."""

    @property
    @abstractmethod
    def words(self) -> str:
        """The target, for people."""

    @abstractmethod
    def exceeded(self, bound: float) -> str:
        """That the number is at least `bound`, for people."""

    def width(self, tolerance: float) -> float | None:
        """How much wider nearly alike rounds may make the interval; None where these are composed as they are."""
        return None

    @abstractmethod
    def find(self, engine: Engine, bounds: DirectedBounds, tolerance: float) -> Found:
        """The number, to a relative width."""


@dataclass(frozen=True, slots=True)
class ClaimTarget(Target):
    """(ε, δ)-differential privacy."""

    finest: ClassVar[float] = 1e-7
    looser: ClassVar[str] = "a larger epsilon or delta"
    tighter: ClassVar[str] = "a smaller epsilon or delta"

    epsilon: float
    delta: float

    @property
    def limit(self) -> float:
        """ε, or δ where that is 0."""
        return self.epsilon if self.epsilon > 0.0 else self.delta

    @property
    def words(self) -> str:
        """The claim."""
        return f"ε = {self.epsilon:g} at δ = {self.delta:g}"

    def exceeded(self, bound: float) -> str:
        """A lower end of ε, or of δ."""
        return f"ε ≥ {down(bound)} at δ = {self.delta:g}" if self.epsilon > 0.0 else f"δ ≥ {down(bound)} at ε = 0"

    def width(self, tolerance: float) -> float | None:
        """Half of the tolerance; the finest interval is that of the rounds themselves."""
        return None if tolerance <= self.finest else 0.5 * tolerance

    def find(self, engine: Engine, bounds: DirectedBounds, tolerance: float) -> Found:
        """One question."""
        question = Question(None, self.delta, tolerance) if self.epsilon > 0.0 else Question(0.0, None, tolerance)
        answer = engine.ask(bounds, question)
        # No bound by the theorem's rounds is below this.
        bound = max(bound_at_least(bounds[side], answer.directions[side]) for side in DIRECTIONS)
        within, alike = answer.within_tolerance, composed_alike(bounds)
        return Found(bound, answer.upper, within, said(answer), answer=answer, grouped=alike)


@dataclass(frozen=True, slots=True)
class RiskTarget(Target):
    """A budget of risk."""

    #: Many points of a profile at a time take longer than one.
    finest: ClassVar[float] = 1e-5
    looser: ClassVar[str] = "a larger budget"
    tighter: ClassVar[str] = "a smaller budget"

    budget: Budget

    @property
    def limit(self) -> float:
        """The budget."""
        return self.budget.limit

    @property
    def words(self) -> str:
        """The budget, with its measure."""
        return f"{self.budget.words} = {plain(self.limit)} {self.budget.note}"

    def exceeded(self, bound: float) -> str:
        """A lower end of the measure."""
        return f"{self.budget.words} ≥ {down(bound)} {self.budget.note}"

    def find(self, engine: Engine, bounds: DirectedBounds, tolerance: float) -> Found:
        """Points of the profile."""
        risk = risk_of_bound(engine, bounds, self.budget, tolerance)
        told = f"{self.budget.words} is at least {down(risk.lower)} and at most {up(risk.upper)} {self.budget.note}"
        return Found(risk.lower, risk.upper, risk.within_tolerance, told, risk=risk)


def bound_at_least(bounds: Bounds, answer: DirectedAnswer) -> float:
    """Return what the theorem's own rounds compose to at least, whether these were composed or groups of them."""
    return answer.upper_account.lower if bounds.kinds is None else answer.lower


def target_of(document: Document) -> Target:
    """What a document whose mechanism has a blank, or that is a claim, is judged by."""
    budget, privacy = budget_of(document), document.privacy
    if budget is not None:
        return RiskTarget(budget)
    assert privacy.epsilon != "solve"
    assert privacy.delta != "solve"
    return ClaimTarget(privacy.epsilon, privacy.delta)


def said(answer: Answer) -> str:
    """A proven interval in words."""
    asked, ends = answer.question, f"at least {down(answer.lower)} and at most {up(answer.upper)}"
    if asked.delta is not None:
        return f"ε is {ends} at δ = {plain(asked.delta)}"
    assert asked.epsilon is not None
    return f"δ is {ends} at ε = {plain(asked.epsilon)}"

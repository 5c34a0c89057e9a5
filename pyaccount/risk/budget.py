"""Budgets of risk: what a document allows an attacker, as a question about the privacy profile.

A budget is a measure of risk with a limit. The measure of a profile is bounded from both sides by finitely many points of it: of
each direction some ε ≥ 0, with δ at least and at most there. More points narrow the interval; `places` and `finer` say which.

A mechanism keeps the budget if the measure is at most the limit **whichever the attacker tests for**: presence of the sensitive
records, or absence. More noise, fewer rounds, smaller groups and smaller batches never raise δ(ε) of the bounds, and every
measure here grows with δ(ε), so that a blank is solved as for ε and δ.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from pyaccount.directions import DIRECTIONS
from pyaccount.risk.tradeoff import Bound, TradeOff

if TYPE_CHECKING:
    from pyaccount.directions import Direction
    from pyaccount.document.sections import Risk


class Enclosure(NamedTuple):
    """δ at this ε is at least `lower` and at most `upper`."""

    epsilon: float
    lower: float
    upper: float


#: Of each direction, by ascending ε from 0.
Points = Mapping["Direction", Sequence[Enclosure]]


class Budget(ABC):
    """A measure of risk with its limit."""

    #: The field of the document that says it.
    measure: ClassVar[str]
    #: Whether one point of the profile, the same in both directions, proves the budget: see `claim`.
    one_point: ClassVar[bool] = True
    #: What the measure may be at most.
    limit: float

    @classmethod
    @abstractmethod
    def of(cls, risk: Risk, delta: float) -> Budget | None:
        """The budget that a document says, if it is of this measure; `delta` is the δ at which it tells ε."""

    @property
    @abstractmethod
    def words(self) -> str:
        """What is measured, for people: `membership advantage`."""

    @property
    @abstractmethod
    def note(self) -> str:
        """What the measure is, in a few words more."""

    def details(self) -> dict[str, float]:
        """What else a certificate states of the budget, by its fields."""
        return {}

    @abstractmethod
    def places(self) -> tuple[float, ...]:
        """The ε to look at first: ascending, 0 among them."""

    @property
    @abstractmethod
    def negligible(self) -> float:
        """A δ below which it does not matter how small it is."""

    @abstractmethod
    def at_most(self, points: Points) -> float:
        """The measure is at most this. Proven, rounded up."""

    @abstractmethod
    def at_least(self, points: Points) -> float:
        """The measure of the profile that the points are of is at least this. Proven, rounded down."""

    @abstractmethod
    def finer(self, points: Points, tolerance: float) -> dict[Direction, tuple[float, ...]]:
        """More ε to look at in each direction, so that the interval of the measure narrows to a relative width."""

    def claim(self, epsilon: float) -> float | None:
        """A δ for which (ε, δ), in both directions, keeps the budget, whatever the rest of the profile is; None if none does."""
        return None


def attained_at_least(budget: Budget, points: Points) -> float:
    """The measure of a mechanism is at least this, given points of two data sets for each direction, not always the same two.

    Of two data sets whose direction is known the other one is known only where it is the same, at ε = 0: H₁(P‖Q) = H₁(Q‖P).
    """
    return max(
        budget.at_least({side: points[side] if side == known else points[known][:1] for side in DIRECTIONS})
        for known in DIRECTIONS
    )


def curve_of(points: Points) -> TradeOff:
    """The trade-off curve that the upper ends certify."""
    remove, add = (tuple(Bound(point.epsilon, point.upper) for point in points[side]) for side in DIRECTIONS)
    return TradeOff(remove, add)

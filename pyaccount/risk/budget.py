"""Budgets of risk: the limits of a document on attackers, as questions about the privacy profile.

A budget is a measure of risk with a limit. The measure of a profile is bounded from above and below by finitely many of
its points: for each direction some ε ≥ 0, with an upper and a lower bound on δ there. More points narrow the interval;
`places` and `finer` say which.

A mechanism keeps the budget if the measure is at most the limit **for tests of presence and for tests of absence** of
the sensitive records. More noise, fewer rounds, smaller groups and smaller batches never increase δ(ε) of the bounds,
and every measure here increases with δ(ε). So a blank is solved as for ε and δ.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from pyaccount.directions import DIRECTIONS, Direction
from pyaccount.risk.tradeoff import Bound, TradeOff

if TYPE_CHECKING:
    from pyaccount.document.sections import Risk


class Enclosure(NamedTuple):
    """δ at this ε is at least `lower` and at most `upper`."""

    epsilon: float
    lower: float
    upper: float


#: The points of each direction, by ascending ε, beginning at 0.
Points = Mapping["Direction", Sequence[Enclosure]]


class Budget(ABC):
    """A measure of risk with a limit."""

    #: The field of the document that sets it.
    measure: ClassVar[str]
    #: The measure in words, such as `membership advantage`.
    words: ClassVar[str]
    #: Whether one point of the profile, the same in both directions, proves the budget: see `claim`.
    one_point: ClassVar[bool] = True
    #: The largest value of the measure that is allowed.
    limit: float

    @classmethod
    @abstractmethod
    def of(cls, risk: Risk, delta: float) -> Budget | None:
        """Return the budget of this measure that a document sets, or None; `delta` is the δ at which it reports ε."""

    @property
    @abstractmethod
    def note(self) -> str:
        """A short explanation of the measure."""

    def details(self) -> dict[str, float]:
        """Return further fields of the certificate on the budget."""
        return {}

    @abstractmethod
    def places(self) -> tuple[float, ...]:
        """Return the values of ε to begin with: ascending, including 0."""

    @property
    @abstractmethod
    def negligible(self) -> float:
        """A δ so small that smaller values make no difference."""

    @abstractmethod
    def at_most(self, points: Points) -> float:
        """Return a proven upper bound on the measure, rounded up."""

    @abstractmethod
    def at_least(self, points: Points) -> float:
        """Return a proven lower bound on the measure of the profile with these points, rounded down."""

    @abstractmethod
    def finer(self, points: Points, tolerance: float) -> dict[Direction, tuple[float, ...]]:
        """Return further values of ε for each direction, to narrow the interval of the measure to a relative width."""

    def claim(self, epsilon: float) -> float | None:
        """Return a δ such that (ε, δ) in both directions implies the budget, whatever the other points; or None."""
        return None


def attained_at_least(budget: Budget, points: Points) -> float:
    """Return a lower bound on the measure, from points of two data sets for each direction, perhaps different ones.

    For two data sets with a known profile in one direction, the other direction is known only at ε = 0: H₁(P‖Q) =
    H₁(Q‖P).
    """
    return max(
        budget.at_least({side: points[side] if side == known else points[known][:1] for side in DIRECTIONS})
        for known in DIRECTIONS
    )


def curve_of(points: Points) -> TradeOff:
    """Return the trade-off curve that the upper bounds certify."""
    remove, add = (tuple(Bound(point.epsilon, point.upper) for point in points[side]) for side in DIRECTIONS)
    return TradeOff(remove, add)

"""The membership advantage as a budget: the true-positive rate minus the false-positive rate of the best attack.

The maximum over tests S of P(S) − Q(S) is the total variation H₁(P‖Q) = δ(0), which is the same in both directions
(Kairouz, Oh & Viswanath 2015; Yeom et al. 2018 for its name). So the budget is kept if and only if (0, A) holds, and
the better of the bounds of the two directions counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pyaccount.directions import DIRECTIONS, Direction
from pyaccount.risk.budget import Budget, Points, curve_of
from pyaccount.risk.tradeoff import SLACK

if TYPE_CHECKING:
    from pyaccount.document.sections import Risk


@dataclass(frozen=True, slots=True)
class AdvantageBudget(Budget):
    """The advantage is at most `limit`."""

    measure: ClassVar[str] = "advantage"
    words: ClassVar[str] = "membership advantage"

    limit: float

    @classmethod
    def of(cls, risk: Risk, delta: float) -> AdvantageBudget | None:
        """Return the budget that `privacy.risk.advantage` sets; None if it is not set."""
        return None if risk.advantage is None else cls(risk.advantage)

    @property
    def note(self) -> str:
        """A short explanation of the measure."""
        return "true- minus false-positive rate"

    def places(self) -> tuple[float, ...]:
        """Return ε = 0, since the advantage depends only on δ(0)."""
        return (0.0,)

    @property
    def negligible(self) -> float:
        """A δ far below every budget."""
        return 1e-9 * self.limit

    def at_most(self, points: Points) -> float:
        """Return an upper bound on the advantage: see `TradeOff.advantage`."""
        return curve_of(points).advantage()

    def at_least(self, points: Points) -> float:
        """Return the smaller of the lower bounds on δ(0) of both directions; `at_most` is of the smaller one too."""
        return min(points[side][0].lower for side in DIRECTIONS)

    def finer(self, points: Points, tolerance: float) -> dict[Direction, tuple[float, ...]]:
        """Return no further points: the interval is as wide as that of δ(0)."""
        return {}

    def claim(self, epsilon: float) -> float | None:
        """Return A for ε = 0, reduced by the rounding of `at_most`."""
        return self.limit * (1.0 - 2.0 * SLACK) if epsilon == 0.0 else None

"""The membership advantage as a budget: true-positive rate minus false-positive rate, whichever error the attacker chooses.

max over tests S of P(S) − Q(S) is the total variation H₁(P‖Q) = δ(0), the same in both directions (Kairouz, Oh & Viswanath 2015;
Yeom et al. 2018 for its name). So the budget is kept if and only if (0, A) holds, and the better of the two directions' bounds
counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pyaccount.directions import DIRECTIONS
from pyaccount.risk.budget import Budget, Points, curve_of
from pyaccount.risk.tradeoff import SLACK

if TYPE_CHECKING:
    from pyaccount.directions import Direction
    from pyaccount.document.sections import Risk


@dataclass(frozen=True, slots=True)
class AdvantageBudget(Budget):
    """The advantage is at most `limit`."""

    measure: ClassVar[str] = "advantage"

    limit: float

    @classmethod
    def of(cls, risk: Risk, delta: float) -> AdvantageBudget | None:
        """Of `privacy.risk.advantage`."""
        return None if risk.advantage is None else cls(risk.advantage)

    @property
    def words(self) -> str:
        """What is measured."""
        return "membership advantage"

    @property
    def note(self) -> str:
        """What that is."""
        return "true- minus false-positive rate"

    def places(self) -> tuple[float, ...]:
        """δ(0) is all there is to know."""
        return (0.0,)

    @property
    def negligible(self) -> float:
        """Nothing that could be the budget of anything."""
        return 1e-9 * self.limit

    def at_most(self, points: Points) -> float:
        """See `TradeOff.advantage`."""
        return curve_of(points).advantage()

    def at_least(self, points: Points) -> float:
        """The smaller of δ(0) in both directions: the upper end is of that one, too."""
        return min(points[side][0].lower for side in DIRECTIONS)

    def finer(self, points: Points, tolerance: float) -> dict[Direction, tuple[float, ...]]:
        """None: the width is that of δ(0)."""
        return {}

    def claim(self, epsilon: float) -> float | None:
        """(0, A), less the rounding of `at_most`."""
        return self.limit * (1.0 - 2.0 * SLACK) if epsilon == 0.0 else None

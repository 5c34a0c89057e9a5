"""The μ of Gaussian differential privacy as a budget, over a stated range of ε.

**Why over a range.** A mechanism is μ-GDP if δ(ε) ≤ δ_μ(ε) for *every* ε ≥ 0 in both directions. With sampling that is hardly
ever true of a useful μ: a record that takes part in all n rounds is improbable, but beyond some ε nothing else counts, and
there δ falls like that of N(√n/σ, 1) against N(0, 1). Any mechanism with a probability, however small, of losses without
bound has no μ at all. So the budget is kept where δ_μ is at least the δ at which the certificate tells ε: for every ε from 0
to E, δ_μ(E) = that δ.

**What it says about attacks.** The tangent of the trade-off function G_μ(α) = Φ(Φ⁻¹(1 − α) − μ) whose slope is −e^{±ε} is the
line of the point (ε, δ_μ(ε)). So δ ≤ δ_μ from 0 to E proves that no attack does better than against N(μ, 1) and N(0, 1), as
long as both its error rates are at least Φ(−μ/2 − E/μ): `least_rate`. (Dong, Roth & Su 2022, Corollary 2.13, one tangent at a
time.)

**The measure** is the least μ with δ(ε) ≤ δ_μ(ε) for every ε from 0 to E. From above by tangents between points, from below
by the points themselves: `gaussian`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

from pyaccount.directions import DIRECTIONS
from pyaccount.forks import cached_property
from pyaccount.risk.budget import Budget, Enclosure, Points
from pyaccount.risk.gaussian import gaussian_terms, needed_within_range, smallest_possible, suffices
from pyaccount.risk.tradeoff import Bound
from pyaccount.rounding import up

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyaccount.directions import Direction
    from pyaccount.document.sections import Risk

#: No δ that a document may tell lies beyond, for the largest μ that it may say: 10²/2 + 10·36. e^ε is a double there.
FARTHEST = 600.0
#: Halvings of that, down to the last digits of a double.
STEPS = 60
#: How many points are looked at first.
FIRST = 16
#: No points are put between two that are so near.
CLOSE = 1e-9


@dataclass(frozen=True)
class GaussianBudget(Budget):
    """The least μ that suffices from ε = 0 to `last_epsilon` is at most `limit`."""

    measure: ClassVar[str] = "gaussian_mu"
    one_point: ClassVar[bool] = False

    limit: float
    #: The least δ that counts.
    delta: float

    @classmethod
    def of(cls, risk: Risk, delta: float) -> GaussianBudget | None:
        """Of `privacy.risk.gaussian_mu`."""
        return None if risk.gaussian_mu is None else cls(risk.gaussian_mu, delta)

    @property
    def words(self) -> str:
        """What is measured."""
        return "Gaussian μ"

    @property
    def note(self) -> str:
        """Over which range."""
        return f"for every ε from 0 to {self.last_epsilon:.10g}"

    @cached_property
    def last_epsilon(self) -> float:
        """E: where δ_μ has fallen to the least δ that counts, to four digits, rounded up."""
        low, high = 0.0, FARTHEST
        for _ in range(STEPS):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if gaussian_terms(self.limit, middle).most >= self.delta else (low, middle)
        return float(up(high, 4))

    @property
    def least_rate(self) -> float:
        """An error rate from which on no attack does better than against the Gaussian mechanism; rounded up."""
        rate = 0.5 * math.erfc((0.5 * self.limit + self.last_epsilon / self.limit) / math.sqrt(2.0))
        return min(0.5, rate * (1.0 + 1e-9) + 1e-300)

    def details(self) -> dict[str, float]:
        """The range, and the error rates that it covers."""
        return {"last_epsilon": self.last_epsilon, "least_rate": self.least_rate}

    def places(self) -> tuple[float, ...]:
        """Evenly over the range."""
        return (*(self.last_epsilon * k / FIRST for k in range(FIRST)), self.last_epsilon)

    @property
    def negligible(self) -> float:
        """Far below the least δ that counts: how far a mechanism is below the budget is told, too."""
        return 1e-9 * self.delta

    def at_most(self, points: Points) -> float:
        """The larger of both directions; ∞ where δ can hardly be told from 1."""
        found = [needed_within_range(_upper(points[side])) for side in DIRECTIONS]
        return max(math.inf if mu is None else mu for mu in found)

    def at_least(self, points: Points) -> float:
        """The larger of both directions."""
        return max(smallest_possible(_lower(points[side])) for side in DIRECTIONS)

    def finer(self, points: Points, tolerance: float) -> dict[Direction, tuple[float, ...]]:
        """The middle between two points that need more together than the points by themselves are known to."""
        enough = self.at_least(points) * (1.0 + 0.5 * tolerance)
        found: dict[Direction, tuple[float, ...]] = {}
        for side in DIRECTIONS:
            found[side] = tuple(
                0.5 * (left.epsilon + right.epsilon)
                for left, right in pairwise(_upper(points[side]))
                if right.epsilon - left.epsilon > CLOSE and not suffices(enough, (left, right))
            )
        return {side: places for side, places in found.items() if places}


def _upper(points: Sequence[Enclosure]) -> list[Bound]:
    return [Bound(point.epsilon, point.upper) for point in points]


def _lower(points: Sequence[Enclosure]) -> list[Bound]:
    return [Bound(point.epsilon, point.lower) for point in points]

"""The μ of Gaussian differential privacy as a budget, over a stated range of ε.

**Why a range.** A mechanism is μ-GDP if δ(ε) ≤ δ_μ(ε) for *every* ε ≥ 0 in both directions. With sampling this is
hardly ever true for a useful μ: a record that takes part in all n rounds is improbable, but beyond some ε only this
event counts, and there δ falls like that of N(√n/σ, 1) against N(0, 1). A mechanism whose losses are unbounded with
positive probability, however small, has no μ at all. So the budget applies where δ_μ is at least the δ at which the
certificate reports ε: for every ε from 0 to E, where δ_μ(E) is that δ.

**What it says about attacks.** The tangent of the trade-off function G_μ(α) = Φ(Φ⁻¹(1 − α) − μ) with slope −e^{±ε} is
the line of the point (ε, δ_μ(ε)). So δ ≤ δ_μ from 0 to E proves that no attack is better than one on N(μ, 1) and N(0,
1), if both its error rates are at least Φ(−μ/2 − E/μ): `least_rate`. (Dong, Roth & Su 2022, Corollary 2.13, applied to
one tangent at a time.)

**The measure** is the least μ with δ(ε) ≤ δ_μ(ε) for every ε from 0 to E. `gaussian` bounds it from above by tangents
between points, and from below by the points themselves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

from pyaccount.directions import DIRECTIONS, Direction
from pyaccount.forks import cached_property
from pyaccount.risk.budget import Budget, Enclosure, Points
from pyaccount.risk.gaussian import gaussian_terms, needed_within_range, smallest_possible, suffices
from pyaccount.risk.tradeoff import Bound
from pyaccount.rounding import up

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyaccount.document.sections import Risk

#: An ε beyond E for every allowed μ and δ: at most 10²/2 + 10·36. e^ε is still a double there.
FARTHEST = 600.0
#: Bisection steps in this range, down to the last digits of a double.
STEPS = 60
#: The number of points to begin with.
FIRST = 16
#: No points are added between two that are closer than this.
CLOSE = 1e-9


@dataclass(frozen=True)
class GaussianBudget(Budget):
    """The least μ that suffices from ε = 0 to `last_epsilon` is at most `limit`."""

    measure: ClassVar[str] = "gaussian_mu"
    words: ClassVar[str] = "Gaussian μ"
    one_point: ClassVar[bool] = False

    limit: float
    #: The δ at which ε is reported; smaller values do not count.
    delta: float

    @classmethod
    def of(cls, risk: Risk, delta: float) -> GaussianBudget | None:
        """Return the budget that `privacy.risk.gaussian_mu` sets; None if it is not set."""
        return None if risk.gaussian_mu is None else cls(risk.gaussian_mu, delta)

    @property
    def note(self) -> str:
        """The range of ε in words."""
        return f"for every ε from 0 to {self.last_epsilon:.10g}"

    @cached_property
    def last_epsilon(self) -> float:
        """E: where δ_μ has fallen to `delta`, rounded up to four digits."""
        low, high = 0.0, FARTHEST
        for _ in range(STEPS):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if gaussian_terms(self.limit, middle).most >= self.delta else (low, middle)
        return float(up(high, 4))

    @property
    def least_rate(self) -> float:
        """The error rate, rounded up, from which on no attack is better than one on the Gaussian mechanism."""
        rate = 0.5 * math.erfc((0.5 * self.limit + self.last_epsilon / self.limit) / math.sqrt(2.0))
        return min(0.5, rate * (1.0 + 1e-9) + 1e-300)

    def details(self) -> dict[str, float]:
        """Return the range, and the least error rate to which it applies."""
        return {"last_epsilon": self.last_epsilon, "least_rate": self.least_rate}

    def places(self) -> tuple[float, ...]:
        """Return ε evenly spaced over the range."""
        return (*(self.last_epsilon * k / FIRST for k in range(FIRST)), self.last_epsilon)

    @property
    def negligible(self) -> float:
        """A δ far below `delta`, because the certificate also reports how far a mechanism is below its budget."""
        return 1e-9 * self.delta

    def at_most(self, points: Points) -> float:
        """Return the larger upper bound of both directions; ∞ if δ is indistinguishable from 1."""
        bounds = [needed_within_range(_upper(points[side])) for side in DIRECTIONS]
        return max(math.inf if mu is None else mu for mu in bounds)

    def at_least(self, points: Points) -> float:
        """Return the larger lower bound of both directions."""
        lower = [tuple(Bound(point.epsilon, point.lower) for point in points[side]) for side in DIRECTIONS]
        return max(map(smallest_possible, lower))

    def finer(self, points: Points, tolerance: float) -> dict[Direction, tuple[float, ...]]:
        """Return the middle between two points if the gap between them needs a larger μ than the points themselves."""
        enough = self.at_least(points) * (1.0 + 0.5 * tolerance)
        found: dict[Direction, tuple[float, ...]] = {}
        for side in DIRECTIONS:
            found[side] = tuple(
                0.5 * (left.epsilon + right.epsilon)
                for left, right in pairwise(_upper(points[side]))
                if right.epsilon - left.epsilon > CLOSE and not suffices(enough, (left, right))
            )
        return {side: places for side, places in found.items() if places}


def _upper(points: Sequence[Enclosure]) -> tuple[Bound, ...]:
    return tuple(Bound(point.epsilon, point.upper) for point in points)

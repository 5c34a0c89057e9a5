"""The true-positive rate at a false-positive rate as a budget.

Write x = e^ε and δ(x) = H_x(P‖Q) for all x > 0. The largest true-positive rate of a test for presence at the
false-positive rate α is

    t(α) = min over x > 0 of g(x),   g(x) = α x + δ(x)

(Dong, Roth & Su 2022, Proposition 2.12: the trade-off function is the conjugate of the profile). Its points with x ≥ 1
are those of the direction *remove*; with H_x(P‖Q) = 1 − x + x H_{1/x}(Q‖P), those with x ≤ 1 are those of *add*. For
absence P and Q are exchanged. The budget is kept if both rates are at most the limit. **From above** every point gives
a bound: `TradeOff`.

**From below.** δ(x) is convex and decreasing, with slopes of at least −1, and δ(x) ≥ (1 − x)₊. So g is convex and its
slopes are between α − 1 and α. Between two neighbouring points g is above the line through the two points to the left
(with the lower bound on δ at the nearer one and the upper bound at the farther one), or with the slope α − 1 if there
are not two. It is likewise above the line through the two points to the right. The minimum of the larger of the two
lines, at an end or where they cross, is a lower bound on g there. Beyond the last point g ≥ α x, before the first g ≥ 1
− (1 − α) x, which closes both ends. Bounds of the two directions need not be of one pair, so the points of each
direction are treated separately.

**One point is a proof.** t(α) ≤ T follows from any (ε, δ) in both directions with e^ε α + δ ≤ T, and likewise for
absence. If α + T ≤ 1, nothing is lost by requiring ε ≥ 0, provided that one direction is the larger one for all ε: the
trade-off function of the larger profile is symmetric and convex, so that its slope at a point above the diagonal is −1
or steeper.

**Rounding.** x·|δ′(x)| ≤ P(L ≥ ε) ≤ 1 for x ≥ 1, and |g′| ≤ 1 for x ≤ 1, so the rounding of x changes g by no more than
(1 + α x) units. Together with the rounding of the sum this is below `UNITS` times (1 + α x). The bounds at each point
are moved apart by that much, so that slopes between close points remain bounds. A value read off the lines is below 1:
a height, and a slope times a distance no larger than the two together. These are some ten roundings, for which `GUARD`
and `SMALLEST` are subtracted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from pyaccount.risk.budget import Budget, Enclosure, Points, curve_of
from pyaccount.risk.implied import implied
from pyaccount.risk.tradeoff import OVERFLOW, SLACK, Bound, TradeOff

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyaccount.directions import Direction
    from pyaccount.document.sections import Risk

#: The relative and the absolute amount by which lower bounds are reduced.
GUARD, SMALLEST = 1e-12, 1e-14
#: The amount, times 1 + α x, by which the bounds on g at a point are moved apart.
UNITS = 2.0**-49
#: The number of points to begin with, and of points that are added between two of them.
FIRST, BETWEEN = 24, 4
#: Points that are closer than this are treated as one when slopes between them are computed.
APART = 1e-9


class Spot(NamedTuple):
    """Bounds at one x: `lower` ≤ g(x) ≤ `upper`."""

    x: float
    lower: float
    upper: float


class Ray(NamedTuple):
    """The line through (x, y) with a given slope."""

    x: float
    y: float
    slope: float

    def at(self, x: float) -> float:
        """Return the height of the line at `x`."""
        return self.y + self.slope * (x - self.x)


class Gap(NamedTuple):
    """The interval between two values of x, and a lower bound `least` on g in it."""

    left: float
    right: float
    least: float


@dataclass(frozen=True, slots=True)
class RateBudget(Budget):
    """The true-positive rate at the false-positive rate `alpha` is at most `limit`; α + limit ≤ 1."""

    measure: ClassVar[str] = "true_positive_rate"
    words: ClassVar[str] = "true-positive rate"

    limit: float
    alpha: float

    @classmethod
    def of(cls, risk: Risk, delta: float) -> RateBudget | None:
        """Return the budget that `privacy.risk.true_positive_rate` and `false_positive_rate` set, or None."""
        if risk.true_positive_rate is None or risk.false_positive_rate is None:
            return None
        return cls(risk.true_positive_rate, risk.false_positive_rate)

    @property
    def note(self) -> str:
        """The false-positive rate in words."""
        return f"at a false-positive rate of {self.alpha:.10g}"

    def details(self) -> dict[str, float]:
        """Return the false-positive rate."""
        return {"false_positive_rate": self.alpha}

    def places(self) -> tuple[float, ...]:
        """Return ε evenly spaced from 0 to −ln α, where e^ε α is 1."""
        last = -math.log(self.alpha)
        return tuple(last * k / FIRST for k in range(FIRST + 1))

    @property
    def negligible(self) -> float:
        """A δ negligible compared with α, which is a lower bound on every rate."""
        return 1e-6 * self.alpha

    def at_most(self, points: Points) -> float:
        """Return the larger of the upper bounds for the two tests."""
        curve = curve_of(points)
        return max(curve.true_positive_rate(self.alpha), curve.swapped.true_positive_rate(self.alpha))

    def at_least(self, points: Points) -> float:
        """Return the larger of the lower bounds for the two tests; the module's docstring has the proof."""
        return max(self.least_of_test(points, test) for test in TESTS)

    def finer(self, points: Points, tolerance: float) -> dict[Direction, tuple[float, ...]]:
        """Return further points in the gaps where g may be smallest, for each test that decides the bound."""
        decided = self.at_least(points)
        found: dict[Direction, set[float]] = {}
        curve = curve_of(points)
        for test, of_test in zip(TESTS, (curve, curve.swapped), strict=True):
            most = of_test.true_positive_rate(self.alpha)
            if most <= decided:
                continue
            above, below = test
            for side, gaps in ((above, self._above(points[above])), (below, self._below(points[below]))):
                for gap in gaps:
                    if gap.least < most * (1.0 - 0.3 * tolerance) and gap.left < gap.right:
                        near = abs(math.log(gap.right))
                        # The first gap begins at x = 0, that is, ε = ∞; extend it by one step.
                        places = [near + 1.0] if gap.left == 0.0 else _inside(*sorted((abs(math.log(gap.left)), near)))
                        found.setdefault(side, set()).update(places)
        known = {side: {point.epsilon for point in points[side]} for side in found}
        return {side: tuple(sorted(places - known[side])) for side, places in found.items()}

    def claim(self, epsilon: float) -> float | None:
        """Return limit − e^ε α, a δ that implies the budget at this ε, reduced by the rounding of `at_most`."""
        delta = self.limit * (1.0 - 4.0 * SLACK) - math.exp(epsilon) * self.alpha * (1.0 + 4.0 * SLACK)
        return delta if 0.0 < delta < 1.0 else None

    def least_of_test(self, points: Points, test: tuple[Direction, Direction]) -> float:
        """Return the lower bound for one of `TESTS`."""
        above, below = test
        gaps = [*self._above(points[above]), *self._below(points[below])]
        least = min(gap.least for gap in gaps)
        return max(0.0, min(1.0, least) * (1.0 - GUARD) - SMALLEST)

    def _above(self, points: Sequence[Enclosure]) -> list[Gap]:
        """Return the gaps with x ≥ 1: between points of the first direction, and beyond the last with g ≥ α x."""
        spots = [
            _spot(x, self.alpha * x, point.lower, point.upper)
            for point, x in ((point, math.exp(point.epsilon)) for point in points)
        ]
        gaps = self._between(spots)
        last, end = spots[-1], max(1.0 / self.alpha, spots[-1].x)
        left = _from_left(spots, len(spots) - 1, self.alpha - 1.0)
        return [*gaps, Gap(last.x, end, _dip(left, Ray(0.0, 0.0, self.alpha), last.x, end))]

    def _below(self, points: Sequence[Enclosure]) -> list[Gap]:
        """Return the gaps with x ≤ 1, from the other direction's points at 1/x; before the first g ≥ 1 − (1 − α) x."""
        fall = 1.0 - self.alpha
        spots = [
            _spot(x, 1.0 - fall * x, x * point.lower, x * point.upper)
            for point, x in ((point, math.exp(-point.epsilon)) for point in reversed(points))
        ]
        right = _from_right(spots, 0, self.alpha)
        return [Gap(0.0, spots[0].x, _dip(Ray(0.0, 1.0, -fall), right, 0.0, spots[0].x)), *self._between(spots)]

    def _between(self, spots: Sequence[Spot]) -> list[Gap]:
        return [
            Gap(
                left.x,
                right.x,
                _dip(_from_left(spots, k, self.alpha - 1.0), _from_right(spots, k + 1, self.alpha), left.x, right.x),
            )
            for k, (left, right) in enumerate(pairwise(spots))
        ]


def with_more_points(curve: TradeOff, alpha: float) -> float:
    """Return a value below which no additional points can reduce `curve.true_positive_rate(alpha)`.

    It treats the points of the curve as exact, so it is not a bound on any attack. It shows how much more points could
    help.
    """
    points: Points = {"remove": _exact(curve.remove, curve.add), "add": _exact(curve.add, curve.remove)}
    most = curve.true_positive_rate(alpha)
    return min(most, RateBudget(1.0, alpha).least_of_test(points, TESTS[0]))


def _exact(own: Sequence[Bound], other: Sequence[Bound]) -> list[Enclosure]:
    """Return the points of one direction, with what all points imply at them, as if they were exact; includes ε = 0."""
    found: list[Enclosure] = []
    for epsilon in sorted({epsilon for epsilon, _ in own if epsilon < OVERFLOW}):
        # Points with nearly equal e^ε give no reliable slopes.
        if epsilon == 0.0 or epsilon > (found[-1].epsilon if found else 0.0) + APART:
            delta = implied(own, other, epsilon)
            found.append(Enclosure(epsilon, delta, delta))
    if found and found[0].epsilon == 0.0:
        return found
    # δ is decreasing, so δ(0) is at least the value at any other ε.
    return [Enclosure(0.0, found[0].lower if found else 0.0, implied(own, other, 0.0)), *found]


#: The tests of presence and of absence: the direction with points at x ≥ 1, and that with points at x ≤ 1.
TESTS: tuple[tuple[Direction, Direction], ...] = (("remove", "add"), ("add", "remove"))


def _spot(x: float, base: float, lower: float, upper: float) -> Spot:
    """Return bounds on g at x, which is `base` plus a number between `lower` and `upper`."""
    rounding = UNITS * (1.0 + base)
    return Spot(x, base + lower - rounding, base + upper + rounding)


def _from_left(spots: Sequence[Spot], k: int, least: float) -> Ray:
    """Return a line below g to the right of a point, by the slope to the left of it, which is at least `least`."""
    slope = least
    if k > 0:
        slope = max(slope, (spots[k].lower - spots[k - 1].upper) / (spots[k].x - spots[k - 1].x))
    return Ray(spots[k].x, spots[k].lower, slope)


def _from_right(spots: Sequence[Spot], k: int, most: float) -> Ray:
    """Return a line below g to the left of a point, by the slope to the right of it, which is at most `most`."""
    slope = most
    if k + 1 < len(spots):
        slope = min(slope, (spots[k + 1].upper - spots[k].lower) / (spots[k + 1].x - spots[k].x))
    return Ray(spots[k].x, spots[k].lower, slope)


def _dip(one: Ray, other: Ray, left: float, right: float) -> float:
    """Return a lower bound on the larger of two lines; it is convex, so least at an end or where they cross."""
    least = min(max(one.at(left), other.at(left)), max(one.at(right), other.at(right)))
    if one.slope == other.slope:
        return least
    cross = one.x + (other.y - one.y + other.slope * (one.x - other.x)) / (one.slope - other.slope)
    if not left < cross < right:
        return least
    # At any position, one of the two lines is no higher than their crossing.
    return min(least, one.at(cross), other.at(cross))


def _inside(left: float, right: float) -> list[float]:
    return [left + (right - left) * k / (BETWEEN + 1) for k in range(1, BETWEEN + 1)]

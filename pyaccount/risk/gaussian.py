"""Which Gaussian mechanism a privacy profile compares with: the μ of Gaussian differential privacy, with its direction.

A mechanism is μ-GDP if no test tells its outcomes apart better than N(μ, 1) from N(0, 1) (Dong, Roth & Su 2022, Definition 2.6):
if for **every** ε ≥ 0 and in both directions δ(ε) ≤ δ_μ(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ) (their Corollary 2.13).

Finitely many points of a profile never prove that: beyond the last ε they only say δ ≤ the last one's, while δ_μ tends to 0.
What they do prove is stated instead, and named so:

* `needed_at_points`: a μ with δ(ε) ≤ δ_μ(ε) **at each of the points**, and nothing between them;
* `needed_within_range`: a μ with δ(ε) ≤ δ_μ(ε) for every ε **within the range of the points**, those between them included;
* `smallest_possible`: from lower bounds on δ, a μ such that the mechanism is not μ′-GDP for any μ′ below it.

**Between points.** δ is convex in x = e^ε, so between two points it lies below their chord. δ_μ is convex in x as well, with
the slope −Φ(−μ/2 − ε/μ), so it lies above each of its tangents. A tangent that is above the chord at both its ends proves
δ ≤ δ_μ between them. The tangent with the chord's own slope is the best one; where it is placed needs no accuracy for the proof
to hold.

**Rounding.** δ_μ = Φ(−t) − R with t = ε/μ − μ/2 and R = e^ε Φ(−t − μ) = e^{−t²/2} m(t + μ), m(t) = Φ(−t) e^{t²/2}; so for t > 0
both terms carry one e^{−t²/2}. Each is moved against the claim by more than its rounding. What carries an e^{−t²/2} below
`UNRESOLVED` is only known to lie between 0 and that: its digits are lost among the smallest doubles. Everything here is the
standard library's: a certificate for a terminal shows these numbers, and must not wait for an array library to load.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from itertools import pairwise
from statistics import NormalDist
from typing import NamedTuple

from pyaccount.risk.tradeoff import OVERFLOW, Bound

#: Whether a μ is enough in one respect.
Condition = Callable[[float], bool]

#: More than the relative error of Mills' ratio, of the exponential, and of the products.
GUARD = 1e-12
#: From here on the series for Mills' ratio is as accurate as the direct form, whose error grows with x².
ASYMPTOTIC = 25.0
#: Below this, a density is as good as 0: doubles of half their digits begin at 1e-308.
UNRESOLVED = 1e-290
#: More than the error of erfc where it is at least 1: a unit in the last place or two.
UNITS = 2.0**-50
_NORMAL = NormalDist()
#: No μ outside this range is searched.
LEAST, GREATEST = 1e-9, 1e6
#: Bisection steps on a logarithmic scale: enough for every digit of a double.
STEPS = 60


class ProfileTerms(NamedTuple):
    """δ_μ(ε) = `tail` − `rest`, each term from below and from above."""

    tail_low: float
    tail_high: float
    rest_low: float
    rest_high: float

    @property
    def least(self) -> float:
        """δ_μ(ε) is at least this."""
        return max(0.0, self.tail_low - self.rest_high)

    @property
    def most(self) -> float:
        """δ_μ(ε) is at most this."""
        return self.tail_high - self.rest_low


def gaussian_terms(mu: float, epsilon: float) -> ProfileTerms:
    """The two terms of δ_μ(ε) = Φ(−t) − R, t = ε/μ − μ/2, with bounds on their rounding."""
    t = epsilon / mu - mu / 2.0
    # t is wrong by a quarter of this at most.
    moved = (epsilon / mu + mu) * 2.0**-50
    # Both terms carry e^{−t²/2}/√(2π); Mills' ratio has the root in it.
    density = math.exp(-0.5 * t * t)
    # A tail below ½, and Mills' ratio, move by |t| + 1 times what t does, relatively.
    guard = GUARD + (abs(t) + 1.0) * moved
    rest = density * _mills(t + mu)
    low, high = rest * (1.0 - guard), rest * (1.0 + guard)
    if density < UNRESOLVED:
        low, high = 0.0, UNRESOLVED
    if t <= 0.0:
        tail = 0.5 * math.erfc(t / math.sqrt(2.0))
        # A tail above ½ moves by its density times what t does, and what t/√2 is rounded by; a density is at most 1.
        slack = UNITS + density * (moved + abs(t) * UNITS)
        return ProfileTerms(tail * (1.0 - slack), tail * (1.0 + slack), low, high)
    if density < UNRESOLVED:
        return ProfileTerms(0.0, UNRESOLVED, low, high)
    tail = density * _mills(t)
    return ProfileTerms(tail * (1.0 - guard), tail * (1.0 + guard), low, high)


def needed_at_points(points: Sequence[Bound]) -> float | None:
    """A μ with δ(ε) ≤ δ_μ(ε) at each ε of `points`, given δ at most there; None if none is found.

    δ_μ(ε) grows with μ, so the smallest such μ is found by bisection; an upper bound. A δ that doubles hardly tell from 1 has
    none, which says nothing of the mechanism itself. A point above the chord of its neighbours counts as the chord does.
    """
    return _needed_at(tuple(points))


def needed_within_range(points: Sequence[Bound]) -> float | None:
    """A μ with δ(ε) ≤ δ_μ(ε) from the first ε of `points` to the last, given δ at most at each; None if none is found.

    The smallest that tangents prove; an upper bound. As for `needed_at_points`, a δ near 1 may have none.
    """
    return _needed_within(tuple(points))


def suffices(mu: float, corners: Sequence[Bound]) -> bool:
    """Whether δ(ε) ≤ δ_μ(ε) is proven from the first ε of a `hull` to the last, given δ at most at its corners."""
    return all(test(mu) for test in _tests(corners))


def smallest_possible(points: Sequence[Bound]) -> float:
    """A μ below which no μ′ makes the mechanism μ′-GDP, given δ **at least** at each ε of `points`; 0 if they exclude none.

    δ_μ′(ε) grows with μ′, so one point with δ_μ′(ε) < δ excludes all below. A lower bound.
    """
    return _smallest(tuple(points))


def hull(points: Sequence[Bound]) -> list[Bound]:
    """The corners of the lower convex hull of the points, with δ over e^ε: each chord bounds δ between its ends."""
    best: dict[float, float] = {}
    for epsilon, delta in points:
        best[epsilon] = min(delta, best.get(epsilon, 1.0))
    kept: list[Bound] = []
    for point in (Bound(*item) for item in sorted(best.items())):
        # δ never rises with ε: what held before holds here.
        corner = Bound(point.epsilon, min(point.delta, kept[-1].delta)) if kept else point
        while len(kept) > 1 and chord(kept[-2], corner, kept[-1].epsilon) <= kept[-1].delta:
            kept.pop()
        kept.append(corner)
    return kept


def sharpened(points: Sequence[Bound]) -> list[Bound]:
    """Each point with the best bound that all of them together give at its ε."""
    corners = hull(points)
    found = []
    for point in points:
        left = max((corner for corner in corners if corner.epsilon <= point.epsilon), key=lambda corner: corner.epsilon)
        right = min(
            (corner for corner in corners if corner.epsilon >= point.epsilon), key=lambda corner: corner.epsilon
        )
        # The chord's roundings are relative to its higher end; those of its differences of ε grow with their size.
        rounding = (right.epsilon - left.epsilon + 8.0) * 2.0**-51
        best = left.delta if left == right else chord(left, right, point.epsilon) + rounding * left.delta
        found.append(Bound(point.epsilon, min(point.delta, best)))
    return found


def chord(left: Bound, right: Bound, epsilon: float) -> float:
    """δ at most at an ε between two points, by convexity in e^ε."""
    width = right.epsilon - left.epsilon
    # Across so wide a gap the chord is flat but for its very end.
    share = math.expm1(epsilon - left.epsilon) / math.expm1(width) if width < OVERFLOW else 0.0
    return left.delta - share * (left.delta - right.delta)


# Every form in which a certificate is shown asks for the numbers of the same points.
_REMEMBERED = 64


@lru_cache(_REMEMBERED)
def _needed_at(points: tuple[Bound, ...]) -> float | None:
    return _least([partial(_reaches, point=point) for point in sharpened(points)])


@lru_cache(_REMEMBERED)
def _needed_within(points: tuple[Bound, ...]) -> float | None:
    return _least(_tests(hull(points)))


@lru_cache(_REMEMBERED)
def _smallest(points: tuple[Bound, ...]) -> float:
    return _bracket([partial(_may_reach, point=point) for point in points])[0]


def _tests(corners: Sequence[Bound]) -> list[Condition]:
    chords = [partial(_above_chord, left=left, right=right) for left, right in pairwise(corners)]
    return [*(partial(_reaches, point=corner) for corner in corners), *chords]


def _least(tests: list[Condition]) -> float | None:
    found = _bracket(tests)[1]
    return found if math.isfinite(found) else None


def _may_reach(mu: float, point: Bound) -> bool:
    """Whether δ_μ is not proven to be below δ at this point."""
    return gaussian_terms(mu, point.epsilon).most >= point.delta


def _reaches(mu: float, point: Bound) -> bool:
    """Whether δ_μ is proven to be at least δ at this point."""
    return gaussian_terms(mu, point.epsilon).least >= point.delta


def _above_chord(mu: float, left: Bound, right: Bound) -> bool:
    """Whether a tangent of δ_μ lies above the chord at both ends: T(ε) = Φ(−t₀) − R₀ e^{ε − ε₀}."""
    width = right.epsilon - left.epsilon
    if left.delta <= 0.0:
        # No δ_μ lies below a chord at 0.
        return True
    if width >= OVERFLOW:
        return False
    slope = (left.delta - right.delta) / math.expm1(width) * math.exp(-min(left.epsilon, OVERFLOW))
    # Where −Φ(−μ/2 − ε/μ) is the slope of the chord, or at the nearer end.
    place = -mu * (mu / 2.0 + _NORMAL.inv_cdf(slope)) if 0.0 < slope < 1.0 else right.epsilon
    place = min(max(place, left.epsilon), right.epsilon)
    terms = gaussian_terms(mu, place)
    return all(terms.tail_low - terms.rest_high * math.exp(end.epsilon - place) >= end.delta for end in (left, right))


def _bracket(tests: list[Condition]) -> tuple[float, float]:
    """Neighbouring μ, the lower one refused (or 0) by a test and the upper one allowed (or ∞) by all; large μ pass each."""
    # What one test refuses need not be asked of the others: the one that refused last comes first.
    tests = list(tests)

    def allowed(mu: float) -> bool:
        for place, test in enumerate(tests):
            if not test(mu):
                tests.insert(0, tests.pop(place))
                return False
        return True

    if allowed(LEAST):
        return 0.0, LEAST
    if not allowed(GREATEST):
        return GREATEST, math.inf
    low, high = LEAST, GREATEST
    for _ in range(STEPS):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if allowed(middle) else (middle, high)
    return low, high


def _mills(t: float) -> float:
    """Φ(−t) e^{t²/2} for t ≥ 0: Mills' ratio over √(2π), with a relative error below 5e-13.

    By erfc as long as that is far from underflow; beyond, by the first terms of ½ erfcx(x) = (1 − 1/2x² + 3/4x⁴ − …)/(2x√π), an
    alternating series whose error is below the first term left out (Abramowitz & Stegun 1964, 7.1.23).
    """
    x = t / math.sqrt(2.0)
    if x < ASYMPTOTIC:
        return 0.5 * math.exp(x * x) * math.erfc(x)
    total, term = 1.0, 1.0
    for k in range(1, 7):
        term *= -(2 * k - 1) / (2.0 * x * x)
        total += term
    return total / (2.0 * x * math.sqrt(math.pi))

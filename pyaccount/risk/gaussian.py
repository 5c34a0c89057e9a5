"""Compares a privacy profile with Gaussian mechanisms: bounds on the μ of Gaussian differential privacy.

A mechanism is μ-GDP if no test distinguishes its outcomes better than N(μ, 1) from N(0, 1) (Dong, Roth & Su 2022,
Definition 2.6), that is, if for **every** ε ≥ 0 and in both directions δ(ε) ≤ δ_μ(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ)
(their Corollary 2.13).

Finitely many points of a profile never prove that: beyond the last ε they only prove that δ is at most the last one,
while δ_μ tends to 0. The following statements, which they do prove, are made instead:

* `needed_at_points`: a μ with δ(ε) ≤ δ_μ(ε) **at each of the points**; it says nothing between them;
* `needed_within_range`: a μ with δ(ε) ≤ δ_μ(ε) for every ε **within the range of the points**, including those between
  them;
* `smallest_possible`: from lower bounds on δ, a μ such that the mechanism is not μ′-GDP for any smaller μ′.

**Between points.** δ is convex in x = e^ε, so between two points it is below their chord. δ_μ is also convex in x, with
the slope −Φ(−μ/2 − ε/μ), so it is above each of its tangents. A tangent that is above the chord at both its ends proves
δ ≤ δ_μ between them. The tangent with the slope of the chord is the best one; the proof holds wherever the point of
contact is placed.

**Rounding.** δ_μ = Φ(−t) − R with t = ε/μ − μ/2 and R = e^ε Φ(−t − μ) = e^{−t²/2} m(t + μ), m(t) = Φ(−t) e^{t²/2}; so
for t > 0 both terms have the same factor e^{−t²/2}. Each term is moved against the claim by more than its rounding. A
term whose factor e^{−t²/2} is below `UNRESOLVED` is only known to be between 0 and that, because its digits are lost
among the smallest doubles. Only the standard library is used here: a certificate on a terminal shows these numbers, and
must not wait until an array library is loaded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from itertools import pairwise
from statistics import NormalDist
from typing import NamedTuple

from pyaccount.risk.tradeoff import OVERFLOW, Bound

#: A condition that μ must meet to be large enough.
Condition = Callable[[float], bool]

#: A bound on the relative error of Mills' ratio, of the exponential, and of the products.
GUARD = 1e-12
#: From this x on the series for Mills' ratio is as accurate as the direct form, whose error grows with x².
ASYMPTOTIC = 25.0
#: A term whose density is below this is only known to be between 0 and this: doubles with half their digits begin at 1e-308.
UNRESOLVED = 1e-290
#: A bound on the relative error of erfc where it is at least 1, which is one or two units in the last place.
UNITS = 2.0**-50
_NORMAL = NormalDist()
#: The range in which μ is searched.
LEAST, GREATEST = 1e-9, 1e6
#: Bisection steps on a logarithmic scale, enough for every digit of a double.
STEPS = 60


class ProfileTerms(NamedTuple):
    """δ_μ(ε) = `tail` − `rest`, with lower and upper bounds on each term."""

    tail_low: float
    tail_high: float
    rest_low: float
    rest_high: float

    @property
    def least(self) -> float:
        """The lower bound on δ_μ(ε)."""
        return max(0.0, self.tail_low - self.rest_high)

    @property
    def most(self) -> float:
        """The upper bound on δ_μ(ε)."""
        return self.tail_high - self.rest_low


def gaussian_terms(mu: float, epsilon: float) -> ProfileTerms:
    """Return the two terms of δ_μ(ε) = Φ(−t) − R, t = ε/μ − μ/2, with bounds on their rounding."""
    t = epsilon / mu - mu / 2.0
    # The error of t is at most a quarter of this.
    moved = (epsilon / mu + mu) * 2.0**-50
    # This is the common factor e^{−t²/2}; the 1/√(2π) is part of `_mills`.
    density = math.exp(-0.5 * t * t)
    # A change of t changes a tail below ½, and Mills' ratio, by a relative error of at most |t| + 1 times it.
    guard = GUARD + (abs(t) + 1.0) * moved
    rest = density * _mills(t + mu)
    low, high = rest * (1.0 - guard), rest * (1.0 + guard)
    if density < UNRESOLVED:
        low, high = 0.0, UNRESOLVED
    if t <= 0.0:
        tail = 0.5 * math.erfc(t / math.sqrt(2.0))
        # The error of a tail above ½ is the density times the error of t and of t/√2; the density is at most 1.
        slack = UNITS + density * (moved + abs(t) * UNITS)
        return ProfileTerms(tail * (1.0 - slack), tail * (1.0 + slack), low, high)
    if density < UNRESOLVED:
        return ProfileTerms(0.0, UNRESOLVED, low, high)
    tail = density * _mills(t)
    return ProfileTerms(tail * (1.0 - guard), tail * (1.0 + guard), low, high)


# All forms of a certificate need these numbers for the same points, so they are cached.
_REMEMBERED = 64


@lru_cache(_REMEMBERED)
def needed_at_points(points: tuple[Bound, ...]) -> float | None:
    """Return a μ with δ(ε) ≤ δ_μ(ε) at each of `points`, which bound δ from above; None if none.

    δ_μ(ε) increases with μ, so the smallest such μ is found by bisection; the result is an upper bound on it. There is
    none if δ is indistinguishable from 1 as a double, which says nothing about the mechanism itself. For a point above
    the chord of its neighbours, the chord is used.
    """
    return _least([partial(_reaches, point=point) for point in sharpened(points)])


@lru_cache(_REMEMBERED)
def needed_within_range(points: tuple[Bound, ...]) -> float | None:
    """Return a μ with δ(ε) ≤ δ_μ(ε) from the first ε of `points` (upper bounds on δ) to the last; None if none.

    It is the smallest one that tangents prove, an upper bound. As for `needed_at_points`, there may be none for a δ
    near 1.
    """
    return _least(_tests(hull(points)))


def suffices(mu: float, corners: Sequence[Bound]) -> bool:
    """Return whether δ(ε) ≤ δ_μ(ε) is proven within the range of a `hull`, given upper bounds on δ at its corners."""
    return all(test(mu) for test in _tests(corners))


@lru_cache(_REMEMBERED)
def smallest_possible(points: tuple[Bound, ...]) -> float:
    """Return a μ such that no smaller μ′ makes the mechanism μ′-GDP, given **lower** bounds on δ; 0 if there is none.

    δ_μ′(ε) increases with μ′, so one point with δ_μ′(ε) < δ excludes all smaller values. The result is a lower bound.
    """
    return _bracket([partial(_may_reach, point=point) for point in points])[0]


def hull(points: Sequence[Bound]) -> list[Bound]:
    """Return the corners of the lower convex hull of the points, with δ over e^ε: its chords bound δ between them."""
    best: dict[float, float] = {}
    for epsilon, delta in points:
        best[epsilon] = min(delta, best.get(epsilon, 1.0))
    kept: list[Bound] = []
    for point in (Bound(*item) for item in sorted(best.items())):
        # δ never increases with ε, so an earlier bound also holds here.
        corner = Bound(point.epsilon, min(point.delta, kept[-1].delta)) if kept else point
        while len(kept) > 1 and chord(kept[-2], corner, kept[-1].epsilon) <= kept[-1].delta:
            kept.pop()
        kept.append(corner)
    return kept


def sharpened(points: Sequence[Bound]) -> list[Bound]:
    """Return each point with the best bound that all points together give at its ε."""
    corners = hull(points)
    bounds = []
    for point in points:
        left = max((corner for corner in corners if corner.epsilon <= point.epsilon), key=lambda corner: corner.epsilon)
        right = min(
            (corner for corner in corners if corner.epsilon >= point.epsilon), key=lambda corner: corner.epsilon
        )
        # The rounding of the chord is relative to its higher end; that of its differences of ε grows with their size.
        rounding = (right.epsilon - left.epsilon + 8.0) * 2.0**-51
        best = left.delta if left == right else chord(left, right, point.epsilon) + rounding * left.delta
        bounds.append(Bound(point.epsilon, min(point.delta, best)))
    return bounds


def chord(left: Bound, right: Bound, epsilon: float) -> float:
    """Return an upper bound on δ at an ε between two points, by convexity in e^ε."""
    width = right.epsilon - left.epsilon
    # Across such a wide gap the chord is flat except near its right end.
    share = math.expm1(epsilon - left.epsilon) / math.expm1(width) if width < OVERFLOW else 0.0
    return left.delta - share * (left.delta - right.delta)


def _tests(corners: Sequence[Bound]) -> list[Condition]:
    chords = [partial(_above_chord, left=left, right=right) for left, right in pairwise(corners)]
    return [*(partial(_reaches, point=corner) for corner in corners), *chords]


def _least(tests: list[Condition]) -> float | None:
    least = _bracket(tests)[1]
    return least if math.isfinite(least) else None


def _may_reach(mu: float, point: Bound) -> bool:
    """Return whether δ_μ may be at least δ at this point, that is, whether it is not proven to be below."""
    return gaussian_terms(mu, point.epsilon).most >= point.delta


def _reaches(mu: float, point: Bound) -> bool:
    """Return whether δ_μ is proven to be at least δ at this point."""
    return gaussian_terms(mu, point.epsilon).least >= point.delta


def _above_chord(mu: float, left: Bound, right: Bound) -> bool:
    """Return whether a tangent of δ_μ, T(ε) = Φ(−t₀) − R₀ e^{ε − ε₀}, is above the chord at both ends."""
    width = right.epsilon - left.epsilon
    if left.delta <= 0.0:
        # δ_μ is positive, so it is above a chord at 0.
        return True
    if width >= OVERFLOW:
        return False
    slope = (left.delta - right.delta) / math.expm1(width) * math.exp(-min(left.epsilon, OVERFLOW))
    # The point where −Φ(−μ/2 − ε/μ) is the slope of the chord, or else the nearer end.
    contact = -mu * (mu / 2.0 + _NORMAL.inv_cdf(slope)) if 0.0 < slope < 1.0 else right.epsilon
    contact = min(max(contact, left.epsilon), right.epsilon)
    terms = gaussian_terms(mu, contact)
    return all(terms.tail_low - terms.rest_high * math.exp(end.epsilon - contact) >= end.delta for end in (left, right))


def _bracket(tests: list[Condition]) -> tuple[float, float]:
    """Return adjacent μ: the lower one fails a test (or is 0), the upper one passes all (or is ∞). Large μ pass."""
    # The test that failed last is tried first, so that the others need not be evaluated.
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
    """Return Φ(−t) e^{t²/2} for t ≥ 0, which is Mills' ratio over √(2π), with a relative error below 5e-13.

    It uses erfc where that is far from underflow, and otherwise the first terms of ½ erfcx(x) = (1 − 1/2x² + 3/4x⁴ −
    …)/(2x√π), an alternating series whose error is below the first omitted term (Abramowitz & Stegun 1964, 7.1.23).
    """
    x = t / math.sqrt(2.0)
    if x < ASYMPTOTIC:
        return 0.5 * math.exp(x * x) * math.erfc(x)
    total, term = 1.0, 1.0
    for k in range(1, 7):
        term *= -(2 * k - 1) / (2.0 * x * x)
        total += term
    return total / (2.0 * x * math.sqrt(math.pi))

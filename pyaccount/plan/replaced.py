"""A record that is replaced by another one, where the records of every run are drawn by Poisson sampling.

Let R be the law of a run in which the record is not drawn, M its law with the record, and M′ with the one in its place, all
given which other records are drawn. Both are drawn with probability q, so the laws of the output are

    P = (1 − q)R + qM  and  Q = (1 − q)R + qM′.

The hockey-stick divergence is jointly convex, so a bound for all draws of the other records bounds the mixture over them.

**If only M against M′ is known**, with the profile h of a replaced record: H_α(P‖Q) ≤ q·h(α) + (1 − q)(1 − α)₊, by joint
convexity, in both directions. This is all that can be said: what a mechanism states about replaced records says nothing about
R, which may have no outcome in common with M and M′. Numbers with a sensitivity attain it in the limit, where they change
without bound if the record is missing.

**If the profiles of a record that is removed and added are known too**, H_α(M‖R) ≤ r(α) and H_α(R‖M′) ≤ a(α), sampling
hides more. For an event A let t = R(A). Then

    M(A) ≤ U(t) = inf_α (r(α) + αt)  and  M′(A) ≥ L(t) = sup_α (t − a(α))/α,  so
    P(A) − αQ(A) ≤ (1 − q)(1 − α)t + q(U(t) − αL(t))  for every α ≥ 0.

The right-hand side is the difference of two laws on [0, 1] up to t: let R be uniform, and U and L the distribution functions of
M and M′ (U(0) is an atom where R has none, and 1 − L(1) another). U is concave and L convex, so the likelihood ratio of the
two mixtures falls with t, intervals from 0 are the best events, and the supremum over t is the profile of this pair. The same
pair bounds the other direction, since each record may be the one that is replaced. No bound from r and a alone is better: the
three laws on [0, 1] have these profiles.

- **Gaussian rounds**, one Gaussian mechanism N(s, 1) against N(0, 1) together: U(t) = Φ(Φ⁻¹(t) + s), L(t) = Φ(Φ⁻¹(t) − s). So
  the pair is (1 − q)N(0, 1) + qN(s, 1) against (1 − q)N(0, 1) + qN(−s, 1). The gradients s and −s attain it.
- **Otherwise** r and a are evaluated at many α. Each value gives a line above U or below L, so the piecewise linear U and L that
  follow are on the safe side, and the pair is finite. A record that is replaced by one that contributes nothing (M′ = R) gives
  the lower end: the sampled pair of a record that is removed, or added.

If the output has the profile h for *any* two data sets, then for α ≥ 1, by advanced joint convexity (Balle, Barthe & Gaboardi
2018, arXiv:1807.01647, Theorem 2),

    H_α(P‖Q) = q·H_z(M‖(1 − β)R + βM′) ≤ q·h(z),  z = 1 + (α − 1)/q,  β = α/z,

since h bounds M against every mixture of such laws. Left of 1 the bound is the reflection of that of the other direction. One
value of all records that is released by randomized response, with probability p if it is the true one and p₀ if it is another
one, p₀ < p, has h(z) = max(p − zp₀, 0) for z ≥ 1. Then q·h(z) = max(p₁ − αp₀, 0) with p₁ = (1 − q)p₀ + qp: the profile of
(p₁, p₀, 1 − p₁ − p₀) against (p₀, p₁, 1 − p₁ − p₀). R = M′ attains it right of 1, and R = M left of it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

from pyaccount.directions import DIRECTIONS
from pyaccount.document.tree import MechanismRelease, Node, TrainingNode
from pyaccount.plan.rounds import DirectedBounds, enclosed, largest_loss, one_round
from pyaccount.profiles import FiniteProfile, PoissonProfile, ProfileKind, Rounds, SubsampledProfile, multiplier_of

#: The source of the bound from the profiles of a record that is removed and added.
TRADE_OFF = (
    "a record that is replaced, by the trade-off functions of its removal and addition (pyaccount/plan/replaced.py)"
)
#: The two data sets of the lower end, unless the rounds of a run are Gaussian.
LOWER_END = "the record is replaced by one that contributes nothing; otherwise the two data sets of each phase"

#: Profiles are evaluated at losses whose distances are at most this share of them, down to this share of the largest.
_SPACING, _SMALLEST = 1e-2, 1e-4
#: The δ beyond which no larger loss is evaluated unless more than half of it remains at the largest one, and this one.
_NEGLIGIBLE, _MOST = 1e-30, 600.0
#: The relative error of a probability that is rounded to a double.
_ROUNDING = 2.0 * sys.float_info.epsilon


def states_removal(node: Node) -> bool:
    """Return whether it is known what the phases inside of a node reveal of a unit that is drawn or not.

    Under replace-one the sensitivity of a mechanism is stated for a record that is replaced. If clients are drawn, nothing limits
    what one of them contributes; then only what holds for any two data sets is known, without another sample inside.
    """
    of_client = node.draw is not None and node.draw.clients
    return all(_states_removal(one, of_client=of_client) for inside in node.inner for one in inside.every())


def _states_removal(node: Node, *, of_client: bool) -> bool:
    if isinstance(node, MechanismRelease):
        return node.mechanism.for_any_data() and not (of_client and node.draw is not None)
    if isinstance(node, TrainingNode):
        return not of_client
    return not (of_client and node.draw is not None)


def replaced_in_sample(run: DirectedBounds, rate: float, count: int, *, gaussian: bool) -> DirectedBounds:
    """Return `count` runs on samples under replace-one, from the rounds of one run under add-remove.

    From above these are rounds of (1 − q)R + qM against (1 − q)R + qM′ on [0, 1], R uniform, with the distribution functions U of
    M and L of M′: see the head of the module, which has the proof. From below they are pairs of two data sets.

    Args:
        run: The rounds of one run on all records if a record is removed or added.
        rate: The probability q that a record is drawn, less than 1.
        count: The number of runs.
        gaussian: Whether the rounds from above and from below are one Gaussian mechanism each. The bound is then attained.
    """
    if gaussian:
        remove = run["remove"]
        above, below = (_of_gaussian(rounds, rate, side) for rounds, side in ((remove.upper, 1), (remove.lower, -1)))
        return enclosed((above, above), (below, below), count)
    above = _of_profiles(run["remove"].upper, run["add"].upper, rate)
    lower = [
        SubsampledProfile(one_round(run[direction].lower, below=True), rate, reverse)
        for direction, reverse in zip(DIRECTIONS, (False, True), strict=True)
    ]
    return enclosed((above, above), (lower[0], lower[1]), count)


def _of_gaussian(rounds: tuple[Rounds, ...], rate: float, side: int) -> ProfileKind:
    """Return (1 − q)N(0, σ²) + qN(1, σ²) against its mirror image, σ rounded to the safe side of one Gaussian round."""
    exact = multiplier_of(rounds)
    sigma = float(exact)
    if (Fraction(sigma) - exact) * side > 0:
        sigma = math.nextafter(sigma, -math.inf * side)
    return PoissonProfile(1, rate, sigma, two_sided=True, reverse=False)


@lru_cache(maxsize=256)
def _of_profiles(remove: tuple[Rounds, ...], add: tuple[Rounds, ...], rate: float) -> ProfileKind:
    """Return the finite pair that follows from upper bounds on the profiles of a removed and of an added record."""
    of_drawn, of_other = (_frontier(_values(rounds)) for rounds in (remove, add))
    # The second is R(A) as a function of M′(A) up to 1, so its inverse is L.
    inverse = {value: place for place, value in reversed(of_other)}
    cells = list(_cells(of_drawn, sorted(inverse.items())))
    q = Fraction(rate)
    above, below = (tuple(float((1 - q) * cell[0] + q * cell[index]) for cell in cells) for index in (1, 2))
    return FiniteProfile(above, below, _ROUNDING)


def _values(rounds: tuple[Rounds, ...]) -> list[tuple[Fraction, Fraction]]:
    """Return points (α, y) with y at least the profile at α, α ascending from 0, where every profile is 1.

    If losses are bounded, the last point is at the largest one, where the profile is 0.
    """
    delta, largest = one_round(rounds, below=False).build().delta, largest_loss(rounds)
    remaining, most = max(_NEGLIGIBLE, 2.0 * delta(_MOST)[1]), 1e-3
    while most < _MOST and delta(most)[1] > remaining:
        most = min(2.0 * most, _MOST)
    size, sizes = most, [0.0]
    while size > _SMALLEST * most:
        sizes.append(size)
        size /= 1.0 + _SPACING
    points = [(Fraction(0), Fraction(1))]
    for loss in sorted({sign * size for size in sizes for sign in (-1.0, 1.0)}):
        # The profile falls, and e^(loss − margin) is at most the rounded e^loss.
        margin = 1e-15 * (1.0 + abs(loss))
        points.append((Fraction(math.exp(loss)), Fraction(delta(loss - margin)[1])))
    if largest is not None and largest.at_most < _MOST:
        end = Fraction(math.exp(largest.at_most + 1e-15 * (1.0 + abs(largest.at_most))))
        points = [*(point for point in points if point[0] < end), (end, Fraction(0))]
    return points


def _frontier(points: Sequence[tuple[Fraction, Fraction]]) -> list[tuple[Fraction, Fraction]]:
    """Return the corners (s, V(s)) of V(s) = min(y + αs) over points (α, y), for s from 0 to 1.

    Only the corners of the lower hull of the points count. V is constant beyond the last corner, where it is 1.
    """
    hull: list[tuple[Fraction, Fraction]] = []
    for point in points:
        while len(hull) > 1 and _slope(hull[-2], hull[-1]) >= _slope(hull[-2], point):
            hull.pop()
        hull.append(point)
    while len(hull) > 1 and hull[-2][1] <= hull[-1][1]:
        hull.pop()
    corners = [(Fraction(0), hull[-1][1])]
    for (alpha, y), right in reversed(list(pairwise(hull))):
        s = -_slope((alpha, y), right)
        corners.append((s, y + alpha * s))
    if corners[-1][0] < 1:
        corners.append((Fraction(1), Fraction(1)))
    return corners


def _slope(left: tuple[Fraction, Fraction], right: tuple[Fraction, Fraction]) -> Fraction:
    return (right[1] - left[1]) / (right[0] - left[0])


def _cells(
    upper: Sequence[tuple[Fraction, Fraction]], lower: Sequence[tuple[Fraction, Fraction]]
) -> Iterator[tuple[Fraction, Fraction, Fraction]]:
    """Yield the probabilities of each cell under R, M and M′, from the corners of U and L."""
    knots = sorted({place for place, _ in (*upper, *lower)})
    u, v = ([*_at(corners, knots)] for corners in (upper, lower))
    yield Fraction(0), u[0], Fraction(0)
    for index in range(1, len(knots)):
        yield knots[index] - knots[index - 1], u[index] - u[index - 1], v[index] - v[index - 1]
    yield Fraction(0), 1 - u[-1], 1 - v[-1]


def _at(corners: Sequence[tuple[Fraction, Fraction]], knots: Sequence[Fraction]) -> Iterator[Fraction]:
    """Yield a piecewise linear function at ascending places; it is constant left of the first corner and right of the last."""
    index = 0
    for place in knots:
        while index + 1 < len(corners) and corners[index + 1][0] <= place:
            index += 1
        here = corners[index]
        if place <= here[0] or index + 1 == len(corners):
            yield here[1]
        else:
            yield here[1] + _slope(here, corners[index + 1]) * (place - here[0])

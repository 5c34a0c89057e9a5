"""What one round reveals: upper bounds of its profile, in both directions.

H_α(P‖Q) = sup_S P(S) − α·Q(S). Shifts are in units of the noise's standard deviation. *Side* 0 is H_α(P‖Q), where P is the law
with the record, and side 1 is H_α(Q‖P). Bounds are asked for at α ≥ 1: below, H_α(P‖Q) = 1 − α + α·H_(1/α)(Q‖P).

**Off thresholds.** If P/Q increases, the supremum is at S = {y > t} with P/Q = α at t. Another threshold gives less: the
difference is at most E_Q|P/Q − α| between the two, so at most |P/Q − α| at the threshold that is used. That number is added.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache
from itertools import pairwise

from .enclosures import exp, ln, root, tail, up
from .lattice import Cells, LossGrid, NotCheckableError, coefficients, repeated

#: By how much weights that are rounded up may exceed 1 together.
ROUNDED = Fraction(1, 1 << 60)


class Round:
    """A bound on the profile of one round."""

    #: Whether one bound holds for both sides; whether values need not be convex, so that their lower hull is taken.
    symmetric = hull = False
    #: Digits that masses need besides the usual ones; and mass, in the last units, that counts as an infinite loss.
    more_digits = infinite = 0
    #: By how many bits, relatively, both sides may differ at α = 1, where those of a pair are equal; 0 for other bounds.
    precise = 1 << 20
    #: The largest loss, if there is one, and whether the bound is that of two data sets.
    largest: Fraction | None = None
    attained = False
    #: A pair of two data sets for the lower end, if the bound is not that of a pair.
    lower: MixtureRound | None = None

    def value(self, grid: LossGrid, k: int, side: int) -> int:
        """Return an upper bound of the profile at e^(kh), k ≥ 0, with grid.bits bits."""
        raise NotCheckableError("a run whose rounds do not compose, inside of a sample or beside others")

    def reflected(self, grid: LossGrid, k: int) -> int | None:
        """Return H_(1/α)(Q‖P) at α = e^(kh), k ≥ 0, computed by itself, for a bound that is that of a pair; else None."""
        return None

    def above(self, grid: LossGrid, k: int) -> tuple[int, int] | None:
        """Return P and Q, within 2^10 units, of a set of outputs with losses above about kh; None if no pair is known."""
        return None if self.lower is None else self.lower.above(grid, k)

    def cells(self, grid: LossGrid, nodes: Sequence[int], side: int) -> Cells | None:
        """Return the masses of the outputs between neighbouring nodes, for one side."""
        one, known = 1 << grid.bits, [self.above(grid, k) for k in nodes]
        pairs = [each for each in known if each is not None]
        if len(pairs) < len(known):
            return None
        # Sets above thresholds are nested, so that both masses fall, whatever thresholds were found.
        edges = [
            (one, one),
            *zip(*(sorted(each, reverse=True) for each in zip(*pairs, strict=True)), strict=True),
            (0, 0),
        ]
        labels = [nodes[0], *(round((a + b) / 2) for a, b in pairwise(nodes)), nodes[-1]]
        scale, error, low = 10**grid.digits, self.infinite + (1 << 11), -nodes[-1] if side else nodes[0]
        masses = [0] * (nodes[-1] - nodes[0] + 1), [0] * (nodes[-1] - nodes[0] + 1)
        for label, before, after in zip(labels, edges, edges[1:], strict=False):
            at, (p, q) = (-label if side else label) - low, (before[i] - after[i] for i in (side, 1 - side))
            masses[0][at] += max(0, p - error) * scale >> grid.bits
            masses[1][at] -= -(q + error) * scale >> grid.bits
        return Cells(low, *masses)


def gaussian(loss: int, alpha: int, s: int, bits: int) -> int:
    """Return an upper bound of G_s(α) = Φ(s/2 − ln α/s) − α·Φ(−s/2 − ln α/s); ln α and α are within a unit, s is not too small.

    A unit of α adds at most 2, the two tails 2 + α. The threshold errs by η ≤ 2/s + 4 units, over which P/Q changes by less than
    α·s·η·2, so that less than α·s·η² is missing: below a unit for s ≥ 2^(−bits/2) (checked) and α < 2^(bits/2 − 4); beyond that
    α, P alone is the bound that counts.
    """
    if not s >> bits // 2:
        raise NotCheckableError("noise that is so large")
    middle = (loss << bits) // s
    p, q = tail(middle - (s >> 1), bits), tail(middle + (s >> 1), bits)
    return min(p + 2, p - (alpha * q >> bits) + 8 + 4 * (alpha >> bits))


class GaussianRound(Round):
    """N(s) against N(0)."""

    symmetric = True

    def __init__(self, square: Fraction) -> None:
        """Take s²."""
        self.square = square

    def value(self, grid: LossGrid, k: int, side: int = 0) -> int:
        """Return G_s; s is rounded up, which is a larger pair."""
        return gaussian(grid.loss(k), grid.alpha(k), root(self.square, grid.bits), grid.bits)

    def reflected(self, grid: LossGrid, k: int) -> int | None:
        """Return the same at −kh."""
        return self.value(grid, -k)

    def above(self, grid: LossGrid, k: int) -> tuple[int, int] | None:
        """Return the masses above the threshold."""
        s = root(self.square, grid.bits)
        middle = (grid.loss(k) << grid.bits) // s
        return tail(middle - (s >> 1), grid.bits), tail(middle + (s >> 1), grid.bits)


class MixtureRound(Round):
    """P = Σ_j w_j·N(j·s) against Q = Σ_j v_j·N(j·s), where no shift of P is below one of Q.

    P/Q increases: its derivative has the sign of Σ w_j·v_i·(j − i)·φ_j·φ_i ≥ 0. Weights of j ≠ 0 and s are rounded up, and the
    weight of 0 is what is left: that moves mass of P up and mass of Q down, of which sets {y > t} see more, and s is a factor
    that more noise takes away again. `lost` of P, and of Q if it has shifts, counts as an infinite loss; what is left out only
    raises H.
    """

    def __init__(
        self,
        w: Mapping[int, Fraction],
        square: Fraction,
        v: Mapping[int, Fraction] | None = None,
        lost: Fraction = Fraction(0),
    ) -> None:
        """Take the weights of j ≠ 0 under P and Q, and s²."""
        self.w, self.v, self.square, self.lost = dict(w), dict(v or {}), square, lost
        sums = [sum(each.values(), lost if each else Fraction(0)) for each in (self.w, self.v)]
        if (
            max(sums) > 1 + lost + ROUNDED
            or min(*self.w.values(), *self.v.values(), lost) < 0
            or 0 in {*self.w, *self.v}
        ):
            raise NotCheckableError("weights that are not those of a law")
        self.increasing = min((*self.w, *([0] if sums[0] < 1 else []))) >= max((*self.v, *([0] if sums[1] < 1 else [])))
        self.symmetric, self._bits, self._last = self.v == {-j: each for j, each in self.w.items()}, 0, 0.0

    def _prepare(self, bits: int) -> None:
        if self._bits == bits:
            return
        self._bits, self.s, one = bits, root(self.square, bits), 1 << bits
        self.infinite = up(self.lost, bits)
        self.p, self.q = ({j: up(each, bits) for j, each in side.items()} for side in (self.w, self.v))
        self.p[0] = max(0, one - sum(self.p.values()) - self.infinite)
        self.q[0] = max(0, one - sum(self.q.values()) - (self.infinite if self.v else 0))
        # The infimum of P/Q if Q is N(0), and else 0.
        self.floor = 0 if self.v else self.p[0]

    def _exponent(self, j: int, t: int) -> int:
        """Return jst − (js)²/2 within 2 units."""
        moved = j * self.s
        return (moved * t >> self._bits) - (moved * moved >> self._bits + 1)

    def _density(self, weights: Mapping[int, int], t: int, size: int) -> tuple[int, int, int]:
        """Return Σ w_j·e^(exponent − size), its derivative by t, and the error of the first: e^x errs by a unit, x by 2."""
        bits, total, slope = self._bits, 0, 0
        for j, weight in weights.items():
            term = weight * exp(self._exponent(j, t) - size, bits) >> bits
            total, slope = total + term, slope + (term * j * self.s >> bits)
        return total, slope, 2 * len(weights) + 2 + 4 * (total >> bits)

    def _threshold(self, ratio: int) -> tuple[int, int]:
        """Return t, and a bound of |P/Q − ratio| there, by Newton's method in integers."""
        bits, t = self._bits, self._guess(ratio)
        best = t, (1 << bits) + ratio
        for _ in range(12):
            # One factor of both densities, so that that of Q is about its largest weight.
            size = max(self._exponent(j, t) for j in self.q)
            p, rise, p_error = self._density(self.p, t, size)
            q, fall, q_error = self._density(self.q, t, size) if self.v else (1 << bits, 0, 0)
            if q <= q_error:
                break
            here = (p << bits) // q
            error = (p_error + q_error * ((here >> bits) + 1) << bits) // (q - q_error) + 2
            best = min(best, (t, abs(here - ratio) + error), key=lambda each: each[1])
            slope = ((rise << bits) - here * fall) // q
            if abs(here - ratio) <= error or slope <= 0:
                break
            t -= max(-(2 << bits), min(2 << bits, (here - ratio << bits) // slope))
        return best

    def _guess(self, ratio: int) -> int:
        """Return a first threshold, in doubles: the logarithm of P/Q, or of what P/Q is above its infimum, has a given value."""
        bits = self._bits
        target, s = math.log(max(1, ratio - self.floor)) - bits * math.log(2.0), self.s / (1 << bits)
        sides = [
            [
                (j * s, math.log(w) - bits * math.log(2.0))
                for j, w in side.items()
                if w and (j or self.v or side is self.q)
            ]
            for side in (self.p, self.q)
        ]

        def loss(t: float) -> tuple[float, float]:
            values = []
            for terms in sides:
                exponents = [w + m * t - m * m / 2 for m, w in terms]
                most = max(exponents)
                sizes = [math.exp(each - most) for each in exponents]
                total = sum(sizes)
                values.append(
                    (most + math.log(total), sum(m * size for (m, _), size in zip(terms, sizes, strict=True)) / total)
                )
            (p, rise), (q, fall) = values
            return p - q - target, rise - fall

        t = self._last
        for _ in range(12):
            value, slope = loss(t)
            if abs(value) < 1e-12 * (1 + abs(target)):
                break
            t -= max(-2.0, min(2.0, value / slope)) if slope > 0 else 0.0
        if abs(value) > 1e-9 * (1 + abs(target)):
            high = 60.0 + 60.0 * s * max(map(abs, (*self.p, *self.q))) + (abs(target) + 40.0) / s
            low = -high
            for _ in range(75):
                t = (low + high) / 2
                low, high = (t, high) if loss(t)[0] < 0 else (low, t)
        self._last = t
        return int(t * (1 << 50)) << bits - 50

    def _sets(self, t: int) -> tuple[int, int]:
        """Return P and Q of y > t, each within 2 units."""
        tails = {j: tail(t - j * self.s, self._bits) for j in {*self.p, *self.q}}
        p, q = (sum(weight * tails[j] for j, weight in side.items()) >> self._bits for side in (self.p, self.q))
        return p, q

    def at(self, alpha: int, bits: int, side: int) -> int:
        """Return a bound at any α > 0 that is given within a unit.

        Masses and α err by 5 units, 3 of them times α. On side 1 the set is {y < t}, P/Q is 1/α at t, and E_P|Q/P − α| between
        two thresholds is α·E_Q|P/Q − 1/α|. Where 1/α is at most the infimum of P/Q, nothing is left but the error of 1/α.
        """
        self._prepare(bits)
        if not self.increasing:
            raise NotCheckableError("a pair whose likelihood ratio is not known to increase")
        one, error = 1 << bits, 8 * ((alpha >> bits) + 2) + (self.infinite if self.v or not side else 0)
        ratio = (one * one) // alpha if side else alpha
        if ratio <= self.floor + 2:
            return error if side else one - alpha + error
        t, missed = self._threshold(ratio)
        p, q = self._sets(t)
        if not side:
            return p - (alpha * q >> bits) + missed + error
        whole = sum(self.p.values()), sum(self.q.values())
        return whole[1] - q - (alpha * (whole[0] - p) >> bits) + (alpha * missed >> bits) + error

    def value(self, grid: LossGrid, k: int, side: int) -> int:
        """Return the bound at e^(kh)."""
        return self.at(grid.alpha(k), grid.bits, side)

    def reflected(self, grid: LossGrid, k: int) -> int | None:
        """Return H of Q against P at e^(−kh)."""
        return None if self.lost else self.at(grid.alpha(-k), grid.bits, 1)

    def above(self, grid: LossGrid, k: int) -> tuple[int, int] | None:
        """Return the masses above the threshold of e^(kh); everything below the infimum of P/Q."""
        self._prepare(grid.bits)
        ratio = grid.alpha(k)
        return (1 << grid.bits, 1 << grid.bits) if ratio <= self.floor + 2 else self._sets(self._threshold(ratio)[0])


class FiniteRound(Round):
    """A pair of laws with finitely many outcomes, exact rationals (P, Q); `lost` counts as an infinite loss."""

    def __init__(
        self, outcomes: Sequence[tuple[Fraction, Fraction]], lost: Fraction = Fraction(0), *, attained: bool = True
    ) -> None:
        """Take the masses of the outcomes."""
        if any(sum(side) != 1 or min(side) < 0 for side in zip(*outcomes, strict=True)):
            raise NotCheckableError("outcomes whose probabilities do not add up to 1")
        self.outcomes, self.lost, self.attained = sorted(outcomes), lost, attained
        self.symmetric = self.outcomes == sorted((q, p) for p, q in outcomes)

    @cache  # noqa: B019 - a round lives as long as its proof
    def _rounded(self, bits: int) -> tuple[list[tuple[int, int]], int]:
        alone = (sum((pair[i] for pair in self.outcomes if not pair[1 - i]), Fraction(0)) for i in (0, 1))
        return [(up(p, bits), up(q, bits)) for p, q in self.outcomes], up(self.lost + max(alone), bits)

    def value(self, grid: LossGrid, k: int, side: int) -> int:
        """Return Σ (P − αQ)₊ + lost; P is rounded up, and a unit of Q and of α are added."""
        pairs, infinite = self._rounded(grid.bits)
        alpha, self.infinite = grid.alpha(k) - 1, infinite + len(pairs)
        gains = (pair[side] - (alpha * (pair[1 - side] - 1) >> grid.bits) for pair in pairs)
        return sum(gain for gain in gains if gain > 0) + up(self.lost, grid.bits)

    def reflected(self, grid: LossGrid, k: int) -> int | None:
        """Return H of Q against P at e^(−kh)."""
        return None if self.lost else self.value(grid, -k, 1)

    def above(self, grid: LossGrid, k: int) -> tuple[int, int] | None:
        """Return the masses of the outcomes with P > αQ."""
        alpha = Fraction(grid.alpha(k), 1 << grid.bits)
        chosen = [pair for pair in self.outcomes if pair[0] > alpha * pair[1]]
        p, q = (up(sum((pair[i] for pair in chosen), Fraction(0)), grid.bits) for i in (0, 1))
        return (p, q) if self.attained else None


def guarantees(points: Sequence[tuple[Fraction, Fraction]], bits: int = 400) -> FiniteRound:
    """Return the pair of a mechanism of which H ≤ δ_i at e^(ε_i) is known in both directions (Kairouz, Oh & Viswanath 2015).

    By reflection H ≤ 1 − (1 − δ_i)·e^(−ε_i) at e^(−ε_i), and H = 1 at 0. So the profile is at most the lower hull of these
    points, constant beyond the last one. A function that is linear between corners (α_i, v_i) is the profile of the outcomes
    with P/Q = α_i, where Q is the change of its slope at α_i, and a loss ∞ of probability v at the last. α_i is moved up, which
    moves a function that does not increase up. Each of the two laws gets what is missing to 1 where the other has nothing, which
    only raises the profile.
    """
    unit, corners = 1 << bits, [(Fraction(0), Fraction(1))]
    right = [(Fraction(exp(up(e, bits), bits) + 2, unit), d) for e, d in sorted(points)]
    left = []
    for e, d in sorted(points, reverse=True):
        alpha = Fraction(exp(up(-e, bits), bits) + 2, unit)
        left.append((alpha, 1 - alpha * (1 - d) + Fraction(8, unit)))
    for alpha, value in (*left, *right):
        if alpha == corners[-1][0] or value >= corners[-1][1]:
            continue
        while len(corners) > 1 and (corners[-1][1] - corners[-2][1]) * (alpha - corners[-2][0]) >= (
            value - corners[-2][1]
        ) * (corners[-1][0] - corners[-2][0]):
            corners.pop()
        corners.append((alpha, value))
    slopes = [(v - w) / (b - a) for (a, v), (b, w) in pairwise(corners)]
    outcomes = [
        (a * (m - n), m - n) for (a, _), m, n in zip(corners[1:], slopes, [*slopes[1:], Fraction(0)], strict=True)
    ]
    left_p, left_q = (1 - sum((each[i] for each in outcomes), Fraction(0)) for i in (0, 1))
    return FiniteRound([*outcomes, (left_p, Fraction(0)), (Fraction(0), left_q)], attained=False)


class LaplaceRound(Round):
    """Lap(θ, 1) against Lap(0, 1): H at e^ε is 1 − e^((ε − θ)/2) for 0 ≤ ε ≤ θ, and 0 above."""

    symmetric = True

    def __init__(self, theta: Fraction, *, attained: bool = True) -> None:
        """Take the sensitivity in units of the scale, and whether this pair is that of two data sets."""
        self.largest, self.attained, self.theta = theta, attained, theta

    def value(self, grid: LossGrid, k: int, side: int) -> int:
        """Return the profile; an exponent errs by a unit."""
        distance = grid.loss(k) - up(self.theta, grid.bits)
        return max(0, (1 << grid.bits) - exp(distance >> 1, grid.bits) + 3) if distance < 0 else 0

    def above(self, grid: LossGrid, k: int) -> tuple[int, int] | None:
        """Return 1 − e^((kh − θ)/2)/2 and e^(−(kh + θ)/2)/2."""
        bits, one, at, theta = grid.bits, 1 << grid.bits, grid.loss(k), up(self.theta, grid.bits)
        if not self.attained or abs(at) >= theta:
            return None if not self.attained else (0, 0) if at > 0 else (one, one)
        return one - (exp(at - theta >> 1, bits) >> 1), exp(-at - theta >> 1, bits) >> 1


class RangeRound(Round):
    """Runs whose losses are each in an interval of length r, and may depend on those before (Dong, Durfee & Rogers 2020).

    One run: h(α) = (e^(r/2) − √α)²/(e^r − 1) for |ln α| ≤ r. Then, with p = (e^r − x)/(e^r − 1), h_n(α) = sup over 1 ≤ x ≤ e^r of
    p·h_(n−1)(α/x) + (1 − p)·h_(n−1)(αe^r/x), on both sides. h_n is convex (a supremum of such functions), so it is below chords
    between α = e^(jg), g = r/parts, and so may be h_(n−1) be replaced. With x = e^(ig)·z, 1 ≤ z ≤ e^g, both arguments are each in
    one cell, whose chords are c − u·e^g/z and d − v·e^g/z. The sum is (K − A·z − B/z)/(e^r − 1), with A = e^(ig)(c − d) and
    B = e^g(e^r·u − v), not negative by convexity. It is at most (K − 2√(AB))/(e^r − 1), and largest at an end of the cell where
    √(B/A) is beyond that end. With 128 further bits, r ≤ 20 and g ≥ 2^−26 all rounding is far below the two units that are added.
    """

    symmetric = True
    #: The most runs that are bounded together.
    MOST = 64

    def __init__(self, r: Fraction, runs: int = 1) -> None:
        """Take r, and the number of runs."""
        self.r, self.runs, self.largest, self.parts = r, runs, r * runs, max(12, min(64, 640 // runs))

    def _one(self, loss: int, bits: int) -> int:
        """Return h at e^loss: exponentials err by 3 units, and e^r − 1 is enclosed."""
        r = up(self.r, bits)
        if abs(loss) >= r:
            return max(0, (1 << bits) - exp(loss, bits) + 1)
        difference, growth = exp(r >> 1, bits) - exp(loss >> 1, bits) + 4, exp(r, bits) - (1 << bits) - 2
        if not growth >> bits // 2:
            raise NotCheckableError("losses in a range that is so small")
        return difference * difference // growth + 1

    @cache  # noqa: B019
    def _nodes(self, bits: int) -> tuple[list[int], list[int]]:
        """Return e^(jg) and h_n there, for j from −(n + 1)·parts on."""
        m, one, most = self.parts, 1 << bits, (self.runs + 1) * self.parts
        losses = [up(self.r * j / m, bits) for j in range(-most, most + 1)]
        alphas, values = [exp(loss, bits) for loss in losses], [self._one(loss, bits) for loss in losses]
        ratios = alphas[most : most + m + 1]
        for n in range(2, self.runs + 1):
            slopes = [(a - b) * one // (ratios[1] - one) for a, b in pairwise(values)]
            inner = range(most - n * m, most + n * m + 1)
            values[inner.start : inner.stop] = [self._supremum(values, slopes, j, ratios, bits) for j in inner]
        return alphas, values

    def _supremum(self, values: list[int], slopes: list[int], j: int, ratios: list[int], bits: int) -> int:
        """Return the supremum over x at one node; values are h_(n−1) at the nodes, slopes u for the cells on their right."""
        growth, whole, m, best = ratios[1], ratios[-1], self.parts, 0
        for i in range(m):
            near, far = j - i - 1, j - i - 1 + m
            u, v = slopes[near], slopes[far]
            c, d = values[near] + u, values[far] + v
            a, b = ratios[i] * (c - d) >> bits, growth * ((whole * u >> bits) - v) >> bits
            most = (whole * c >> bits) - d + (ratios[i] * (growth * (u - v) >> bits) >> bits)
            if b <= a:
                most -= a + b
            elif b >= (a * growth >> bits) * growth >> bits:
                most -= (a * growth >> bits) + (b << bits) // growth
            else:
                most -= 2 * math.isqrt(a * b)
            best = max(best, most)
        return min(1 << bits, (best << bits) // (whole - (1 << bits)) + 1)

    def value(self, grid: LossGrid, k: int, side: int) -> int:
        """Return the profile, on a chord between nodes if there are several runs."""
        bits, alpha, extra = grid.bits, grid.alpha(k), 128
        if self.runs == 1:
            return self._one(grid.loss(k), bits)
        alphas, values = self._nodes(bits + extra)
        wide = alpha - 1 << extra
        i = bisect_right(alphas, wide) - 1
        if i + 1 >= len(alphas):
            return 0
        fall = (values[i] - values[i + 1]) * (wide - alphas[i]) // (alphas[i + 1] - alphas[i])
        return (values[i] - fall >> extra) + 2


class Renyi(Round):
    """Bounds ρ(a) on Rényi divergences in both directions: H_α ≤ e^((a−1)ρ(a))·(a−1)^(a−1)/a^a·α^−(a−1) for each order a > 1.

    (Canonne, Kamath & Steinke 2020, arXiv:2004.00010.) ρ(a) = ξ + aρ for all orders, with a table for some of them if there is
    one: then only those count. Divergences of several mechanisms add up.
    """

    symmetric = hull = True

    def __init__(self, rho: Fraction, xi: Fraction, table: Mapping[Fraction, Fraction] | None = None) -> None:
        """Take ρ, ξ and the table."""
        self.rho, self.xi, self.table = rho, xi, table

    def plus(self, other: Renyi, times: int) -> Renyi:
        """Return the divergences of this and of several others, at the orders that all have."""
        tables = [(each.table, n) for each, n in ((self, 1), (other, times)) if each.table is not None]
        orders = set.intersection(*(set(table) for table, _ in tables)) if tables else set()
        table = {a: sum((table[a] * n for table, n in tables), Fraction(0)) for a in orders} if tables else None
        return Renyi(self.rho + times * other.rho, self.xi + times * other.xi, table)

    def value(self, grid: LossGrid, k: int, side: int) -> int:
        """Return the least value at the orders of the table, or at one that is chosen in doubles; any is a bound."""
        if self.table is not None:
            return min((self._at(grid, k, a, xi) for a, xi in self.table.items()), default=1 << grid.bits)
        low, high, loss = 1e-9, 1e9, k * grid.h
        for _ in range(100):
            a = 1 + math.sqrt(low * high)
            slope = (2 * a - 1) * float(self.rho) + float(self.xi) - loss + math.log1p(-1 / a)
            low, high = (a - 1, high) if slope < 0 else (low, a - 1)
        return self._at(grid, k, 1 + Fraction(round(low * 2**60), 2**60), Fraction(0))

    def _at(self, grid: LossGrid, k: int, order: Fraction, more: Fraction) -> int:
        bits = 2 * grid.bits
        exponent = (order - 1) * (more + self.xi + order * self.rho - Fraction(grid.loss(k), 1 << grid.bits))
        less, whole = (ln(up(each, bits), bits) for each in (order - 1, order))
        total = up(exponent, bits) + math.ceil((order - 1) * (less + 2)) - math.floor(order * (whole - 2))
        return min(1 << grid.bits, (exp(min(0, total), bits) >> grid.bits) + 2)


class Blend(Round):
    """Σ_i w_i·H(P_i‖Q_i): which pair it is, is released, and does not depend on the record."""

    def __init__(self, parts: Sequence[tuple[Fraction, Round]], lower: MixtureRound | None = None) -> None:
        """Take the weights, rounded up, and a pair for the lower end."""
        if not 1 <= sum(weight for weight, _ in parts) <= 1 + ROUNDED or min(weight for weight, _ in parts) < 0:
            raise NotCheckableError("cases whose probabilities do not add up to 1")
        self.parts, self.lower, self.symmetric = list(parts), lower, all(part.symmetric for _, part in parts)

    def value(self, grid: LossGrid, k: int, side: int) -> int:
        """Return the sum of the bounds."""
        return sum((up(weight, grid.bits) * part.value(grid, k, side) >> grid.bits) + 2 for weight, part in self.parts)


class Displaced(Round):
    """A fixed number of draws, where each draw of the record displaces another one (Balle, Barthe & Gaboardi 2018).

    P, Q and M are the laws with the record, with what is in its place, and without draws of either. If it is drawn j times, P
    and M differ by a·j, M and Q by b·j, P and Q by d·j at most. With η the probability of being drawn, α = 1 + (α′ − 1)/η and β
    = α′/α, H_α′(P‖Q) = η·H_α(P₁‖(1 − β)M + βQ₁) for α′ ≥ 1, where P₁ and Q₁ are the laws if it is drawn. That is at most each of

    - *joint* if a = d: Σ_(j≥1) p_j·G_(dj)(α), and else Σ p_j·H_α(N(aj)‖(1−β)N(0) + βN(bj)), whose ratio increases;
    - if all draws come from one sequence: (1−β)·H_α′(Σ p_j N(aj)‖N(0)) + β·Σ p_j G_(dj)(α); and Σ p_j N(aj) against Σ p_j N(−bj).

    Replace-one has (a, b, d) = (2, 2, 2) on both sides; zero-out (2, 1, 1), and (1, 2, 1) on side 1. p_j, η, β and shifts are
    rounded up: each bound grows with them. The least one is a bound, and so is its lower hull, as the profile is convex.
    """

    hull, precise = True, 0

    def __init__(
        self, drawn: Mapping[int, Fraction], lost: Fraction, square: Fraction, *, zeroed: bool, common: bool
    ) -> None:
        """Take p_j for the first j ≥ 1 and the sum of the others, s² of one draw, and what is in the record's place."""
        self.drawn, self.lost, self.square, self.common = dict(drawn), lost, square, common
        self.symmetric, self.eta = not zeroed, min(Fraction(1), sum(drawn.values(), lost))
        self.sides = [(2, 1, 1), (1, 2, 1)] if zeroed else [(2, 2, 2)] * 2
        times = {factor: {factor * j: weight for j, weight in drawn.items()} for factor in (-2, -1, 1, 2)}
        # Two data sets: the record adds 1, and others −1; what is in its place adds nothing, or −1 as well.
        self.lower = MixtureRound(times[2], square, times[1] if zeroed else None, lost)
        self.alone = [MixtureRound(times[a], square, None, lost) for a, _, _ in self.sides]
        self.both = [MixtureRound(times[a], square, times[-b], lost) for a, b, _ in self.sides]

    def value(self, grid: LossGrid, k: int, side: int) -> int:
        """Return the least bound."""
        bits, one, (a, b, d) = grid.bits, 1 << grid.bits, self.sides[side]
        lost, eta, wanted, s = up(self.lost, bits), up(self.eta, bits), grid.alpha(k), root(self.square, bits)
        alpha = one + (((wanted - one) << bits) // eta if k else 0)
        # An error of α of slack units changes a bound by as much, and β by a share of it.
        slack, loss = one // eta + 2, ln(alpha, bits)
        beta = min(one, (wanted << bits) // alpha + slack)
        joint = sum(
            up(p, bits) * (gaussian(loss, alpha, d * j * s, bits) + slack) >> bits for j, p in self.drawn.items()
        )
        joint += len(self.drawn) + lost
        found, self.infinite = [joint], 2 * lost
        if a != d:
            pairs = {
                j: MixtureRound({a: Fraction(1)}, self.square * j * j, {b: Fraction(beta, one)}) for j in self.drawn
            }
            found = [
                sum(up(p, bits) * (pairs[j].at(alpha, bits, 0) + slack) >> bits for j, p in self.drawn.items())
                + len(pairs)
                + lost
            ]
        if self.common:
            shares = one - beta + 2 * slack, beta
            found += [
                (shares[0] * self.alone[side].value(grid, k, 0) + shares[1] * joint >> bits) + 4,
                self.both[side].value(grid, k, 0),
            ]
        return min(found)


#: Masses of a sum of numbers, the least value, and what cutting values took off the mean.
Cut = tuple[list[int], int, int]


class Allocation(Round):
    """One of T rounds at random: (1/T)·Σ_t N(√s_t·e_t) against N(0).

    P/Q is S = (1/T)·Σ Z_t with independent Z_t = e^N(−s/2, s) under Q, so that H_α(P‖Q) = E(S − α)₊ and, since E S = 1, H_α(Q‖P)
    = 1 − α + α·E(S − 1/α)₊. E(Z − x)₊ = G_√s(x). Each Z is replaced by a law on multiples of a step u whose E(Z′ − x)₊ is linear
    between the values of G there, which is larger at every x. It grows further if masses do, if values are raised, and, where
    values are cut down to c, by at most E(value − c)₊. Sums of independent numbers keep this order: given the others, (· − x)₊
    is of this form.
    """

    def __init__(self, shifts: Sequence[tuple[Fraction, int]], small: Fraction) -> None:
        """Take (s, number of rounds) for the squared shifts; `small` is what cutting may add to the profile."""
        self.shifts, self.small, self.total = list(shifts), small, sum(count for _, count in shifts)

    def _one(self, square: Fraction, step: int, grid: LossGrid) -> tuple[list[int], int]:
        """Return masses of Z at the multiples of the step, and E(Z − last)₊, rounded up, in units of the grid's digits."""
        bits, scale, s, cut = (
            grid.bits,
            10**grid.digits,
            root(square, grid.bits),
            int(self.small * (1 << grid.bits) / 4),
        )
        calls = [1 << bits]
        while calls[-1] > cut:
            x = step * len(calls)
            calls.append(gaussian(ln(x, bits), x, s, bits))
        falls = [a - b for a, b in pairwise(calls)]
        masses = [step - falls[0], *(a - b for a, b in pairwise(falls)), falls[-1]]
        return [-(-max(0, mass) * scale // step) for mass in masses], -(-calls[-1] * scale >> bits)

    @cache  # noqa: B019
    def _built(self, grid: LossGrid) -> tuple[list[int], list[int], int, int, int]:
        """Return sums of masses, and of masses times values, from each value on; the least value; the step; what cutting adds."""
        # Rounding S to multiples of h/√T adds about the variance that rounding losses to the lattice adds to them.
        step, scale = max(1, grid.loss(1) * math.isqrt(self.total)), 10**grid.digits
        spare, result, low, added = int(self.small * scale * self.total / 8), [scale], 0, 0

        def join(a: Cut, b: Cut, share: int) -> Cut:
            masses, at, lost = _trimmed(coefficients(a[0], b[0], grid.digits), a[1] + b[1], share, step, grid.bits)
            return masses, at, lost + a[2] + b[2]

        for square, count in self.shifts:

            def of_run(a: Cut, b: Cut, times: int, count: int = count) -> Cut:
                return join(a, b, spare * times // (4 * count))

            masses, rest = self._one(square, step, grid)
            run = repeated((masses, 0, 0), count, of_run)
            result, low, lost = join((result, low, 0), run, spare)
            added += rest * count + lost
        above, weighted = [0], [0]
        for i in range(len(result) - 1, -1, -1):
            above.append(above[-1] + result[i])
            weighted.append(weighted[-1] + result[i] * (low + i))
        return above[::-1], weighted[::-1], low, step, added

    def _call(self, alpha: int, grid: LossGrid) -> int:
        """Return a bound of E(S − α)₊: the sum over the values of S above α, and what was cut."""
        above, weighted, low, step, added = self._built(grid)
        scale = 10**grid.digits
        self.infinite = -(-(added << grid.bits) // (scale * self.total)) + 2
        first = min(max(0, alpha * self.total // step + 1 - low), len(above) - 1)
        gain = weighted[first] * step - alpha * self.total * above[first]
        return int(-(-(gain + (added << grid.bits)) // (scale * self.total))) + 1

    def value(self, grid: LossGrid, k: int, side: int) -> int:
        """Return the profile of one side."""
        alpha, one = grid.alpha(k), 1 << grid.bits
        if not side:
            return self._call(alpha - 1, grid)
        return max(0, one - alpha + 2 + ((alpha + 1) * self._call(max(0, grid.alpha(-k) - 1), grid) >> grid.bits) + 2)


def _trimmed(masses: list[int], low: int, spare: int, step: int, bits: int) -> tuple[list[int], int, int]:
    """Cut large values down while that takes at most `spare` off the mean, and raise small ones of little mass.

    Cutting the values above the last but one down to it moves the mass beyond by one step each time.
    """
    top, lost, beyond = len(masses), 0, 0
    while top > 2 and lost + (more := -(-(beyond + masses[top - 1]) * step >> bits)) <= spare:
        beyond, lost, top = beyond + masses[top - 1], lost + more, top - 1
    first, raised = 0, 0
    while first + 1 < top and raised + masses[first] <= spare // 1000:
        raised, first = raised + masses[first], first + 1
    kept = masses[first:top]
    kept[-1] += beyond
    kept[0] += raised
    return kept, low + first, lost

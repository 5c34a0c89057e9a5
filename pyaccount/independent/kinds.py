"""Further rounds: finite outcomes, Laplace noise, selections, allocations, samples, and bounds on Rényi divergences."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise

from .enclosures import exp, ln, up
from .lattice import SPACING_BITS, Law, LossGrid, multiplied
from .rounds import Round, gaussian
from .shapes import refused


class Atoms(Round):
    """A pair of laws with finitely many outcomes, given as (P, Q), exact; `lost` counts as an infinite loss (section 11)."""

    def __init__(self, outcomes: Sequence[tuple[Fraction, Fraction]], lost: Fraction = Fraction(0)) -> None:
        """Take the masses of the outcomes."""
        self._bits = 0
        if any(sum(side) != 1 or min(side) < 0 for side in zip(*outcomes, strict=True)):
            raise refused("outcomes whose probabilities do not add up to 1")
        self.outcomes, self.lost = sorted(outcomes, key=lambda each: -each[0] / each[1] if each[1] else -math.inf), lost
        self.symmetric = sorted(outcomes) == sorted((q, p) for p, q in outcomes)

    def at(self, alpha: int, grid: LossGrid) -> int:
        """Return Σ (P − αQ)₊ + lost."""
        bits = grid.bits
        if self._bits != bits:
            self._bits, without = bits, sum((p for p, q in self.outcomes if not q), Fraction(0))
            self.infinite = up(self.lost + without, bits) + len(self.outcomes)
            self._rounded = [(up(p, bits), (q.numerator << bits) // q.denominator) for p, q in self.outcomes]
        gains = (p - (q * (alpha - 1) >> bits) for p, q in self._rounded)
        return sum(gain for gain in gains if gain > 0) + up(self.lost, bits)

    def reflected(self, grid: LossGrid, k: int) -> int | None:
        """Return H of Q against P."""
        return None if self.lost else Atoms([(q, p) for p, q in self.outcomes]).value(grid, -k)

    def masses(self, grid: LossGrid, k: int) -> tuple[int, int] | None:
        """Return the masses of the outcomes with P > αQ."""
        alpha = Fraction(grid.alpha(k), 1 << grid.bits)
        above = [(p, q) for p, q in self.outcomes if p > alpha * q]
        p, q = (sum((each[side] for each in above), Fraction(0)) for side in (0, 1))
        return up(p, grid.bits), up(q, grid.bits)


class Guarantees(Round):
    """A mechanism of which only H ≤ δ_i at e^(ε_i) is known, in both directions (section 11; Kairouz, Oh & Viswanath 2015).

    By reflection H ≤ 1 − (1 − δ_i)e^(−ε_i) at e^(−ε_i), and H = 1 at 0. The profile is convex and does not increase, so it is at
    most the lower hull of these points, constant beyond the last; that function is the profile of a pair.
    """

    symmetric = True

    def __init__(self, points: Sequence[tuple[Fraction, Fraction]]) -> None:
        """Take the pairs of ε and δ."""
        self.points = sorted(points)
        self._known: tuple[int, list[tuple[int, int]]] = (0, [])

    def _hull(self, bits: int) -> list[tuple[int, int]]:
        """Return the corners (α, value): α rounded up, which moves a decreasing function up."""
        if self._known[0] != bits:
            one, corners = 1 << bits, list[tuple[int, int]]()
            right = [(exp(up(e, bits), bits) + 2, up(d, bits)) for e, d in self.points]
            left = [
                ((a := exp(-up(e, bits) + 1, bits) + 2), one - a + (up(d, bits) * a >> bits) + 4)
                for e, d in self.points
            ]
            for alpha, value in [(0, one), *reversed(left), *right]:
                while len(corners) > 1 and (corners[-1][1] - corners[-2][1]) * (alpha - corners[-2][0]) >= (
                    value - corners[-2][1]
                ) * (corners[-1][0] - corners[-2][0]):
                    corners.pop()
                if value < corners[-1][1] if corners else True:
                    corners.append((alpha, value))
            self._known, self.infinite = (bits, corners), corners[-1][1] + 2
        return self._known[1]

    def at(self, alpha: int, grid: LossGrid) -> int:
        """Return the hull."""
        alpha, corners = alpha - 1, self._hull(grid.bits)
        for (a, v), (b, w) in pairwise(corners):
            if alpha < b:
                return v - (v - w) * (alpha - a) // (b - a) + 1
        return corners[-1][1]


class LaplaceRound(Round):
    """Lap(θ, 1) against Lap(0, 1): H at e^ε is 1 − e^((ε − θ)/2) for |ε| ≤ θ, 0 above (section 1.4)."""

    symmetric = True

    def __init__(self, theta: Fraction, *, attained: bool = True) -> None:
        """Take the sensitivity in units of the scale, and whether this pair is that of two data sets."""
        self.theta, self.attained = theta, attained

    def value(self, grid: LossGrid, k: int) -> int:
        """Return H at e^(kh), k ≥ 0."""
        distance = grid.at(k) - up(self.theta, grid.bits)
        return max(0, (1 << grid.bits) - exp(distance >> 1, grid.bits) + 3) if distance < 0 else 0

    def masses(self, grid: LossGrid, k: int) -> tuple[int, int] | None:
        """Return P and Q of the losses above kh, for |kh| < θ: 1 − e^((kh − θ)/2)/2 and e^(−(kh + θ)/2)/2."""
        if not self.attained:
            return None
        bits, one, at, theta = grid.bits, 1 << grid.bits, grid.at(k), up(self.theta, grid.bits)
        if abs(at) >= theta:
            return (0, 0) if at > 0 else (one, one)
        return one - (exp((at - theta) >> 1, bits) >> 1), exp((-at - theta) >> 1, bits) >> 1


class BoundedRange(Round):
    """Several runs of the exponential mechanism with losses in a range r, each of which may depend on those before (section 11).

    One run: h(α) = (e^(r/2) − √α)²/(e^r − 1) for |ln α| ≤ r (Dong et al. 2020). Then, with p = (e^r − x)/(e^r − 1),
    h_n(α) = sup over 1 ≤ x ≤ e^r of p·h_(n−1)(α/x) + (1 − p)·h_(n−1)(αe^r/x), in both directions.

    *Bound*: h_n is convex (a supremum of convex functions), so it is below chords between α = e^(jg), g = r/parts, and so may be
    h_(n−1) be replaced. With x = e^(ig)·z, 1 ≤ z ≤ e^g, the two arguments are each in one cell, whose chords are c − u·e^g/z and
    c′ − u′·e^g/z. Then p·… + (1 − p)·… is (K − A·z − B/z)/(e^r − 1), with A = e^(ig)(c − c′) and B = e^g(e^r·u − u′), which
    are not negative by convexity. It is at most (K − 2√(AB))/(e^r − 1), and largest at an end of the cell where √(B/A) is beyond
    that end. With 128 further bits, r ≤ 20 and g ≥ 2^−26 all rounding is far below the two units that are added.
    """

    symmetric = True
    MOST = 64

    def __init__(self, spread: Fraction, runs: int = 1) -> None:
        """Take r, and the number of runs."""
        self.spread, self.runs, self.parts = spread, runs, max(12, min(64, 640 // runs))
        self._known: tuple[int, list[int], list[int]] = (0, [], [])

    def _one(self, alpha: int, loss: int, bits: int) -> int:
        one, r = 1 << bits, up(self.spread, bits)
        if abs(loss) >= r:
            return max(0, one - alpha + 1)
        difference, growth = exp(r >> 1, bits) - exp(loss >> 1, bits) + 4, exp(r, bits) - one - 2
        if growth <= 0:
            raise refused("losses in a range that is so small")
        return difference * difference // growth + 1

    def _nodes(self, bits: int) -> tuple[list[int], list[int]]:
        """Return e^(jg) and h_n there, for j from −(n + 1)·parts on, with `bits` bits."""
        if self._known[0] != bits:
            m, one, most = self.parts, 1 << bits, (self.runs + 1) * self.parts
            losses = [up(self.spread * j / m, bits) for j in range(-most, most + 1)]
            alphas = [exp(loss, bits) for loss in losses]
            values = [self._one(alpha, loss, bits) for alpha, loss in zip(alphas, losses, strict=True)]
            ratios = alphas[most : most + m + 1]
            for n in range(2, self.runs + 1):
                slopes = [(a - b) * one // (ratios[1] - one) for a, b in pairwise(values)]
                inner = range(most - n * m, most + n * m + 1)
                values[inner.start : inner.stop] = [self._supremum(values, slopes, j, ratios, bits) for j in inner]
            self._known = bits, alphas, values
        return self._known[1:]

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

    def value(self, grid: LossGrid, k: int) -> int:
        """Return the profile at e^(kh), k ≥ 0, on a chord between nodes."""
        bits, alpha, extra = grid.bits, grid.alpha(k), 128
        if self.runs == 1:
            return self._one(alpha, grid.at(k), bits)
        alphas, values = self._nodes(bits + extra)
        wide = alpha - 1 << extra
        i = bisect_right(alphas, wide) - 1
        if i + 1 >= len(alphas):
            return 0
        fall = (values[i] - values[i + 1]) * (wide - alphas[i]) // (alphas[i + 1] - alphas[i])
        return (values[i] - fall >> extra) + 2


class Allocation(Round):
    """One of T rounds at random: (1/T)·Σ_t N(√s_t·e_t) against N(0) (section 9.1).

    P/Q = S = (1/T)·Σ Z_t with independent Z_t = e^N(−s/2, s) under Q, and H_α = E(S − α)₊, E(Z − x)₊ = G_√s(x). *Bound*: each
    Z is
    replaced by a law on multiples of a step u whose call function E(Z′ − x)₊ is linear between the values of G at the multiples,
    which is larger for every x. It grows further if masses do, if values are raised, and, where a value is cut down to c, by at
    most E(value − c)₊, since (a + b)₊ ≤ a₊ + b₊. Sums of independent numbers keep this order: given the others, (· − x)₊ is a
    call function.
    """

    def __init__(self, shifts: Sequence[tuple[Fraction, int]], small: Fraction) -> None:
        """Take (s, number of rounds) for the squared shifts s; `small` is what cutting may add to the profile."""
        self.shifts, self.small, self.total = list(shifts), small, sum(count for _, count in shifts)
        self._law: tuple[LossGrid, list[int], list[int], int, int] | None = None

    def _one(self, square: Fraction, step: int, grid: LossGrid, cut: int) -> tuple[list[int], int]:
        """Return masses of Z at the multiples of `step`, rounded up, and E(Z − last)₊, both in units of the grid's digits."""
        bits, scale = grid.bits, 10**grid.digits
        s = math.isqrt((square.numerator << 2 * bits) // square.denominator) + 1
        calls = [1 << bits]
        while calls[-1] > cut:
            calls.append(gaussian(step * len(calls), s, grid))
        steps = [(a - b, b - c) for a, b, c in zip(calls, calls[1:], calls[2:], strict=False)]
        first = (1 << bits) * step - ((calls[0] - calls[1]) << bits)
        masses = [first, *((a - b) << bits for a, b in steps), (calls[-2] - calls[-1]) << bits]
        return [-(-max(0, mass) * scale // (step << bits)) for mass in masses], -(-calls[-1] * scale >> bits)

    def _built(self, grid: LossGrid) -> tuple[LossGrid, list[int], list[int], int, int]:
        """Return sums of masses, and of masses times their values, from each value on; and the step, and what cutting adds."""
        if self._law is not None and self._law[0] == grid:
            return self._law
        bits, scale = grid.bits, 10**grid.digits
        # A step of S of h/√T makes the variance that rounding adds to S near 1 that of rounding a loss to the lattice.
        step = max(1, (grid.spacing << (bits - SPACING_BITS)) * math.isqrt(self.total))
        cut = int(self.small * (1 << bits) / 4)
        spare = int(self.small * scale * self.total / 8)
        result, low, added = [scale], 0, 0
        for square, count in self.shifts:
            masses, rest = self._one(square, step, grid, cut)
            added += rest * count
            run, at, done = masses, 0, 1
            for bit in bin(count)[3:]:
                for other, start, times in ((run, at, 2 * done), *(((masses, 0, 2 * done + 1),) if bit == "1" else ())):
                    run, at, lost = _trimmed(
                        multiplied(run, other, grid.digits), at + start, spare * times // count, step, bits
                    )
                    added += -(-lost * count // times)
                    done = times
            result, low, lost = _trimmed(multiplied(result, run, grid.digits), low + at, spare, step, bits)
            added += lost
        above, weighted = [0], [0]
        for i in range(len(result) - 1, -1, -1):
            above.append(above[-1] + result[i])
            weighted.append(weighted[-1] + result[i] * (low + i))
        self._law = (grid, above[::-1], weighted[::-1], step, added)
        self.infinite = -(-(added << bits) // (scale * self.total)) + 2
        self.low = low
        return self._law

    def value(self, grid: LossGrid, k: int) -> int:
        """Return Σ mass·(S − α)₊ over the values of S above α, with what was cut."""
        _, above, weighted, step, added = self._built(grid)
        scale, alpha = 10**grid.digits, grid.alpha(k) - 1
        first = min(max(0, alpha * self.total // step + 1 - self.low), len(above) - 1)
        gain = weighted[first] * step - alpha * self.total * above[first]
        return int(-(-(gain + (added << grid.bits)) // (scale * self.total))) + 1


def _trimmed(masses: list[int], low: int, spare: int, step: int, bits: int) -> tuple[list[int], int, int]:
    """Cut large values down while that takes at most `spare` off the mean, and raise small ones of little mass."""
    top, lost, beyond = len(masses), 0, 0
    while top > 2:
        # Cutting the values above top − 2 down to it moves the mass beyond by one step each time.
        beyond += masses[top - 1]
        more = -(-beyond * step >> bits)
        if lost + more > spare:
            beyond -= masses[top - 1]
            break
        lost += more
        top -= 1
    raised, first = 0, 0
    while first + 1 < top and raised + masses[first] <= spare // 1000:
        raised += masses[first]
        first += 1
    kept = masses[first:top]
    kept[-1] += beyond
    kept[0] += raised
    return kept, low + first, lost


class SampledRound(Round):
    """A run of a mechanism on a Poisson sample of units that are drawn with all of their data (section 11).

    With the profile h of a run, H_α = q·h(1 + (α − 1)/q) for α > 1 − q, and 1 − α below, in the direction *remove*; the pair is
    ((1 − q)Q + qP, Q), so that the other direction is its reflection. If only others' contributions hide whether a unit was
    drawn (`alone` is false): q·h(α) + (1 − q)(1 − α)₊ in both directions, by joint convexity.
    """

    more_digits = 5

    def __init__(self, run: Callable[[LossGrid], tuple[Law, Law]], q: Fraction, *, alone: bool) -> None:
        """Take the laws of a run on a grid, and the probability of being drawn."""
        self.run, self.q, self.alone = run, q, alone
        self._laws: tuple[LossGrid, list[tuple[list[int], list[int], int, int]]] | None = None

    def _sums(self, grid: LossGrid) -> list[tuple[list[int], list[int], int, int]]:
        if self._laws is None or self._laws[0] != grid:
            sums = []
            for law in self.run(grid):
                p, q = [0], [0]
                for i in range(len(law.masses) - 1, -1, -1):
                    p.append(p[-1] + law.masses[i])
                    q.append(q[-1] + (law.masses[i] * max(0, grid.alpha(-law.low - i) - 1) >> grid.bits))
                sums.append((p[::-1], q[::-1], law.low, law.infinite))
            self._laws = grid, sums
        return self._laws[1]

    def _profile(self, grid: LossGrid, alpha: int, mirrored: int) -> int:
        p, q, low, infinite = self._sums(grid)[mirrored]
        loss = ln(alpha, grid.bits) if alpha > 0 else 0
        first = min(max(0, loss // (grid.spacing << (grid.bits - SPACING_BITS)) - low), len(p) - 1) if alpha > 0 else 0
        gain = max((p[i] << grid.bits) - q[i] * (alpha - 1) for i in range(max(0, first - 1), min(first + 3, len(p))))
        return int(-(-(gain + (infinite << grid.bits)) // 10**grid.digits)) + 1

    def value(self, grid: LossGrid, k: int) -> int:
        """Return the map of the profile; h(α) is 1 − α for α ≤ 0. Products with q are exact before they are rounded."""
        alpha, one = grid.alpha(k), 1 << grid.bits

        def drawn(value: int) -> int:
            return value * self.q.numerator // self.q.denominator + 4

        if self.alone:
            inner = one + (alpha - 1 - one) * self.q.denominator // self.q.numerator
            return drawn(self._profile(grid, inner, 0) if inner > 0 else one - inner)
        if alpha >= one:
            return drawn(self._profile(grid, alpha, 0))
        other = one * one // (alpha + 1)
        added = drawn(self._profile(grid, other - 2, 1))
        return one - alpha + 2 + ((alpha + 1) * added >> grid.bits)


class Divergence(Round):
    """Bounds ρ(a) on Rényi divergences in both directions (section 11; Canonne, Kamath & Steinke 2020).

    ρ(a) = ξ + aρ for all orders, and a table for some is added if there is one: then only those count.
    H_α ≤ e^((a−1)ρ(a))·(a−1)^(a−1)/a^a·α^−(a−1) for each a > 1; the hull of the values at the lattice is taken.
    """

    symmetric, hull = True, True

    def __init__(self, rho: Fraction, xi: Fraction, table: Mapping[Fraction, Fraction] | None = None) -> None:
        """Take ξ, ρ and the table; those of several mechanisms add up."""
        self.rho, self.xi, self.table = rho, xi, table

    def __add__(self, other: Divergence) -> Divergence:
        """Return the sum of the divergences of independent mechanisms, at the orders that both have."""
        tables = [each for each in (self.table, other.table) if each is not None]
        orders = set.intersection(*map(set, tables)) if tables else set()
        table = {a: sum((each[a] for each in tables), Fraction(0)) for a in orders} if tables else None
        return Divergence(self.rho + other.rho, self.xi + other.xi, table)

    def times(self, count: int) -> Divergence:
        """Return the divergences of `count` of them."""
        table = None if self.table is None else {a: each * count for a, each in self.table.items()}
        return Divergence(self.rho * count, self.xi * count, table)

    def value(self, grid: LossGrid, k: int) -> int:
        """Return the least value at the orders of the table, or at one that is chosen in doubles; any is valid."""
        if self.table is not None:
            return min((self._at(grid, k, a, xi) for a, xi in self.table.items()), default=1 << grid.bits)
        loss, rho, xi = k * grid.spacing / (1 << SPACING_BITS), float(self.rho), float(self.xi)
        low, high = 1e-9, 1e9
        for _ in range(100):
            a = 1 + math.sqrt(low * high)
            slope = (2 * a - 1) * rho + xi - loss + math.log1p(-1 / a)
            low, high = (a - 1, high) if slope < 0 else (low, a - 1)
        return self._at(grid, k, 1 + Fraction(round(low * 2**60), 2**60), Fraction(0))

    def _at(self, grid: LossGrid, k: int, order: Fraction, more: Fraction) -> int:
        bits = 2 * grid.bits
        exponent = (order - 1) * (more + self.xi + order * self.rho - Fraction(grid.at(k), 1 << grid.bits))
        less, whole = (ln(up(each, bits), bits) for each in (order - 1, order))
        total = up(exponent, bits) + math.ceil((order - 1) * (less + 2)) - math.floor(order * (whole - 2))
        return min(1 << grid.bits, (exp(min(0, total), bits) >> grid.bits) + 2)

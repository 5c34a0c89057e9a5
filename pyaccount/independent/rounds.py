"""What one round reveals: upper bounds of its profile at e^(kh), and cells for a lower bound.

The references are to sections of mathematics that docs/independent.md repeats. Shifts are in units of the noise's standard
deviation. H_α(P‖Q) = sup_S P(S) − α·Q(S), so a threshold that is slightly off gives less than the supremum: what is missing is
at most
E_Q|P/Q − α| between the two thresholds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise

from .enclosures import exp, tail, up
from .lattice import Cells, LossGrid, logarithm
from .shapes import refused

#: By how much weights that are rounded up may exceed 1 together.
ROUNDED = Fraction(1, 1 << 60)


class Round:
    """A bound on the profile of one round, for all of α > 0.

    `value(grid, k)` is at least H at α = e^(kh), for k ≥ 0 if the round is `symmetric` (its bound holds in both directions), in
    which case H_α ≤ 1 − α + α·H_(1/α) gives the rest; otherwise for every k, in the direction *remove*.
    """

    symmetric = False
    #: Whether values are bounds that need not be convex, so that their lower hull is taken.
    hull = False
    #: Digits that masses need besides the usual ones.
    more_digits = 0
    #: Mass, in units of the last precision, that counts as an infinite loss without being known to be one.
    infinite = 0

    #: A pair of two data sets for the lower end, if there is one that is not the pair of the bound.
    lower: MixtureRound | None = None

    def at(self, alpha: int, grid: LossGrid) -> int:
        """Return an upper bound of H at an α that is given within one unit, with grid.bits bits."""
        raise NotImplementedError

    def value(self, grid: LossGrid, k: int) -> int:
        """Return an upper bound of H at e^(kh) with grid.bits bits."""
        return self.at(grid.alpha(k), grid)

    def masses(self, grid: LossGrid, k: int) -> tuple[int, int] | None:
        """Return P and Q, each within 2^10 units, of the outputs with a loss above about kh; None if there is no such pair."""
        return None if self.lower is None else self.lower.masses(grid, k)

    def reflected(self, grid: LossGrid, k: int) -> int | None:
        """Return H_(1/α)(Q‖P) at α = e^(kh) for a bound that is that of a pair, computed anew; None for other bounds."""
        return None

    def cells(self, grid: LossGrid, nodes: Sequence[int], *, mirrored: bool) -> Cells | None:
        """Return the masses of the outputs between neighbouring nodes, for one direction."""
        one, above = 1 << grid.bits, [self.masses(grid, k) for k in nodes]
        error = self.infinite + (1 << 11)
        known = [pair for pair in above if pair is not None]
        if len(known) < len(above):
            return None
        # Sets above thresholds are nested, so both masses fall from one to the next, whatever thresholds were found.
        falling = (sorted(masses, reverse=True) for masses in zip(*known, strict=True))
        edges = [(one, one), *zip(*falling, strict=True), (0, 0)]
        labels = [nodes[0], *(round((a + b) / 2) for a, b in pairwise(nodes)), nodes[-1]]
        scale = 10**grid.digits
        low, under_p, under_q = -labels[-1] if mirrored else labels[0], [0], [0]
        under_p *= labels[-1] - labels[0] + 1
        under_q *= len(under_p)
        for label, before, after in zip(labels, edges, edges[1:], strict=False):
            p, q = (before[i] - after[i] for i in (mirrored, not mirrored))
            at = (-label if mirrored else label) - low
            under_p[at] += max(0, p - error) * scale >> grid.bits
            under_q[at] += -(-(q + error) * scale >> grid.bits)
        return Cells(low, under_p, under_q)


class MixtureRound(Round):
    """Σ_j w_j·N(j·s) against Σ_j v_j·N(j·s), with P/Q increasing (sections 1.1, 1.2, 3, 4.5).

    If no shift under P is below one under Q, P/Q increases: its derivative has the sign of Σ w_j·v_i·(j − i)·φ_j·φ_i. With other
    shifts there are masses for a lower end, whatever the thresholds, and no upper bound. Weights are rounded up to the precision
    for j ≠ 0, and the weight of 0 is what is left; s is rounded up. That changes the masses of any set by less than (number of
    shifts)·(largest shift + 1) units, which are added to the result.
    """

    def __init__(
        self,
        weights: Mapping[int, Fraction],
        shift: Callable[[int], int],
        against: Mapping[int, Fraction] | None = None,
        lost: Fraction = Fraction(0),
    ) -> None:
        """Take the weights of the shifts j ≠ 0 under P and under Q; `lost` of P counts as an infinite loss."""
        self.given, self.against, self.shift, self.lost = dict(weights), dict(against or {}), shift, lost
        self.symmetric = self.against == {-j: weight for j, weight in self.given.items()}
        whole, other = sum(self.given.values(), lost), sum(self.against.values(), Fraction(0))
        each = (*self.given.values(), *self.against.values(), lost)
        if max(whole, other) > 1 + lost + ROUNDED or min(each) < 0:
            raise refused("weights that are not those of a law")
        self.increasing = min((*self.given, *([0] if whole < 1 else []))) >= max((*self.against, 0))
        self._bits, self.last = 0, 0.0

    def reflected(self, grid: LossGrid, k: int) -> int | None:
        """Return H of Q against P, whose ratio increases once outputs change their sign."""
        if self.lost:
            return None
        sides = [{-j: weight for j, weight in side.items()} for side in (self.against, self.given)]
        return MixtureRound(sides[0], self.shift, sides[1]).value(grid, -k)

    def _prepared(self, bits: int) -> None:
        if self._bits == bits:
            return
        self._bits, self.s, self.infinite = bits, self.shift(bits), up(self.lost, bits)
        self.p, self.q = ({j: up(weight, bits) for j, weight in each.items()} for each in (self.given, self.against))
        self.p[0] = max(0, (1 << bits) - sum(self.p.values()) - self.infinite)
        # What the weights of Q leave out lies at other shifts than 0 as well; without it the profile is larger.
        self.q[0] = max(0, (1 << bits) - sum(self.q.values()) - (self.infinite if self.against else 0))
        # The infimum of P/Q: where Q has no other shifts, it is what P leaves at 0.
        self.floor = self.p[0] + 2 if not self.against else 0
        self.many = (len(self.p) + len(self.q)) * (max(map(abs, (*self.p, *self.q))) + 2)

    def _density(self, weights: Mapping[int, int], t: int, bits: int) -> tuple[int, int]:
        """Return the density over N(0) at t, and its derivative; the first within (number of shifts)·(2 + value) units."""
        density = slope = 0
        for j, weight in weights.items():
            moved = j * self.s
            term = weight * exp((moved * t >> bits) - (moved * moved >> bits + 1), bits) >> bits
            density += term
            slope += term * moved >> bits
        return density, slope

    def _threshold(self, alpha: int, grid: LossGrid) -> tuple[int, int]:
        """Return a threshold, and a bound of E_Q|P/Q − α| between it and the exact one.

        With one shift the threshold is ln((α − w_0)/w_1)/s + s/2, with an error of a unit of α, and of one unit and of s units in
        its product with s, so that |P/Q − α| ≤ 4 + 2α(2 + s) units. With more it is found by Newton's method, and the bound is
        |P/Q − α| at the result and its errors, since P/Q is monotone.
        """
        bits = grid.bits
        if len(self.p) == 2 and not self.against:
            (j,) = (j for j in self.p if j)
            s = j * self.s
            quotient = (alpha - self.p[0] << bits) // self.p[j]
            t = (logarithm(grid, max(1, quotient)) << bits) // s + (s >> 1)
            return t, 8 * ((alpha >> bits) + 1) * ((s >> bits) + 4)
        # E_Q|P/Q − α| is at most 1 + α, whatever the threshold.
        t, best = self._guess(alpha, bits), (0, (1 << bits) + alpha)
        for _ in range(12):
            density, slope = self._density(self.p, t, bits)
            errors = 2 * len(self.p) * ((density >> bits) + 2)
            under, falls = self._density(self.q, t, bits) if self.against else (1 << bits, 0)
            ratio = (density << bits) // max(1, under)
            # The quotient of two numbers that err by e and e′ errs by at most (e + e′·ratio)/(denominator − e′).
            beneath = 2 * len(self.q) * ((under >> bits) + 2) if self.against else 0
            errors += beneath * ((ratio >> bits) + 2)
            missed = abs(ratio - alpha) + (errors << bits) // max(1, under - beneath) + 2
            best = min(best, (t, missed), key=lambda each: each[1])
            step = ((ratio - alpha) << bits) // max(1, ((slope << bits) - ratio * falls) // max(1, under))
            if abs(ratio - alpha) <= missed - abs(ratio - alpha) or not step:
                break
            t -= max(-(2 << bits), min(2 << bits, step))
        return best

    def _guess(self, alpha: int, bits: int) -> int:
        """Return a threshold to begin with, in doubles: by Newton's method from the last one, or else by bisection."""
        s, target = self.s / (1 << bits), math.log(alpha / (1 << bits))
        sides = [[(j * s, math.log(w / (1 << bits))) for j, w in side.items() if w] for side in (self.p, self.q)]

        def log_density(terms: list[tuple[float, float]], t: float) -> tuple[float, float]:
            exponents = [w + m * t - m * m / 2 for m, w in terms]
            most = max(exponents)
            sizes = [math.exp(each - most) for each in exponents]
            total = sum(sizes)
            return most + math.log(total), sum(m * size for (m, _), size in zip(terms, sizes, strict=True)) / total

        def loss(t: float) -> tuple[float, float]:
            (p, p_slope), (q, q_slope) = log_density(sides[0], t), log_density(sides[1], t)
            return p - q - target, p_slope - q_slope

        t = self.last
        for _ in range(12):
            value, slope = loss(t)
            if abs(value) < 1e-12 * (1 + abs(target)):
                break
            t -= max(-2.0, min(2.0, value / slope)) if slope > 0 else 0.0
        if abs(value) > 1e-9 * (1 + abs(target)):
            low = -60.0 - 60.0 * s * max(map(abs, self.p)) - (abs(target) + 40.0) / s
            high = -low
            for _ in range(75):
                t = (low + high) / 2
                low, high = (t, high) if loss(t)[0] < 0 else (low, t)
        self.last = t
        return int(t * (1 << 50)) << (bits - 50)

    def _above(self, t: int, bits: int) -> tuple[int, int]:
        tails = {j: tail(t - j * self.s, bits) for j in {*self.p, *self.q}}
        return _weighed(self.p, tails) >> bits, _weighed(self.q, tails) >> bits

    def masses(self, grid: LossGrid, k: int) -> tuple[int, int] | None:
        """Return the masses above the threshold; everything if α is at most the least ratio."""
        self._prepared(grid.bits)
        alpha = grid.alpha(k)
        if alpha <= self.floor:
            return 1 << grid.bits, 1 << grid.bits
        return self._above(self._threshold(alpha, grid)[0], grid.bits)

    def at(self, alpha: int, grid: LossGrid) -> int:
        """Return P − αQ above the threshold, what it can miss, and what is lost; 1 − α below the least ratio."""
        self._prepared(grid.bits)
        if not self.increasing:
            raise refused("a pair whose likelihood ratio is not known to increase")
        if alpha <= self.floor:
            return (1 << grid.bits) - alpha + 4 + self.infinite
        t, missed = self._threshold(alpha, grid)
        p, q = self._above(t, grid.bits)
        errors = (self.many + 3) * ((alpha >> grid.bits) + 2)
        return p - (alpha * q >> grid.bits) + missed + errors + self.infinite


def _weighed(weights: Mapping[int, int], tails: Mapping[int, int]) -> int:
    return sum(weight * tails[j] for j, weight in weights.items())


def gaussian(alpha: int, s: int, grid: LossGrid) -> int:
    """Return an upper bound of G_s(α) = Φ(s/2 − ln α/s) − α·Φ(−s/2 − ln α/s) (section 1), s and α with grid.bits bits.

    G grows with s and falls with α; α is exact within one unit, which adds at most 2 units. An error η of the threshold below
    2/s + 4 units adds less than αsη² units, as in `MixtureRound`. That s is at least 2^(−bits/2) is checked, so that this is less
    than 1 unit for α < 2^(bits/2 − 3). Where α is so large that these errors matter, P alone is a bound.
    """
    bits = grid.bits
    if not s >> bits // 2:
        raise refused("noise that is so large")
    middle = (logarithm(grid, alpha) << bits) // s
    p, q = tail(middle - (s >> 1), bits), tail(middle + (s >> 1), bits)
    return min(p + 2, p - (alpha * q >> bits) + 8 + 4 * (alpha >> bits))


class GaussianRound(Round):
    """N(s) against N(0): a Gaussian mechanism (section 1)."""

    symmetric = True

    def __init__(self, shift: Callable[[int], int]) -> None:
        """Take s as a function of the bits, rounded up."""
        self.shift = shift

    def at(self, alpha: int, grid: LossGrid) -> int:
        """Return G_s at an α that is given within one unit."""
        return gaussian(alpha, self.shift(grid.bits), grid)

    def reflected(self, grid: LossGrid, k: int) -> int | None:
        """Return G_s at e^(−kh)."""
        return self.value(grid, -k)

    def masses(self, grid: LossGrid, k: int) -> tuple[int, int] | None:
        """Return the masses above the threshold."""
        bits, s = grid.bits, self.shift(grid.bits)
        middle = (grid.at(k) << bits) // s
        return tail(middle - (s >> 1), bits), tail(middle + (s >> 1), bits)


class CountedRound(Round):
    """Σ_c w_c·G_(s√c): the participations are public, and c is what they move, squared (section 4.4)."""

    symmetric = True

    def __init__(self, weights: Mapping[int, Fraction], square: Fraction) -> None:
        """Take the law of c, rounded up, and s²."""
        if not 1 <= sum(weights.values()) <= 1 + ROUNDED or min(weights.values()) < 0:
            raise refused("participations whose probabilities do not add up to 1")
        self.weights, self.square = dict(weights), square

    def at(self, alpha: int, grid: LossGrid) -> int:
        """Return the profile at an α ≥ 1 that is given within one unit."""
        bits, total = grid.bits, 8
        for c, weight in self.weights.items():
            if c:
                s = math.isqrt((c * self.square.numerator << 2 * bits) // self.square.denominator) + 1
                total += (up(weight, bits) * gaussian(alpha, s, grid) >> bits) + 1
        return total

"""What one round reveals: upper bounds of its profile at e^(kh), and cells for a lower bound.

The references are to sections of mathematics that docs/independent.md repeats. Shifts are in units of the noise's standard
deviation. H_α(P‖Q) = sup_S P(S) − α·Q(S), so a threshold that is slightly off gives less than the supremum: what is missing is at most
E_Q|P/Q − α| between the two thresholds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from .enclosures import exp, tail, up
from .lattice import Cells, Grid, logarithm


class Round:
    """A bound on the profile of one round, for all of α > 0.

    `value(grid, k)` is at least H at α = e^(kh), for k ≥ 0 if the round is `symmetric` (its bound holds in both directions), in
    which case H_α ≤ 1 − α + α·H_(1/α) gives the rest; otherwise for every k, in the direction *remove*.
    """

    symmetric = False
    #: Whether values are bounds that need not be convex, so that their lower hull is taken.
    hull = False
    #: Mass, in units of the last precision, that counts as an infinite loss without being known to be one.
    infinite = 0

    def value(self, grid: Grid, k: int) -> int:
        """Return an upper bound of H at e^(kh) with grid.bits bits."""
        raise NotImplementedError

    def masses(self, grid: Grid, k: int) -> tuple[int, int] | None:
        """Return P and Q, each within 2^10 units, of the outputs with a loss above about kh; None if there is no such pair."""
        return None

    def cells(self, grid: Grid, nodes: Sequence[int], *, mirrored: bool) -> Cells | None:
        """Return the masses of the outputs between neighbouring nodes, for one direction."""
        one, above = 1 << grid.bits, [self.masses(grid, k) for k in nodes]
        error = self.infinite + (1 << 11)
        known = [pair for pair in above if pair is not None]
        if len(known) < len(above):
            return None
        edges = [(one, one), *known, (0, 0)]
        labels = [nodes[0], *(round((a + b) / 2) for a, b in zip(nodes, nodes[1:], strict=False)), nodes[-1]]
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


class Mixture(Round):
    """Σ_j w_j·N(j·s) against Σ_j v_j·N(j·s), with P/Q increasing (sections 1.1, 1.2, 3).

    The number of shifts is stochastically increasing in each weight w_j, j ≥ 1, and more shifts and a larger s are never more private
    (Lemma C of section 1). So s and the weights of j ≥ 1 are rounded up, and the weight of 0 is what is left. The mirrored
    law of Q, if any, has the weights of P.
    """

    def __init__(
        self, weights: Mapping[int, Fraction], shift: Callable[[int], int], *, mirrored: bool = False, lost: Fraction = Fraction(0)
    ) -> None:
        """Take weights of the shifts j ≥ 1; `lost` is the weight of shifts that count as an infinite loss."""
        self.given, self.shift, self.symmetric, self.lost = dict(weights), shift, mirrored, lost
        self._bits = 0

    def _prepared(self, bits: int) -> None:
        if self._bits == bits:
            return
        self._bits, self.s = bits, self.shift(bits)
        over = {j: up(weight, bits) for j, weight in self.given.items() if j}
        self.infinite = up(self.lost, bits)
        rest = (1 << bits) - sum(over.values()) - self.infinite
        self.weights = {0: max(0, rest)} | over
        self.start: float | None = None

    def _ratio(self, t: int, bits: int, *, sign: int = 1) -> tuple[int, int]:
        """Return the density of P over N(0) at t, and its derivative; within (number of shifts)·(2 + value) units."""
        density = slope = 0
        for j, weight in self.weights.items():
            moved = sign * j * self.s
            term = weight * exp((moved * t >> bits) - (moved * moved >> bits + 1), bits) >> bits
            density += term
            slope += term * moved >> bits
        return density, slope

    def _threshold(self, alpha: int, grid: Grid) -> tuple[int, int]:
        """Return a threshold, and a bound of |P/Q − α| between it and the exact one, in units of the result.

        With one shift the threshold is (ln((α − w_0)/w_1))/s + s/2. It errs by η < (2/s + s + 4) units, and |P/Q − α| ≤
        2αsη. With more it is found by Newton's method, and the bound is what is left, |P/Q − α| at the result, since P/Q is monotone.
        """
        bits = grid.bits
        if len(self.weights) == 2 and not self.symmetric:
            (j,) = (j for j in self.weights if j)
            s = j * self.s
            quotient = (alpha - self.weights[0] << bits) // self.weights[j]
            t = (logarithm(grid, max(1, quotient)) << bits) // s + (s >> 1)
            return t, 8 * ((alpha >> bits) + 1) * ((s >> bits) + 4)
        t = self._guess(alpha, bits)
        for _ in range(60):
            density, slope = self._ratio(t, bits)
            errors = 2 * len(self.weights) * ((density >> bits) + 2)
            ratio = density
            if self.symmetric:
                other, falls = self._ratio(t, bits, sign=-1)
                if other <= errors:
                    raise ArithmeticError("a threshold was not found")
                ratio = (density << bits) // other
                slope = ((slope << bits) - ratio * falls) // other
                errors = errors * ((ratio >> bits) + 2) * ((1 << bits) // (other - errors) + 2) * 2
            left = abs(ratio - alpha) + errors
            if left <= 4 * errors or slope <= 0:
                break
            limit = 2 << bits
            t -= max(-limit, min(limit, ((ratio - alpha) << bits) // slope))
        return t, left

    def _guess(self, alpha: int, bits: int) -> int:
        """Return a threshold to begin with: by bisection in doubles, from the last one if there is one."""
        s, target = self.s / (1 << bits), math.log(alpha / (1 << bits))
        weights = [(j * s, math.log(w / (1 << bits))) for j, w in self.weights.items() if w]

        def loss(t: float, sign: int) -> float:
            terms = [w + sign * m * t - m * m / 2 for m, w in weights]
            most = max(terms)
            return most + math.log(sum(math.exp(term - most) for term in terms))

        low, high = -60.0 - 40.0 / s, 60.0 + 60.0 * s * max(self.weights) + (abs(target) + 40.0) / s
        for _ in range(70):
            middle = (low + high) / 2
            value = loss(middle, 1) - (loss(middle, -1) if self.symmetric else 0.0)
            low, high = (middle, high) if value < target else (low, middle)
        return int(low * (1 << 50)) << (bits - 50)

    def masses(self, grid: Grid, k: int) -> tuple[int, int] | None:
        """Return the masses above the threshold; everything if α is at most the least ratio."""
        self._prepared(grid.bits)
        alpha = grid.alpha(k)
        if not self.symmetric and alpha <= self.weights[0] + 2:
            return 1 << grid.bits, 1 << grid.bits
        return self._above(self._threshold(alpha, grid)[0], grid.bits)

    def _above(self, t: int, bits: int) -> tuple[int, int]:
        tails = {j: tail(t - j * self.s, bits) for j in self.weights}
        p = sum(w * tails[j] for j, w in self.weights.items()) >> bits
        if not self.symmetric:
            return p, tails[0]
        return p, sum(w * tail(t + j * self.s, bits) for j, w in self.weights.items()) >> bits

    def value(self, grid: Grid, k: int) -> int:
        """Return P − αQ above the threshold, and what it can miss; 1 − α below the least ratio w_0, where that is exact."""
        self._prepared(grid.bits)
        alpha, one = grid.alpha(k), 1 << grid.bits
        return self.at(alpha, grid) + self.infinite if self.symmetric or alpha > self.weights[0] + 2 else one - alpha + 4

    def at(self, alpha: int, grid: Grid) -> int:
        """Return an upper bound of H at an α that is given within one unit."""
        self._prepared(grid.bits)
        if not self.symmetric and alpha <= self.weights[0] + 2:
            return (1 << grid.bits) - alpha + 4
        t, missed = self._threshold(alpha, grid)
        p, q = self._above(t, grid.bits)
        return p - (alpha * q >> grid.bits) + missed + 3 * len(self.weights) + 2 * (alpha >> grid.bits) + 8


def gaussian(alpha: int, s: int, grid: Grid) -> int:
    """Return an upper bound of G_s(α) = Φ(s/2 − ln α/s) − α·Φ(−s/2 − ln α/s) (section 1), s and α with grid.bits bits.

    G grows with s and falls with α; α is exact within one unit, which adds at most 2 units. An error η of the threshold below 2/s + 4 units
    adds less than αsη² < 1 unit, as in `Mixture`.
    """
    bits = grid.bits
    middle = (logarithm(grid, alpha) << bits) // s
    p, q = tail(middle - (s >> 1), bits), tail(middle + (s >> 1), bits)
    return p - (alpha * q >> bits) + 8 + 4 * (alpha >> bits)


class Gaussian(Round):
    """N(s) against N(0): a Gaussian mechanism (section 1), several of which compose to the root of Σ s²."""

    symmetric = True

    def __init__(self, shift: Callable[[int], int]) -> None:
        """Take s as a function of the bits, rounded up."""
        self.shift = shift

    def value(self, grid: Grid, k: int) -> int:
        """Return G_s at e^(kh)."""
        return gaussian(grid.alpha(k), self.shift(grid.bits), grid)

    def masses(self, grid: Grid, k: int) -> tuple[int, int] | None:
        """Return the masses above the threshold."""
        bits, s = grid.bits, self.shift(grid.bits)
        middle = (grid.at(k) << bits) // s
        return tail(middle - (s >> 1), bits), tail(middle + (s >> 1), bits)


class Replaced(Round):
    """Draws of a fixed number, where each draw of the record displaces another one (sections 1.2 and 1.3).

    H_α′ ≤ Σ_(j≥1) p_j·G_(2j)(1 + (α′ − 1)/η) for α′ ≥ 1, in both directions, for replace-one, and for add-remove and zero-out
    as well. p_j, η and the shift are rounded up: the bound grows with each of them, as α falls with η. `best` has further
    bounds; the lower hull of the least of them is a bound, since the profile is convex.
    """

    symmetric = True

    def __init__(self, drawn: Mapping[int, Fraction], lost: Fraction, step: Callable[[int], int], lower: Mixture, best: bool) -> None:
        """Take p_j for the first j ≥ 1 and the sum of the others, and the shift of one displaced draw."""
        self.drawn, self.lost, self.step, self.lower, self.hull = dict(drawn), lost, step, lower, best
        self.both = Mixture(drawn, step, mirrored=True, lost=lost) if best else None

    def value(self, grid: Grid, k: int) -> int:
        """Return the least of the bounds at e^(kh), k ≥ 0."""
        bits, one, s = grid.bits, 1 << grid.bits, self.step(grid.bits)
        eta = up(sum(self.drawn.values(), self.lost), bits)
        wanted = grid.alpha(k)
        alpha = one + (((wanted - one) << bits) // eta if wanted > one else 0)
        slack = one // eta + 2
        joint = sum(up(p, bits) * (gaussian(alpha, j * s, grid) + slack) >> bits for j, p in self.drawn.items())
        joint += len(self.drawn) + up(self.lost, bits)
        if self.both is None:
            return joint
        beta = (wanted << bits) // alpha
        blend = ((one - beta + 2) * self.lower.value(grid, k) + (beta + 2) * joint >> bits) + 4
        return min(joint, blend, self.both.value(grid, k))

    def masses(self, grid: Grid, k: int) -> tuple[int, int] | None:
        """Return those of two concrete data sets: the record adds 1 where others add −1, and so does what replaces it."""
        return self.lower.masses(grid, k)


class Atoms(Round):
    """A pair of laws with finitely many outcomes, given as (P, Q), exact; `lost` counts as an infinite loss (section 11)."""

    def __init__(self, outcomes: Sequence[tuple[Fraction, Fraction]], lost: Fraction = Fraction(0)) -> None:
        """Take the masses of the outcomes."""
        self.outcomes, self.lost = sorted(outcomes, key=lambda each: -each[0] / each[1] if each[1] else -math.inf), lost

    def value(self, grid: Grid, k: int) -> int:
        """Return Σ (P − αQ)₊ + lost."""
        alpha, bits = grid.alpha(k), grid.bits
        gains = (up(p, bits) - ((q.numerator << bits) // q.denominator * (alpha - 1) >> bits) for p, q in self.outcomes)
        return sum(gain for gain in gains if gain > 0) + up(self.lost, bits)

    def masses(self, grid: Grid, k: int) -> tuple[int, int] | None:
        """Return the masses of the outcomes with P > αQ."""
        alpha = Fraction(grid.alpha(k), 1 << grid.bits)
        above = [(p, q) for p, q in self.outcomes if p > alpha * q]
        return up(sum((p for p, _ in above), Fraction(0)), grid.bits), up(sum((q for _, q in above), Fraction(0)), grid.bits)


class Laplace(Round):
    """Lap(θ, 1) against Lap(0, 1): H at e^ε is 1 − e^((ε − θ)/2) for |ε| ≤ θ, 0 above (section 1.4)."""

    symmetric = True

    def __init__(self, theta: Fraction) -> None:
        """Take the sensitivity in units of the scale."""
        self.theta = theta

    def value(self, grid: Grid, k: int) -> int:
        """Return H at e^(kh), k ≥ 0."""
        distance = grid.at(k) - up(self.theta, grid.bits)
        return max(0, (1 << grid.bits) - exp(distance >> 1, grid.bits) + 3) if distance < 0 else 0

    def masses(self, grid: Grid, k: int) -> tuple[int, int] | None:
        """Return P and Q of the losses above kh, for |kh| < θ: 1 − e^((kh − θ)/2)/2 and e^(−(kh + θ)/2)/2."""
        bits, one, at, theta = grid.bits, 1 << grid.bits, grid.at(k), up(self.theta, grid.bits)
        if abs(at) >= theta:
            return (0, 0) if at > 0 else (one, one)
        return one - (exp((at - theta) >> 1, bits) >> 1), exp((-at - theta) >> 1, bits) >> 1

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
    """Σ_j w_j·N(j·s) against Σ_j v_j·N(j·s), with P/Q increasing (sections 1.1, 1.2, 3, 4.5).

    Weights are rounded up to the precision for j ≠ 0, and the weight of 0 is what is left; s is rounded up. That changes the
    masses of any set by less than (number of shifts)·(largest shift + 1) units, which are added to the result.
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
        self._bits = 0

    def _prepared(self, bits: int) -> None:
        if self._bits == bits:
            return
        self._bits, self.s, self.infinite = bits, self.shift(bits), up(self.lost, bits)
        self.p, self.q = ({j: up(weight, bits) for j, weight in each.items()} for each in (self.given, self.against))
        self.p[0] = max(0, (1 << bits) - sum(self.p.values()) - self.infinite)
        self.q[0] = max(0, (1 << bits) - sum(self.q.values()))
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

    def _threshold(self, alpha: int, grid: Grid) -> tuple[int, int]:
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
        t, best = self._guess(alpha, bits), (0, 1 << 4 * bits)  # a bound so large that the profile counts as 1
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
        """Return a threshold to begin with, by bisection in doubles."""
        s, target = self.s / (1 << bits), math.log(alpha / (1 << bits))
        sides = [[(j * s, math.log(w / (1 << bits))) for j, w in side.items() if w] for side in (self.p, self.q)]

        def log_density(terms: list[tuple[float, float]], t: float) -> float:
            exponents = [w + m * t - m * m / 2 for m, w in terms]
            most = max(exponents)
            return most + math.log(sum(math.exp(each - most) for each in exponents))

        reach = 60.0 + 60.0 * s * max(map(abs, self.p)) + (abs(target) + 40.0) / s
        low, high = -reach, reach
        for _ in range(75):
            middle = (low + high) / 2
            value = log_density(sides[0], middle) - log_density(sides[1], middle)
            low, high = (middle, high) if value < target else (low, middle)
        return int(low * (1 << 50)) << (bits - 50)

    def _above(self, t: int, bits: int) -> tuple[int, int]:
        tails = {j: tail(t - j * self.s, bits) for j in {*self.p, *self.q}}
        return tuple(sum(w * tails[j] for j, w in side.items()) >> bits for side in (self.p, self.q))  # type: ignore[return-value]

    def masses(self, grid: Grid, k: int) -> tuple[int, int] | None:
        """Return the masses above the threshold; everything if α is at most the least ratio."""
        self._prepared(grid.bits)
        alpha = grid.alpha(k)
        if alpha <= self.floor:
            return 1 << grid.bits, 1 << grid.bits
        return self._above(self._threshold(alpha, grid)[0], grid.bits)

    def value(self, grid: Grid, k: int) -> int:
        """Return P − αQ above the threshold, and what it can miss; 1 − α below the least ratio, where that is exact."""
        return self.at(grid.alpha(k), grid) + self.infinite

    def at(self, alpha: int, grid: Grid) -> int:
        """Return an upper bound of H, without the mass that is lost, at an α that is given within one unit."""
        self._prepared(grid.bits)
        if alpha <= self.floor:
            return (1 << grid.bits) - alpha + 4
        t, missed = self._threshold(alpha, grid)
        p, q = self._above(t, grid.bits)
        return p - (alpha * q >> grid.bits) + missed + (self.many + 3) * ((alpha >> grid.bits) + 2)


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
        self.both = Mixture(drawn, step, {-j: p for j, p in drawn.items()}, lost) if best else None

    def value(self, grid: Grid, k: int) -> int:
        """Return the least of the bounds at e^(kh), k ≥ 0."""
        bits, one, s = grid.bits, 1 << grid.bits, self.step(grid.bits)
        eta = up(sum(self.drawn.values(), self.lost), bits)
        wanted = grid.alpha(k)
        alpha = one + (((wanted - one) << bits) // eta if wanted > one else 0)
        slack = one // eta + 2
        joint = sum(up(p, bits) * (gaussian(alpha, j * s, grid) + slack) >> bits for j, p in self.drawn.items())
        self.infinite = 2 * up(self.lost, bits)
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
        self.symmetric = sorted(outcomes) == sorted((q, p) for p, q in outcomes)

    def value(self, grid: Grid, k: int) -> int:
        """Return Σ (P − αQ)₊ + lost."""
        alpha, bits = grid.alpha(k), grid.bits
        self.infinite = up(self.lost + sum((p for p, q in self.outcomes if not q), Fraction(0)), bits) + len(self.outcomes)
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

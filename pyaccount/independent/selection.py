"""The best of a random number of runs, from the profiles of one run (section 11).

K runs on fresh randomness, of which the one with the best score is released; the score is a part of a run's output, and ties are
broken at random. Let P and Q be the laws of one run on two data sets, f(z) = E z^K, and v_P(y), v_Q(y) the probabilities of an
output that is better than y. The released output has the density p(y)·f′(1 − v_P(y)) (Koskela, Redberg & Wang 2024,
arXiv:2402.06701); if there is no run, a symbol is released with the same probability f(0) on both data sets.

**Theorem.** Let V(v) be a bound of v_Q where v_P = v: v_Q ≤ e^ε·v + h_add(e^ε) and v_Q ≤ 1 − e^(−ε)·(1 − v − h_remove(e^ε)) for
every ε ≥ 0, since sets of better, and of worse, outputs have P- and Q-masses within the profiles. f′ increases, so for α ≥ 1
H_α ≤ ∫ (f′(1 − v_P)·p − α·f′(1 − v_Q)·q)₊ ≤ E_P F(αe^(−L)), F(s) = sup_v (f′(1 − v) − f′(1 − V(v))·s)₊.
F is convex and decreases, so it is below chords between some s_j = e^(jg), which are Σ c_j·(1 − s/s_j)₊ with c_j ≥ 0. Then
H_α ≤ Σ c_j·h_remove(α/s_j). In the other direction the two data sets change places.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction

from .enclosures import exp, ln, up
from .kinds import SampledRound
from .lattice import SPACING_BITS, Law, LossGrid
from .shapes import refused

#: Ranks v are compared at (i/RANKS)², and F at losses that are about KNOTS apart.
RANKS, KNOTS = 4000, 0.02
#: A bound of the errors of f′, in units of the last bit.
ERROR = 1 << 40


class SelectedRound(SampledRound):
    """The best of K runs, K geometric, logarithmic, (truncated) negative binomial, Poisson or binomial."""

    hull = True

    def __init__(self, run: Callable[[LossGrid], tuple[Law, Law]], kind: str, law: Mapping[str, Fraction]) -> None:
        """Take the laws of a run on a grid, and the law of K. η = 1 is the geometric law, 0 the logarithmic one."""
        super().__init__(run, Fraction(1), alone=True)
        self.kind, self.law = kind, dict(law)
        shapes = {"geometric": Fraction(1), "logarithmic": Fraction(0)}
        self.shape = shapes.get(kind, self.law.get("shape", Fraction(0)))
        self._known: tuple[LossGrid, list[list[tuple[int, int]]], list[dict[int, int]]] | None = None

    def _mean(self, bits: int) -> int:
        """Return E K, rounded up: (1/γ − 1)/D with D = |1 − γ^η|/|η|, or −ln γ for η = 0."""
        if "stopping_probability" not in self.law:
            return up(self.law.get("mean") or self.law["trials"] * self.law["probability"], bits)
        stop, eta, one = self.law["stopping_probability"], abs(self.shape), 1 << bits
        logarithm = ln(up(stop, bits), bits)
        least = Fraction(-logarithm - 2 - 2 // stop)
        if eta:
            # γ^η errs by at most the error of the exponent times itself, and γ^−|η| is at most 1/γ.
            power = exp(math.floor(self.shape * logarithm), bits)
            least = (abs(one - power) - (2 + 4 * eta * (1 + 1 / stop)) / stop) / eta
        # There is at least one run, and the denominator is positive: digits that cancelled show here.
        found = math.ceil((1 / stop - 1) * one * one / least) + 1 if least > 0 else 0
        if found < one:
            raise refused("a mean of runs that is not known to these digits")
        return found

    def _weight(self, v: int, bits: int) -> int:
        """Return f′(1 − v)/E K within 2^40 units: (1 + (1/γ − 1)v)^(−η − 1), e^(−mv), or (1 − pv)^(n − 1)."""
        one = 1 << bits
        if self.kind == "poisson":
            return exp(math.floor(-self.law["mean"] * v), bits)
        if self.kind == "binomial":
            left = one - math.ceil(self.law["probability"] * v)
            return exp(math.floor((self.law["trials"] - 1) * ln(max(1, left), bits)), bits)
        spread = one + math.floor((1 / self.law["stopping_probability"] - 1) * v)
        return exp(math.floor(-(self.shape + 1) * ln(spread, bits)), bits)

    def _profile_at(self, grid: LossGrid, k: int, side: int) -> int:
        """Return the profile of one run at e^(kh), with grid.bits bits."""
        p, q, low, infinite = self._sums(grid)[side]
        i = min(max(0, k + 1 - low), len(p) - 1)
        gain = ((p[i] + infinite) << grid.bits) - q[i] * (grid.alpha(k) - 1)
        return int(-(-gain // 10**grid.digits)) + 1

    def _lines(self, grid: LossGrid, step: int, side: int) -> list[tuple[int, int]]:
        """Return f′(1 − v), rounded up, and f′(1 − V(v)), rounded down, for intervals of v that matter to F.

        Both fall with v, so a later line matters if it is flatter, and a line between two is left out where they are above it.
        """
        bits, one = grid.bits, 1 << grid.bits
        count = max(low + len(p) for p, _, low, _ in self._sums(grid)) // step + 2
        growths = [grid.alpha(j * step) for j in range(count)]
        here, there = ([self._profile_at(grid, j * step, each) for j in range(count)] for each in (side, 1 - side))
        lines: list[tuple[int, int]] = []
        near, far = count - 1, 0
        for i in range(RANKS):
            before, v = (i * i << bits) // RANKS**2, ((i + 1) ** 2 << bits) // RANKS**2 + 1
            # The best ε moves one way as v grows; a poor choice only makes V larger.
            better = [((growths[j] + 1) * v >> bits) + there[j] + 1 for j in (near, max(0, near - 1))]
            while near and better[1] <= better[0]:
                near -= 1
                better = [better[1], ((growths[near - 1] + 1) * v >> bits) + there[near - 1] + 1 if near else one]
            while (
                far + 1 < count and (one - v - here[far + 1]) * growths[far] >= (one - v - here[far]) * growths[far + 1]
            ):
                far += 1
            worse = one - max(0, one - v - here[far]) * one // (growths[far] + 1) + 1
            a = self._weight(before, bits) + ERROR
            b = max(0, self._weight(min(one, better[0], worse), bits) - ERROR)
            if lines and b >= lines[-1][1]:
                continue
            while len(lines) > 1 and (lines[-1][0] - a) * (lines[-2][1] - lines[-1][1]) <= (
                lines[-2][0] - lines[-1][0]
            ) * (lines[-1][1] - b):
                lines.pop()
            lines.append((a, b))
        return lines

    def _chords(self, grid: LossGrid, side: int) -> list[tuple[int, int]]:
        """Return j and c_j, in units of the grid's bits and without E K."""
        bits, step = grid.bits, max(1, round(KNOTS * (1 << SPACING_BITS) / grid.spacing))
        lines = self._lines(grid, step, side)
        first, at = -round(8 / KNOTS), 0
        knots, values = [0], [max(a for a, _ in lines)]
        while values[-1]:
            # F is taken at a knot that is rounded down, where it is not smaller.
            s = grid.alpha((first + len(knots) - 1) * step) - 1
            gain = lines[at][0] - (lines[at][1] * s >> bits)
            while at + 1 < len(lines) and (following := lines[at + 1][0] - (lines[at + 1][1] * s >> bits)) >= gain:
                at, gain = at + 1, following
            knots.append(s)
            values.append(max(0, gain))
            if len(knots) > 60 / KNOTS:
                raise ArithmeticError("the number of runs may be too large")
        falls = [((a - b) << bits) // (t - s) for s, t, a, b in zip(knots, knots[1:], values, values[1:], strict=False)]
        changes = [a - b + 1 for a, b in zip(falls, [*falls[1:], 0], strict=True)]
        return [
            ((first + i) * step, (change * knots[i + 1] >> bits) + 1) for i, change in enumerate(changes) if change > 0
        ]

    def _direction(self, grid: LossGrid, k: int, side: int) -> int:
        """Return the bound at e^(kh), k ≥ 0."""
        bits = grid.bits
        if self._known is None or self._known[0] != grid:
            self._known = grid, [self._chords(grid, each) for each in (0, 1)], [{}, {}]
            largest = sum(weight for _, weight in self._known[1][0])
            self.infinite = (largest * self._sums(grid)[0][3] // 10**grid.digits) * self._mean(bits) >> bits
        _, chords, profiles = self._known
        total, known = 0, profiles[side]
        for j, weight in chords[side]:
            if k - j not in known:
                known[k - j] = self._profile_at(grid, k - j, side)
            total += weight * known[k - j]
        return ((total >> bits) + 1) * self._mean(bits) >> bits

    def value(self, grid: LossGrid, k: int) -> int:
        """Return the bound; below α = 1 by reflection."""
        if k >= 0:
            return min(1 << grid.bits, self._direction(grid, k, 0) + 2)
        here = grid.alpha(k)
        return (1 << grid.bits) - here + 2 + ((here + 1) * (self._direction(grid, -k, 1) + 2) >> grid.bits)

"""A run on a sample, and the best of a random number of runs, from the profiles of one run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import cache

from .composition import RoundCounts, composed
from .enclosures import exp, ln, up
from .lattice import SPACING, LossGrid, NotCheckableError
from .laws import Round


class OfRuns(Round):
    """A bound that follows from the profiles of one run, which is a composition of rounds."""

    # Masses of the laws of a run are rounded, so that values between which a profile is straight are convex up to that only.
    more_digits, precise, hull = 5, 20, True

    def __init__(self, parts: RoundCounts, small: Fraction) -> None:
        """Take the rounds of a run, and the mass that cutting may add to its profile."""
        self.parts, self.small = list(parts), small

    @cache  # noqa: B019 - a round lives as long as its proof
    def _sums(self, grid: LossGrid) -> list[tuple[list[int], list[int], int, int]]:
        """Return for each side sums of masses under P and, rounded down, under Q, from each loss on; the least loss; and ∞."""
        sums = []
        for law in composed(self.parts, grid, 20.0, self.small, 1.0):
            p, q = [0], [0]
            for i in range(len(law.masses) - 1, -1, -1):
                p.append(p[-1] + law.masses[i])
                q.append(q[-1] + (law.masses[i] * max(0, grid.alpha(-law.low - i) - 1) >> grid.bits))
            sums.append((p[::-1], q[::-1], law.low, law.infinite))
        return sums

    def _profile(self, grid: LossGrid, alpha: int, loss: int, side: int) -> int:
        """Return the profile of a run at α, which is near e^loss: the largest P − αQ of the losses above one near it, and ∞."""
        p, q, low, infinite = self._sums(grid)[side]
        first = min(max(0, loss // grid.loss(1) - low), len(p) - 1)
        gain = max((p[i] << grid.bits) - q[i] * (alpha - 1) for i in range(max(0, first - 1), min(first + 3, len(p))))
        return int(-(-(gain + (infinite << grid.bits)) // 10**grid.digits)) + 1


class SampledRound(OfRuns):
    """A run on a Poisson sample: the record takes part, with all of its data, with probability q (Zhu, Dong & Wang 2022).

    If only the record's own draw matters (`alone`), the pair is ((1 − q)Q + qP, Q): H_α = q·h(1 + (α − 1)/q) on side 0. On side
    1 it is the reflection, α·q·y·h′(1/y), with h′ the profile of side 1 and y = 1 − (1 − 1/α)/q, or 0 where y ≤ 0. If the output
    may show whether it was drawn, the laws are qP + (1 − q)R and qQ + (1 − q)R, so that q·h(α) bounds both sides for α ≥ 1, by
    joint convexity.
    """

    def __init__(self, parts: RoundCounts, small: Fraction, q: Fraction, *, alone: bool) -> None:
        """Take the rounds of a run, and the probability."""
        super().__init__(parts, small)
        self.q, self.alone = q, alone

    def value(self, grid: LossGrid, k: int, side: int) -> int:
        """Return the bound; α errs by 1/q units, at most 2^20 (checked), and a profile has a slope of at most 1."""
        alpha, one, q = grid.alpha(k), 1 << grid.bits, self.q
        if q < Fraction(1, 1 << 20):
            raise NotCheckableError("a sample of so few")
        error = math.ceil(1 / q) + 4
        if not self.alone:
            return math.ceil(q * self._profile(grid, alpha, grid.loss(k), side)) + 4
        if not side:
            inner = one + math.floor((alpha - one) / q)
            return math.ceil(q * (self._profile(grid, inner, ln(inner, grid.bits), 0) + error)) + 4
        y = one - math.floor((one - grid.alpha(-k)) / q) + error
        if y <= 2 * error:
            return 4 * error * ((alpha >> grid.bits) + 1)
        inner = one * one // y
        return (
            math.ceil(q * y * (self._profile(grid, inner, ln(inner, grid.bits), 1) + 4)) * (alpha + 1) >> 2 * grid.bits
        ) + 4 * error * ((alpha >> grid.bits) + 1)


#: Ranks v are compared at (i/RANKS)², and F at losses that are about KNOTS apart.
RANKS, KNOTS = 4000, 0.02
#: A bound of the errors of f′, in units of the last bit.
ERROR = 1 << 40


class BestRound(OfRuns):
    """The best of K runs, K geometric, logarithmic, (truncated) negative binomial, Poisson or binomial.

    The score is a part of a run's output, and ties are broken at random. Let P and Q be the laws of one run, f(z) = E z^K, and
    v_P(y), v_Q(y) the probabilities of an output that is better than y. What is released has the density p(y)·f′(1 − v_P(y))
    (Koskela, Redberg & Wang 2024, arXiv:2402.06701); if there is no run, a symbol is released with the same probability f(0) on
    both data sets.

    **Theorem.** Let V(v) be a bound of v_Q where v_P = v: v_Q ≤ e^ε·v + h′(e^ε) and v_Q ≤ 1 − e^(−ε)·(1 − v − h(e^ε)) for every
    ε ≥ 0, as sets of better, and of worse, outputs have masses within the profiles h and h′ of sides 0 and 1. f′ increases, so
    that for α ≥ 1 H_α ≤ ∫ (f′(1 − v_P)·p − α·f′(1 − v_Q)·q)₊ ≤ E_P F(α·e^(−L)), F(s) = sup_v (f′(1 − v) − f′(1 − V(v))·s)₊. F is
    convex and decreases, so it is below chords between some s_j = e^(jg), which are Σ c_j·(1 − s/s_j)₊ with c_j ≥ 0. Then H_α ≤
    Σ c_j·h(α/s_j). On side 1 the two data sets change places.
    """

    precise = 0

    def __init__(self, parts: RoundCounts, small: Fraction, kind: str, law: Mapping[str, Fraction]) -> None:
        """Take the rounds of a run, and the law of K. η = 1 is the geometric law, 0 the logarithmic one."""
        super().__init__(parts, small)
        self.kind, self.law = kind, dict(law)
        self.shape = {"geometric": Fraction(1), "logarithmic": Fraction(0)}.get(
            kind, self.law.get("shape", Fraction(0))
        )

    @cache  # noqa: B019
    def _mean(self, bits: int) -> int:
        """Return E K, rounded up: (1/γ − 1)/D with D = |1 − γ^η|/|η|, or −ln γ for η = 0.

        γ^η errs by at most the error of its exponent times itself, and γ^−|η| is at most 1/γ. There is at least one run, and D >
        0: both are checked, so that digits that cancelled show.
        """
        if "stopping_probability" not in self.law:
            return up(self.law.get("mean") or self.law["trials"] * self.law["probability"], bits)
        stop, eta, one = self.law["stopping_probability"], abs(self.shape), 1 << bits
        logarithm = ln(up(stop, bits), bits)
        least = Fraction(-logarithm - 2 - 2 // stop)
        if eta:
            least = (
                abs(one - exp(math.floor(self.shape * logarithm), bits)) - (2 + 4 * eta * (1 + 1 / stop)) / stop
            ) / eta
        found = math.ceil((1 / stop - 1) * one * one / least) + 1 if least > 0 else 0
        if found < one:
            raise NotCheckableError("a mean of runs that is not known to these digits")
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

    @cache  # noqa: B019
    def _at(self, grid: LossGrid, k: int, side: int) -> int:
        """Return the profile of one run at e^(kh) on a side; for k < 0, 1 − α + α·h′(1/α)."""
        return self._profile(grid, grid.alpha(k), grid.loss(k), side)

    def _lines(self, grid: LossGrid, step: int, side: int) -> list[tuple[int, int]]:
        """Return f′(1 − v), rounded up, and f′(1 − V(v)), rounded down, for intervals of v that matter to F.

        Both fall with v, so a later line matters if it is flatter, and a line between two is left out where they are above it.
        The best ε moves one way as v grows; a poor choice only makes V larger.
        """
        bits, one = grid.bits, 1 << grid.bits
        count = max(low + len(p) for p, _, low, _ in self._sums(grid)) // step + 2
        growths = [grid.alpha(j * step) for j in range(count)]
        here, there = ([self._at(grid, j * step, each) for j in range(count)] for each in (side, 1 - side))
        lines, near, far = list[tuple[int, int]](), count - 1, 0
        for i in range(RANKS):
            before, v = (i * i << bits) // RANKS**2, ((i + 1) ** 2 << bits) // RANKS**2 + 1

            def better(j: int, v: int = v) -> int:
                return ((growths[j] + 1) * v >> bits) + there[j] + 1

            while near and better(near - 1) <= better(near):
                near -= 1
            while (
                far + 1 < count and (one - v - here[far + 1]) * growths[far] >= (one - v - here[far]) * growths[far + 1]
            ):
                far += 1
            worse = one - max(0, one - v - here[far]) * one // (growths[far] + 1) + 1
            a = self._weight(before, bits) + ERROR
            b = max(0, self._weight(min(one, better(near), worse), bits) - ERROR)
            if lines and b >= lines[-1][1]:
                continue
            while len(lines) > 1 and (lines[-1][0] - a) * (lines[-2][1] - lines[-1][1]) <= (
                lines[-2][0] - lines[-1][0]
            ) * (lines[-1][1] - b):
                lines.pop()
            lines.append((a, b))
        return lines

    @cache  # noqa: B019
    def _chords(self, grid: LossGrid, side: int) -> list[tuple[int, int]]:
        """Return j and c_j, in units of the grid's bits and without E K. F is taken at knots that are rounded down."""
        bits, step = grid.bits, max(1, round(KNOTS * (1 << SPACING) / grid.spacing))
        lines, first, at = self._lines(grid, step, side), -round(8 / KNOTS), 0
        knots, values = [0], [max(a for a, _ in lines)]
        while values[-1]:
            s = grid.alpha((first + len(knots) - 1) * step) - 1
            gain = lines[at][0] - (lines[at][1] * s >> bits)
            while at + 1 < len(lines) and (following := lines[at + 1][0] - (lines[at + 1][1] * s >> bits)) >= gain:
                at, gain = at + 1, following
            knots.append(s)
            values.append(max(0, gain))
            if len(knots) > 60 / KNOTS:
                raise NotCheckableError("so large a number of runs")
        falls = [((a - b) << bits) // (t - s) for s, t, a, b in zip(knots, knots[1:], values, values[1:], strict=False)]
        changes = [a - b + 1 for a, b in zip(falls, [*falls[1:], 0], strict=True)]
        return [
            ((first + i) * step, (change * knots[i + 1] >> bits) + 1) for i, change in enumerate(changes) if change > 0
        ]

    def value(self, grid: LossGrid, k: int, side: int) -> int:
        """Return Σ c_j·h(α/s_j)."""
        mean, chords = self._mean(grid.bits), self._chords(grid, side)
        largest = sum(weight for _, weight in self._chords(grid, 0))
        self.infinite = (largest * self._sums(grid)[0][3] // 10**grid.digits) * mean >> grid.bits
        total = sum(weight * self._at(grid, k - j, side) for j, weight in chords)
        return min(1 << grid.bits, (((total >> grid.bits) + 1) * mean >> grid.bits) + 2)

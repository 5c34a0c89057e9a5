"""A run on a sample, and the best of a random number of runs, from the profiles of one run."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from itertools import accumulate

from .composition import RoundCounts, composed, connected_laws
from .enclosures import exp, ln, up
from .lattice import SPACING, Law, LossGrid, NotCheckableError, hull
from .laws import Round


class OfRuns(Round):
    """A bound that follows from the profiles of one run, which is a composition of rounds."""

    # Masses of the laws of a run are rounded, so that values between which a profile is straight are convex up to that only.
    more_digits, hull = 5, True

    def __init__(self, parts: RoundCounts, small: Fraction) -> None:
        """Take the rounds of a run, and the mass that cutting may add to its profile."""
        self.parts, self.small = list(parts), small

    @cache  # noqa: B019 - a round lives as long as its proof
    def _laws(self, grid: LossGrid) -> tuple[Law, Law]:
        return composed(self.parts, grid, connected_laws(self.parts, grid, 20.0, self.small, 1.0), self.small / 100)

    @cache  # noqa: B019
    def _sums(self, grid: LossGrid) -> list[tuple[list[int], list[int], list[int], int]]:
        """Return for each side all e^loss, sums of masses under P and, rounded down, under Q, from each loss on; and ∞."""
        sums = []
        for law in self._laws(grid):
            losses = range(law.low, law.low + len(law.masses))
            under_q = [
                mass * max(0, grid.alpha(-k) - 1) >> grid.bits for k, mass in zip(losses, law.masses, strict=True)
            ]
            p, q = (list(accumulate(reversed(each), initial=0))[::-1] for each in (law.masses, under_q))
            sums.append(([grid.alpha(k) for k in losses], p, q, law.infinite))
        return sums

    def value(self, grid: LossGrid, k: int, side: int) -> int:
        """Return the profile of a run."""
        return self.profile(grid, grid.alpha(k), side)

    def profile(self, grid: LossGrid, alpha: int, side: int) -> int:
        """Return the profile of a run at any α ≥ 1, P − αQ of the losses above it and ∞; a reflection below 1."""
        one = 1 << grid.bits
        if alpha < one:
            below = self.profile(grid, one * one // alpha, 1 - side)
            return one - alpha + (alpha * below >> grid.bits) + 2
        alphas, p, q, infinite = self._sums(grid)[side]
        i = bisect_right(alphas, alpha)
        gain = (p[i] + infinite << grid.bits) - q[i] * (alpha - 1)
        return int(-(-gain // 10**grid.digits)) + 2


class SampledRound(OfRuns):
    """A run on a Poisson sample: the record takes part, with all of its data, with probability q (Zhu, Dong & Wang 2022).

    If only the record's own draw matters, the pair is ((1 − q)Q + qP, Q): H_α = q·h(1 + (α − 1)/q), or 1 − α where that is
    negative, and side 1 is the reflection. If the output may show whether it was drawn, the laws are qP + (1 − q)R and
    qQ + (1 − q)R: by joint convexity a `Blend` of the run and of nothing is a bound.
    """

    value = Round.value

    def __init__(self, parts: RoundCounts, small: Fraction, q: Fraction) -> None:
        """Take the rounds of a run, and the probability."""
        super().__init__(parts, small)
        self.q = q
        if q < Fraction(1, 1 << 20):
            raise NotCheckableError("a sample of so few")

    def at(self, grid: LossGrid, k: int) -> int:
        """Return q·h(1 + (α − 1)/q); the argument errs by 1/q units, and a profile has a slope of at most 1."""
        alpha, one = grid.alpha(k), 1 << grid.bits
        inner = one + math.floor((alpha - one) / self.q)
        if inner <= 0:
            return one - alpha + 4
        return math.ceil(self.q * self.profile(grid, inner, 0)) + 4


#: Ranks v are compared at (i/RANKS)², and bounds of V at losses that are about KNOTS apart.
RANKS, KNOTS = 4000, 0.02
#: A bound of the errors of f′, in units of the last bit.
ERROR = 1 << 40


class BestRound(OfRuns):
    """The best of K runs, K geometric, Poisson or binomial.

    The score is a part of a run's output, and ties are broken at random. Let P and Q be the laws of one run, f(z) = E z^K, and
    v_P(y), v_Q(y) the probabilities of an output that is better than y. What is released has the density p(y)·f′(1 − v_P(y))
    (Koskela, Redberg & Wang 2024, arXiv:2402.06701); if there is no run, a symbol is released with the same probability f(0) on
    both data sets.

    **Theorem.** Let V(v) be a bound of v_Q where v_P = v: v_Q ≤ a·v + H_a(Q‖P) for every a > 0. f′ increases, so that for α ≥ 1
    H_α ≤ ∫ (f′(1 − v_P)·p − α·f′(1 − v_Q)·q)₊ ≤ E_P F(α·e^(−L)), F(s) = sup_v (f′(1 − v) − f′(1 − V(v))·s)₊. F is convex and
    decreases in s, so that a law of losses L with a larger profile has a larger mean of F. On side 1 the two data sets change
    places.
    """

    def __init__(self, parts: RoundCounts, small: Fraction, kind: str, law: Mapping[str, Fraction]) -> None:
        """Take the rounds of a run, and the law of K."""
        super().__init__(parts, small)
        self.kind, self.law = kind, dict(law)
        means = {"geometric": ("stopping_probability",), "poisson": ("mean",), "binomial": ("trials", "probability")}
        self.mean = math.prod((law[key] for key in means[kind]), start=Fraction(1)) ** (
            -1 if kind == "geometric" else 1
        )

    def _weight(self, v: int, bits: int) -> int:
        """Return f′(1 − v)/E K within 2^40 units: (1 + (1/γ − 1)v)^−2, e^(−mv), or (1 − pv)^(n − 1)."""
        one = 1 << bits
        if self.kind == "poisson":
            return exp(math.floor(-self.mean * v), bits)
        if self.kind == "binomial":
            left = one - math.ceil(self.law["probability"] * v)
            return exp(math.floor((self.law["trials"] - 1) * ln(max(1, left), bits)), bits)
        return one**3 // (one + math.floor((self.mean - 1) * v)) ** 2

    def _lines(self, grid: LossGrid, side: int) -> list[tuple[int, int]]:
        """Return f′(1 − v), rounded up, and f′(1 − V(v)), rounded down, for intervals of v that matter to F.

        Bounds of V are lines in v, and a flatter one is the lower one as v grows; a poor choice only makes V larger.
        """
        bits, one, step = grid.bits, 1 << grid.bits, max(1, round(KNOTS * (1 << SPACING) / grid.spacing))
        most = max(law.low + len(law.masses) for law in self._laws(grid)) // step + 2
        slopes, points = [grid.alpha(k * step) for k in range(most, -most, -1)], list[tuple[int, int]]()
        bounds, nearest = [(a, self.profile(grid, a, 1 - side) + 1) for a in slopes], 0

        def larger(i: int, v: int) -> int:
            return (bounds[i][0] * v >> bits) + bounds[i][1]

        for i in range(RANKS):
            before, v = (i * i << bits) // RANKS**2, ((i + 1) ** 2 << bits) // RANKS**2 + 1
            while nearest + 1 < len(bounds) and larger(nearest + 1, v) <= larger(nearest, v):
                nearest += 1
            a = self._weight(before, bits) + ERROR
            b = max(0, self._weight(min(one, larger(nearest, v)), bits) - ERROR)
            if not points or b < points[-1][0]:
                points.append((b, -a))
        return [(-a, b) for b, a in reversed(hull(points[::-1]))]

    @cache  # noqa: B019
    def _f(self, grid: LossGrid, side: int) -> tuple[int, list[int]]:
        """Return a loss, F at it and all further losses of the lattice until F = 0; before it, F is at most f′(1) ≤ E K."""
        bits, first, at, values = grid.bits, -round(8 / grid.h), 0, list[int]()
        lines = self._lines(grid, side)
        while not values or values[-1]:
            s = grid.alpha(first + len(values)) - 1
            gain = lines[at][0] - (lines[at][1] * s >> bits)
            while at + 1 < len(lines) and (following := lines[at + 1][0] - (lines[at + 1][1] * s >> bits)) >= gain:
                at, gain = at + 1, following
            values.append(max(0, gain))
            if len(values) * grid.h > 60:
                raise NotCheckableError("so large a number of runs")
        return first, values

    def value(self, grid: LossGrid, k: int, side: int) -> int:
        """Return Σ p_j·F(α·e^(−jh)), times E K."""
        law, (first, values), one = self._laws(grid)[side], self._f(grid, side), 1 << grid.bits
        most = one + ERROR
        total = law.infinite * most
        for j, mass in enumerate(law.masses, law.low):
            at = k - j - first
            if at < len(values):
                total += mass * (values[at] if at >= 0 else most)
        mean = up(self.mean, grid.bits)
        return int(min(one, ((total // 10**grid.digits + 1) * mean >> grid.bits) + 2))

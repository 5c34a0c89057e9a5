"""Participations that keep a distance: b-min-sep sampling of records with a banded matrix (sections 4.1, 4.2 and 10.1).

A record that is available joins a round with probability p, and is available again b rounds later. A *warm* start is
stationary: 1/(1 + (b − 1)p) is the probability of being available in the first round, and p/(1 + (b − 1)p) that of waiting for
j rounds, for each j < b. Column i of C is (c_0, c_1, …) from row i on, cut off after row n. If C ≥ 0 has at most b bands, then
no two participations share a row. So ‖Cx‖² is the sum of the squared column norms, and a sum over patterns of products over
their participations is a recursion backwards over the rounds: t_i = w_0·t_(i+1) + φ_i·t_(i+b).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from typing import NamedTuple

from ..enclosures import exp
from .normals import chance
from .process import PLACES, Bytes, Pattern, rounded
from .ratio import SpacedRatio
from .tuples import SpacedTuples, states
from .wide import WIDE, logarithm


class SpacedRun(NamedTuple):
    """n rounds of b-min-sep sampling, the coefficients of C, and σ. All numbers are exact."""

    rounds: int
    apart: int
    probability: Fraction
    warm: bool
    coefficients: tuple[Fraction, ...]
    sigma: Fraction

    @property
    def columns(self) -> list[int]:
        """The coefficients of C/σ, rounded up."""
        return rounded(self.coefficients, self.sigma)

    def with_noise(self, sigma: Fraction) -> SpacedRun:
        """Return the same with another σ."""
        return self._replace(sigma=sigma)

    def squares(self) -> list[Fraction]:
        """Return ‖c_i‖²/σ² of the columns of the rounds 1 to n, with coefficients rounded up as in all samples."""
        sums = list(accumulate(Fraction(c * c, 1 << 2 * PLACES) for c in self.columns))
        return [sums[min(len(sums), self.rounds - i) - 1] for i in range(self.rounds)]

    def never(self) -> Fraction:
        """Return an upper bound of −ln w_∅ (section 10.7).

        Cold: w_∅ = q^n, q = 1 − p. Warm, with D = 1 + (b − 1)p: the record is free with probability 1/D, or waits for j = 1..b−1
        rounds, each with probability p/D. With w = min(b − 1, n), w_∅ ≥ q^(n−w)/D·(q^w + Σ_(j ≤ w) p·q^(w−j)), and the last
        factor is 1.
        """
        waits = min(self.apart - 1, self.rounds) if self.warm else 0
        start = logarithm(1 + (self.apart - 1) * self.probability) if self.warm else Fraction(0)
        return start - (self.rounds - waits) * logarithm(1 - self.probability) + Fraction(1, 1 << 200)

    def hoelder(self, scale: Fraction, parameter: Fraction | None, epsilon: Fraction) -> Fraction | None:
        """Return Hölder's bound on samples whose patterns are those of another probability."""
        other = self.probability if parameter is None else parameter
        if not (0 < other < 1 and (scale > 1 or scale < 0)):
            return None
        return spaced_bound(self, scale, other, epsilon)

    def largest(self) -> int:
        """Return the largest entry of a column: participations of a record share no row."""
        return max(self.columns)

    def longest(self) -> Fraction:
        """Return the largest number of participations times the squared norm of a whole column."""
        square = Fraction(sum(c * c for c in self.columns), 1 << 2 * PLACES)
        return -(-self.rounds // self.apart) * square

    def size(self, replicas: int) -> int:
        """Return the number of states times rounds."""
        return states(self.apart, replicas) * self.rounds

    def tuples(self, replicas: int) -> SpacedTuples:
        """Return the tables of m replicas."""
        return SpacedTuples(self, replicas)

    def ratio(self, scale: Fraction) -> SpacedRatio:
        """Return the recursion."""
        return SpacedRatio(self, scale)

    def pattern(self, random_bytes: Bytes) -> Pattern | None:
        """Return the rounds in which a record takes part."""
        words = memoryview(random_bytes(8 * self.rounds + 8)).cast("Q")
        i, found = 1, []
        if self.warm:
            # It waits for j < b rounds with probability p/(1 + (b − 1)p) each, and is available with the rest.
            each = self.probability / (1 + (self.apart - 1) * self.probability)
            first, last = (Fraction(words[0] + more, 1 << 64) // each for more in (0, 1))
            if min(first, self.apart - 1) != min(last, self.apart - 1):
                return None
            i = int(first) + 2 if first < self.apart - 1 else 1
        limit = chance(self.probability)
        while i <= self.rounds:
            word = words[i]
            if word == limit:
                return None
            if word < limit:
                found.append((i, 1))
            i += self.apart if word < limit else 1
        return found


def _exponential(x: Fraction) -> int:
    return exp((x.numerator << WIDE) // x.denominator, WIDE)


def _recursion(setting: SpacedRun, w: int, phi: Sequence[int], free: int, waiting: int) -> Fraction | None:
    """Return free·t_1 + waiting·Σ_(1<i≤b) t_i, or None if it is below 2^−60; each rounding is below a unit of 2^−256."""
    n, b = setting.rounds, setting.apart
    t = [1 << WIDE] * (n + b + 1)
    for i in range(n - 1, -1, -1):
        t[i] = (w * t[i + 1] + phi[i] * t[i + b]) >> WIDE
    total = free * t[0] + (waiting * sum(t[1:b]) if setting.warm else 0)
    return Fraction(total, 1 << 2 * WIDE) if total >> 2 * WIDE - 60 else None


def spaced_bound(setting: SpacedRun, scale: Fraction, other: Fraction, epsilon: Fraction) -> Fraction | None:
    """Return the logarithm of Hölder's bound on a sample from Σ_x v_x N(scale·Cx, σ²I), with v that of the probability `other`.

    With S = ‖Cx‖²/σ². *Remove*, κ = scale > 1 (docs/sampling.md): T^(κ−1)·e^(−(κ−1)ε)·(κ−1)^(κ−1)/κ^κ with
    T = Σ w^(κ/(κ−1))·v^(−1/(κ−1))·e^(κS/2). *Add*, τ = −scale > 0: with u_x = w_x·e^(⟨Cx,y⟩ − S/2) and g_x =
    v_x·e^(−τ⟨Cx,y⟩ − τ²S/2), Hölder's inequality gives A = Σ u_x^(τ/(1+τ))·g_x^(1/(1+τ)) ≤ f^(τ/(1+τ))·g^(1/(1+τ)), and
    A = Σ w^(τ/(1+τ))·v^(1/(1+τ))·e^(−τS/2) does not depend on y. So (1 − e^ε·f)/g ≤ A^(−1−τ)·f^τ·(1 − e^ε·f), which is at most
    A^(−1−τ)·e^(−τε)·τ^τ/(1+τ)^(1+τ). The sums are at least 2^−60 and err by fewer than 4n units of 2^−256, and the logarithms
    by less than 2^−240. So the result errs by less than (|scale| + 2)·n·2^−190; 2^−100 is added, for n·|scale| < 2^80.
    """
    p, waits = setting.probability, setting.apart - 1
    k = abs(scale)
    a, b = (k / (k - 1), -1 / (k - 1)) if scale > 0 else (k / (1 + k), 1 / (1 + k))
    logs = [
        (logarithm(x), logarithm(y)) for x, y in ((p, other), (1 - p, 1 - other), (1 + waits * p, 1 + waits * other))
    ]
    join, stay, start = (a * x + b * y for x, y in logs)
    half = k / 2 if scale > 0 else -k / 2
    columns: dict[Fraction, int] = {}
    for square in setting.squares():
        if square not in columns:
            columns[square] = _exponential(join + half * square)
    phi = [columns[square] for square in setting.squares()]
    free, waiting = (_exponential(-start), _exponential(join - start)) if setting.warm else (1 << WIDE, 0)
    summed = _recursion(setting, _exponential(stay), phi, free, waiting)
    if summed is None:
        return None
    total = logarithm(summed)
    margin = Fraction(1, 1 << 100)
    if scale > 0:
        return (k - 1) * (total - epsilon + logarithm(k - 1)) - k * logarithm(k) + margin
    return -(1 + k) * (total + logarithm(1 + k)) + k * (logarithm(k) - epsilon) + margin

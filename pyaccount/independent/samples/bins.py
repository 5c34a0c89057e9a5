"""Balls in bins: a record is put into one of T bins for the whole run, and round i uses bin i mod T (section 4.3).

With the modes m_t = Σ_e c_(eT+t), f = (1/T)·Σ_t e^(⟨m_t, y⟩ − ‖m_t‖²/2) for any C ≥ 0. E_R f^m is the mean of e^(Σ_(r<s)
⟨m_(t_r), m_(t_s)⟩) over tuples of m bins (docs/replicas.md, section 3).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from itertools import accumulate, combinations_with_replacement
from typing import NamedTuple

from ..enclosures import exp
from ..form import refused
from .normals import below
from .process import EXPONENT, PLACES, Bytes, Pattern, growth, rounded
from .ratio import cells
from .wide import WIDE, logarithm

_FINE = 64


class Bins(NamedTuple):
    """n rounds with T bins, the coefficients of C, and σ. All numbers are exact."""

    rounds: int
    bins: int
    coefficients: tuple[Fraction, ...]
    sigma: Fraction

    @property
    def columns(self) -> list[int]:
        """The coefficients of C/σ, rounded up."""
        return rounded(self.coefficients, self.sigma)

    def with_noise(self, sigma: Fraction) -> Bins:
        """Return the same with another σ."""
        return self._replace(sigma=sigma)

    def never(self) -> None:
        """Return None: every record takes part, if there are as many rounds as bins."""

    def rounds_of(self, t: int) -> range:
        """Return the rounds of a bin, from 1."""
        return range(t + 1, self.rounds + 1, self.bins)

    def hoelder(self, scale: Fraction, parameter: Fraction | None, epsilon: Fraction) -> Fraction | None:
        """Return Hölder's bound for bins that are equally likely, which a certificate states by the parameter 0.

        As for b-min-sep sampling (`spaced_bound`), with T = (1/T)·Σ_t e^(κ‖m_t‖²/2) or A = (1/T)·Σ_t e^(−τ‖m_t‖²/2). T and A
        are sums of exponentials that err by 2 units of 2^−256, and A is at least 2^−60, or there is no bound.
        """
        if parameter not in (None, 0) or 0 <= scale <= 1:
            return None
        k, margin = abs(scale), Fraction(1, 1 << 100)
        squares = [Fraction(gram[t], 1 << 2 * PLACES) for t, gram in enumerate(_gram(self))]
        halves = [(k if scale > 0 else -k) * square / 2 for square in squares]
        total = Fraction(sum(exp((x.numerator << WIDE) // x.denominator, WIDE) for x in halves), self.bins << WIDE)
        if total < Fraction(1, 1 << 60):
            return None
        size = logarithm(total)
        if scale > 0:
            return (k - 1) * (size - epsilon + logarithm(k - 1)) - k * logarithm(k) + margin
        return -(1 + k) * (size + logarithm(1 + k)) + k * (logarithm(k) - epsilon) + margin

    def largest(self) -> int:
        """Return the largest entry of a mode, in which columns of a record may overlap."""
        return max(max(mode) for mode in _modes(self))

    def longest(self) -> Fraction:
        """Return the largest ‖m_t‖²."""
        return Fraction(max(row[t] for t, row in enumerate(_gram(self))), 1 << 2 * PLACES)

    def size(self, replicas: int) -> int:
        """Return the number of multisets of m bins, times what each of them costs."""
        return math.comb(self.bins + replicas - 1, replicas) * 10

    def tuples(self, replicas: int) -> BinTuples:
        """Return the weights of all multisets."""
        return BinTuples(self, replicas)

    def ratio(self, scale: Fraction) -> BinRatio:
        """Return the mean of exponentials."""
        return BinRatio(self, scale)

    def pattern(self, random_bytes: Bytes) -> Pattern:
        """Return the rounds of a bin that is drawn."""
        return [(i, 1) for i in self.rounds_of(below(self.bins, random_bytes))]


def _modes(setting: Bins) -> list[list[int]]:
    """Return the modes, in units of 2^−40."""
    columns, n, modes = setting.columns, setting.rounds, []
    for t in range(setting.bins):
        mode = [0] * n
        for i in setting.rounds_of(t):
            for j, each in enumerate(columns[: n - i + 1]):
                mode[i - 1 + j] += each
        modes.append(mode)
    return modes


@cache
def _gram(setting: Bins) -> list[list[int]]:
    """Return the inner products of the modes, in units of 2^−80."""
    modes = _modes(setting)
    return [[sum(a * b for a, b in zip(one, other, strict=True)) for other in modes] for one in modes]


class BinTuples:
    """Tuples of m bins: multisets with weights m!/Π counts!·e^(Σ_(r<s) ⟨m_(t_r), m_(t_s)⟩), rounded up."""

    def __init__(self, setting: Bins, replicas: int) -> None:
        """Compute the weights."""
        self.setting, self.replicas = setting, replicas
        gram, m = _gram(setting), replicas
        shift = 2 * PLACES - _FINE
        factors = [[exp((each >> shift) + 1, _FINE) + 1 for each in row] for row in gram]
        self._multisets = list(combinations_with_replacement(range(setting.bins), m))
        weights: list[int] = []
        known: dict[tuple[int, ...], int] = {(): 1 << _FINE}
        for size in range(1, m + 1):
            # A multiset without its last bin has its pairs, and the last bin has one with each of the others.
            longer = {}
            for bins in combinations_with_replacement(range(setting.bins), size):
                weight, row = known[bins[:-1]], factors[bins[-1]]
                for other in bins[:-1]:
                    weight = -(-weight * row[other] >> _FINE)
                longer[bins] = weight
            known = longer
        for bins in self._multisets:
            ways = math.factorial(m) // math.prod(map(math.factorial, Counter(bins).values()))
            weights.append(known[bins] * ways)
        self._sums = list(accumulate(weights))
        #: Z_m is at most total/unit.
        self.total, self.unit = self._sums[-1], setting.bins**m << _FINE

    def log_moment(self) -> Fraction:
        """Return a lower bound of ln Z_m: each weight is a product of m(m − 1)/2 factors, all at least 1 and rounded up twice."""
        m = self.replicas
        return logarithm(Fraction(self.total, self.unit)) - Fraction(3 * m * m, 1 << _FINE - 1)

    def draw(self, random_bytes: Bytes) -> Pattern:
        """Return the rounds of the bins of a tuple, and how often each is used.

        A multiset has the probability weight/total, and its exact weight over T^m is at most weight/unit: so ρ ≤ total/unit.
        """
        found: Pattern = []
        drawn = self._multisets[bisect_right(self._sums, below(self.total, random_bytes))]
        for t, count in Counter(drawn).items():
            found += [(i, count) for i in self.setting.rounds_of(t)]
        return found


class BinRatio:
    """(1/T)·Σ_t e^(scale·⟨m_t, y⟩ − scale²·‖m_t‖²/2), in units of 2^−bits."""

    bits = 128

    def __init__(self, setting: Bins, scale: Fraction) -> None:
        """Take the scale of the means."""
        self._setting, self._scale, square = setting, scale, scale * scale
        shift = 2 * PLACES + 1 - EXPONENT
        self._halves = [
            (row[t] * square.numerator // square.denominator) >> shift for t, row in enumerate(_gram(setting))
        ]
        largest = setting.largest()
        turns, size = -(-setting.rounds // setting.bins), abs(scale)
        self.error = (turns + 2) * (1 + size) ** 2 * Fraction(1, 1 << 34) + cells(setting.rounds, size, largest)
        if self.error > Fraction(1, 1000):
            raise refused("new samples of so many rounds")

    def at(self, products: Sequence[int]) -> int | None:
        """Return the ratio in units of 2^−bits with a relative error of at most `error`; None if it is out of range.

        ⟨m_t, y⟩ is the sum of the products of its rounds, each within 2^−46, so that the exponent errs by less than (turns +
        1)·(1 + |scale|)²·2^−45, and e^x by 2^−36 relatively. The sum of T positive numbers is rounded down by less than T +
        1 units, and is at least 2^60 of them.
        """
        weights = self._weights(products)
        total = sum(weights or ()) // self._setting.bins
        return total if total >> 60 > self._setting.bins else None

    def _weights(self, products: Sequence[int]) -> list[int] | None:
        count, a, d = self._setting.bins, self._scale.numerator, self._scale.denominator
        found = []
        for t, half in enumerate(self._halves):
            risen, k = growth(sum(products[t::count]) * a // d - half)
            if k > 1000:
                return None
            shift = self.bits - EXPONENT + k
            found.append(risen << shift if shift >= 0 else risen >> -shift)
        return found

    def posterior(self, products: Sequence[int]) -> tuple[int, list[int]] | None:
        """Return f, and the probabilities of the bins of all rounds given the outcome, in units of 2^−60; scale is 1.

        They err relatively by less than 4·error and by two units, also over a cell, as for b-min-sep sampling.
        """
        f, weights, count = self.at(products), self._weights(products), self._setting.bins
        if f is None or weights is None:
            return None
        shares = [(weight << EXPONENT) // (f * count) for weight in weights]
        return f, [shares[i % count] for i in range(self._setting.rounds)]

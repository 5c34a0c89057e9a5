"""What a fresh test asks of a sampler: how a record takes part, and the likelihood ratio of an outcome.

All quantities are in units of the noise. A record's participations x add Cx to the outcome y, and R = N(0, I) is the law of
y without it; f = Σ_x w_x e^(⟨Cx,y⟩ − ‖Cx‖²/2). Coefficients are rounded up to multiples of 2^−36 (`columns`), and from then
on are exact.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Protocol

from ..enclosures import exp, ln, up
from ..form import refused

#: Numbers of an outcome are in units of 2^−PLACES, and exponents in units of 2^−60.
PLACES, EXPONENT = 40, 60

Bytes = Callable[[int], bytes]
#: Rounds, counted from 1, and how often the record takes part in each.
Pattern = list[tuple[int, int]]


class TupleSource(Protocol):
    """Draws tuples of m patterns x with ρ(x) = Π w·e^(Σ_(r<s) ⟨Cx^r, Cx^s⟩)/π(x) ≤ total/unit (docs/replicas.md, theorem 2)."""

    replicas: int
    total: int
    unit: int

    def log_moment(self) -> Fraction:
        """Return a lower bound of ln Z_m."""
        ...

    def draw(self, random_bytes: Bytes) -> Pattern | None:
        """Return the sum of the patterns; None if it is not known from the bits that were drawn."""
        ...


class RatioSource(Protocol):
    """Computes Σ_x w_x e^(scale·⟨Cx,y⟩ − scale²·‖Cx‖²/2), the density of Σ_x w_x N(scale·Cx, I) relative to R."""

    bits: int
    error: Fraction

    def at(self, products: Sequence[int]) -> int | None:
        """Return the density in units of 2^−bits, for all outcomes in the cells, with a relative error of at most `error`.

        Takes ⟨c_i, y⟩ in units of 2^−60. Returns None if the number is too large or too small to be computed so precisely.
        """
        ...

    def posterior(self, products: Sequence[int]) -> tuple[int, list[int]] | None:
        """Return f, and how often the record takes part in each round in the mean, given the outcome, in units of 2^−60.

        For scale 1. These means err relatively by less than 4·error over the cells, and by two units; Σ_i γ_i c_i is ∇ln f.
        """
        ...


class Process(Protocol):
    """How a record takes part, in a run of n rounds with a Toeplitz matrix."""

    @property
    def rounds(self) -> int:
        """The number n of rounds."""
        ...

    @property
    def columns(self) -> list[int]:
        """The coefficients of C/σ, as `rounded` returns them."""
        ...

    def with_noise(self, sigma: Fraction) -> Process:
        """Return the same with another σ."""
        ...

    def never(self) -> Fraction | None:
        """Return an upper bound of −ln w_∅, where w_∅ is the probability of taking part in no round; None if it is 0."""
        ...

    def hoelder(self, scale: Fraction, parameter: Fraction | None, epsilon: Fraction) -> Fraction | None:
        """Return an upper bound of the logarithm of Hölder's bound on samples with means scaled by `scale`; None if unknown.

        `parameter` is that of a certificate; None stands for patterns with their own law. See `scaled_bound`.
        """
        ...

    def largest(self) -> int:
        """Return the most that the participations of one record move a row, in the units of `columns`."""
        ...

    def longest(self) -> Fraction:
        """Return an upper bound of ‖Cx‖² over all patterns."""
        ...

    def size(self, replicas: int) -> int:
        """Return how many numbers the tables of tuples of m replicas have."""
        ...

    def tuples(self, replicas: int) -> TupleSource:
        """Return the tables of m replicas."""
        ...

    def pattern(self, random_bytes: Bytes) -> Pattern | None:
        """Return a pattern with the law w; None if it is not known from the bits that were drawn."""
        ...

    def ratio(self, scale: Fraction) -> RatioSource:
        """Return what computes the density."""
        ...


def rounded(coefficients: Sequence[Fraction], sigma: Fraction) -> list[int]:
    """Return c/σ, rounded up to multiples of 2^−36, in units of 2^−40.

    Larger entries give a larger δ, in both directions. Each row of Cx is, for every pattern, at most that of the rounded
    matrix, and a pair with larger shifts dominates one with smaller ones (section 1, Lemma C, row by row).
    """
    return [up(c / sigma, PLACES - 4) << 4 for c in coefficients]


class Outcomes:
    """Outcomes y of all rounds as large numbers with 128 bits for a row, and their products with the columns.

    Each row is y plus an offset that makes it positive. The product of the large number with the one of the coefficients, in
    the opposite order, has the sums Σ_j c_j·y_(i+j) of all rounds i as its digits, exactly.
    """

    def __init__(self, rounds: int, columns: Sequence[int], largest: int) -> None:
        """Take the coefficients in units of 2^−40, and the most that is added to a row or taken from it."""
        self.rounds, self.columns = rounds, list(columns)
        bands = len(self.columns)
        self._offset = 1 << ((9 << PLACES) + largest).bit_length()
        bits = ((self._offset + (9 << PLACES) + largest) * sum(self.columns)).bit_length()
        self._raised = min(127 - bits, 128 - 2 * PLACES - 4)
        if self._raised < 32:
            raise refused("new samples of so little noise")
        self._packed = _packed(self.columns)
        self._reversed = _packed(self.columns[::-1]) << self._raised
        self._mask = (1 << 128 * rounds) - 1
        sums = list(accumulate(self.columns))
        rows = [min(bands, rounds - i) - 1 for i in range(rounds)]
        self._offsets = [(self._offset * sums[row] << self._raised) >> 64 for row in rows]
        self._unit = EXPONENT - (2 * PLACES + self._raised - 64)
        self._skipped = 2 * (bands - 1) + 1

    def products(self, noise: Sequence[int], shifts: Pattern, scale: Fraction) -> list[int]:
        """Return ⟨c_i, y⟩ in units of 2^−60, within 2^−46, for y = noise + Σ scale·count·c_i over the given (i, count).

        scale is a multiple of 1/16, so that scale times a coefficient is a whole number. The digits are cut to their upper
        64 bits, in units of 2^(64 − 80 − raised) ≤ 2^−48, and so are the offsets.
        """
        y = _packed([z + self._offset for z in noise])
        for i, count in shifts:
            moved = scale * count
            y += (self._packed * moved.numerator // moved.denominator) << 128 * (i - 1)
        digits = (y & self._mask) * self._reversed
        size = self.rounds + len(self.columns)
        words = struct.unpack(f"<{2 * size}Q", digits.to_bytes(16 * size, "little"))
        upper = words[self._skipped : self._skipped + 2 * self.rounds : 2]
        unit = self._unit
        return [(word - offset) << unit for word, offset in zip(upper, self._offsets, strict=True)]

    def spread(self, weights: Sequence[int]) -> list[int]:
        """Return Σ_i weight_i·c_i in units of 2^−40, rounded down, for weights ≥ 0 in units of 2^−60 that are less than 2.

        A row has at most 2^21 columns, of less than 2^44 units, so that no digit exceeds 128 bits.
        """
        whole = (_packed(weights) * self._packed) & self._mask
        words = struct.unpack(f"<{2 * self.rounds}Q", whole.to_bytes(16 * self.rounds, "little"))
        return [(low >> EXPONENT) + (high << 64 - EXPONENT) for low, high in zip(words[::2], words[1::2], strict=True)]


def _packed(rows: Sequence[int]) -> int:
    return int.from_bytes(b"".join([row.to_bytes(16, "little") for row in rows]), "little")


LN2 = ln(2 << EXPONENT, EXPONENT)
TABLE = [exp(k << EXPONENT - 12, EXPONENT) for k in range(2840)]
REST = (1 << EXPONENT - 12) - 1


def growth(x: int) -> tuple[int, int]:
    """Return (M, k) with M·2^(k − 60) = e^x·(1 + η), |η| < 2^−36, for x in units of 2^−60 with |x| < 2^70.

    x = k·ln 2 + i·2^−12 + r with 0 ≤ r < 2^−12. ln 2 errs by 2^−60, and k times that is below 2^−49. The table errs by less
    than 2^−59; 1 + r + r²/2 misses less than r³/6·e^r < 2^−38; the products are rounded down by less than 2^−58 in all.
    """
    k, rest = divmod(x, LN2)
    r = rest & REST
    return TABLE[rest >> EXPONENT - 12] * ((1 << EXPONENT) + r + (r * r >> EXPONENT + 1)) >> EXPONENT, k

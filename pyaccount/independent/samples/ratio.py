"""The likelihood ratio of b-min-sep sampling at an outcome, with a proven relative error (sections 4.1 and 4.2).

With a_i = scale·⟨c_i, y⟩ − scale²·‖c_i‖²/2 the recursion is f_i = (1 − p)·f_(i+1) + p·e^(a_i)·f_(i+b), f_i = 1 after the last
round. The ratio is f_1 for a cold start and (f_1 + p·Σ_(1<i≤b) f_i)/(1 + (b − 1)p) for a warm one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from typing import TYPE_CHECKING

from ..form import refused
from .process import EXPONENT, LN2, PLACES, REST, TABLE, growth

if TYPE_CHECKING:
    from .spaced import SpacedRun

#: Probabilities are in units of 2^−80.
_CHANCE = 80


def halves(rounds: int, columns: Sequence[int], square: Fraction) -> list[int]:
    """Return square·‖c_i‖²/2 of the columns of all rounds, in units of 2^−60."""
    squares = list(accumulate(c * c for c in columns))
    shift, a, b = 2 * PLACES + 1 - EXPONENT, square.numerator, square.denominator
    return [(squares[min(len(columns), rounds - i) - 1] * a // b) >> shift for i in range(rounds)]


def cells(rounds: int, size: Fraction, largest: int) -> Fraction:
    """Return a bound on how far a likelihood ratio differs, relatively, over the cells of the normal numbers of an outcome.

    ln f has the gradient E[scale·Cx | y], whose entries are between 0 and scale times the largest entry of a Cx. Each of the
    n normal numbers is at most 2^−40 from the real one that it stands for. The bound is twice the product, as e^t − 1 < 2t
    for t < 1.
    """
    return rounds * size * Fraction(largest, 1 << PLACES) * Fraction(1, 1 << PLACES - 1)


class SpacedRatio:
    """The recursion in integers, in units of 2^−bits."""

    def __init__(self, setting: SpacedRun, scale: Fraction) -> None:
        """Take the scale of the means."""
        self._setting, self._scale, columns = setting, scale, setting.columns
        self._halves = halves(setting.rounds, columns, scale * scale)
        p = setting.probability
        self._join = int(p * (1 << _CHANCE))
        self._stay = (1 << _CHANCE) - self._join
        self._whole = (1 << _CHANCE) + (setting.apart - 1) * self._join if setting.warm else 1 << _CHANCE
        self.bits = 64 + math.ceil(-setting.rounds * math.log2(1 - float(p)) * 1.0001)
        n, b, size = setting.rounds, setting.apart, abs(scale)
        self.error = (n // b + 2) * (1 + size) ** 2 * Fraction(1, 1 << 34) + n * Fraction(1, 1 << 50)
        self.error += cells(n, size, max(columns))
        if self.error > Fraction(1, 1000) or min(p, 1 - p) < Fraction(1, 1 << 20):
            raise refused("new samples of so many rounds, or of so small a probability")

    def at(self, products: Sequence[int]) -> int | None:
        """Return the ratio in units of 2^−bits with a relative error of at most `error`; None if some f_i is out of range.

        f is a sum over patterns of products of at most n//b + 1 factors p·e^(a_i) and n factors 1 − p, all positive. a_i
        errs by (1 + |scale|)²·2^−45, and e^x is computed with a relative error below 2^−36 (`growth`, which stands here in
        line). p and 1 − p err by 2^−80, and relatively by less than 2^−59, since both are at least 2^−20. Each f_i is at
        least 2^60 units, so that rounding it down by two units errs by less than 2^−58 of it.
        """
        b, join, stay, table, whole, rest_mask = self._setting.apart, self._join, self._stay, TABLE, LN2, REST
        one, half, n, a, d = 1 << 60, self._halves, len(products), self._scale.numerator, self._scale.denominator
        values = [1 << self.bits] * (n + b)
        following = 1 << self.bits
        try:
            for i in range(n - 1, -1, -1):
                k, rest = divmod(products[i] * a // d - half[i], whole)
                r = rest & rest_mask
                risen = table[rest >> 48] * (one + r + (r * r >> 61)) >> 60
                following = (stay * following >> 80) + (join * risen * values[i + b] >> 140 - k)
                values[i] = following
        except ValueError:  # a negative shift: e^97 and more
            return None
        if min(values) < one:
            return None
        if not self._setting.warm:
            return following
        return ((following << _CHANCE) + join * sum(values[1:b])) // self._whole

    def posterior(self, products: Sequence[int]) -> tuple[int, list[int]] | None:
        """Return f, and the probabilities γ_i of taking part in round i given the outcome, in units of 2^−60; scale is 1.

        γ_i = F_i·p·e^(a_i)·f_(i+b)/f, where F_i is the weight of being available in round i: F_(i+1) gets (1 − p)·F_i, and
        F_(i+b) gets p·e^(a_i)·F_i. F has the error of f, so that γ_i errs relatively by less than 4·error, and by two units.
        Over a cell γ_i changes by the difference of two gradients as in `cells`, which is less than that too.
        """
        b, join, stay, n, p = self._setting.apart, self._join, self._stay, len(products), self._setting.probability
        values, unit = [1 << self.bits] * (n + b), 1 << self.bits
        risen: list[tuple[int, int]] = []
        try:
            for i in range(n - 1, -1, -1):
                here, k = growth(products[i] - self._halves[i])
                risen.append((join * here, 140 - k))
                values[i] = (stay * values[i + 1] >> _CHANCE) + (join * here * values[i + b] >> 140 - k)
            risen.reverse()
            whole = 1 + (b - 1) * p if self._setting.warm else 1
            forward = [int(unit / whole), *([int(unit * p / whole) if self._setting.warm else 0] * (b - 1)), *([0] * n)]
            f = sum(weight * value for weight, value in zip(forward, values, strict=False)) >> self.bits
            found = []
            for i in range(n):
                weight, shift = risen[i]
                reached = weight * forward[i] >> shift
                forward[i + 1] += stay * forward[i] >> _CHANCE
                forward[i + b] += reached
                found.append((reached * values[i + b] << EXPONENT) // (f << self.bits))
        except ValueError:
            return None
        return (f, found) if min(*values, *forward[:n]) >= 1 << EXPONENT else None

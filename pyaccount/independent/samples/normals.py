"""Random numbers with exact laws: each integer that is drawn stands for a cell of real numbers.

The theorems speak of real numbers with exact laws, and a computer draws bits. Here nothing is approximated: think of a
procedure that draws infinitely many bits, of which this one looks at the first. What it looks at determines a cell of the
real number, or nothing; it then says so (None), and whoever evaluates a sample takes the largest value that a sample may
have. So the value that is used is never below that of the exact procedure.
"""

from __future__ import annotations

import os
import random
from array import array
from bisect import bisect_right
from fractions import Fraction
from functools import cache
from itertools import accumulate

from ..enclosures import exp
from .process import PLACES, Bytes

#: Columns of the staircase are 2^−8 wide, and the last one begins at 8.5.
_COLUMNS, _WIDTH = 8 * 256 + 128, 8


def source(seed: int | None) -> Bytes:
    """Return where bytes come from: the operating system, or a seed, which voids every guarantee (for tests only)."""
    return os.urandom if seed is None else random.Random(seed).randbytes


#: e^(−z²/2) is counted in units of 1/_SCALE, chosen so that the area of the staircase is nearly 2^64.
_SCALE = 57_300_000_000_000_000


@cache
def _staircase() -> tuple[list[int], list[int]]:
    """Return sums of the areas of the columns, and heights that are below the curve in the whole column.

    A column of height h has h cells of its width and the height 1/_SCALE, so that its area is h. Beyond 8.5 the integral of
    e^(−z²/2) is below e^(−8.5²/2)/8.5 < 2.5e-17, that is 2.5e-17·2^8·_SCALE < 367 cells; 400 are taken for one more column.
    """
    curve = [_SCALE * exp(-(k * k << 62 - 2 * _WIDTH - 1), 62) for k in range(_COLUMNS + 1)]
    upper = [(height + 2 * _SCALE >> 62) + 1 for height in curve[:-1]]
    lower = [max(0, height - 2 * _SCALE >> 62) for height in curve[1:]]
    sums = [0, *accumulate([*upper, 400])]
    if sums[-1] > 1 << 64:
        raise ArithmeticError("the staircase has more than 2^64 cells")
    return sums, lower


def normals(count: int, random_bytes: Bytes) -> list[int] | None:
    """Return standard normal numbers as multiples of 2^−40, each at most one unit from the real number that it stands for.

    *Rejection* (von Neumann 1951): a point that is uniform under a staircase above e^(−z²/2), z ≥ 0, and is rejected if it
    lies above the curve, has a half-normal z. A 64-bit number below the area of the staircase is a column and the height of
    a cell; 32 further bits are z in the column, and one its sign. A cell that lies wholly under the curve is accepted, one
    that lies wholly above it is rejected, and another one, or the column beyond 8.5, gives None: there further bits would
    decide. The height of a cell is compared with the curve at both ends of the part of the column, which is 2^−40 wide.
    """
    sums, lower = _staircase()
    area, drawn, last = sums[-1], 0, _COLUMNS
    found: list[int] = []
    words: array[int] = array("Q")
    while len(found) < count:
        if drawn >= len(words):
            words, drawn = array("Q", random_bytes(16 * (count - len(found) + 4 + count // 64))), 0
        here, place = words[drawn], words[drawn + 1]
        drawn += 2
        if here >= area:
            continue
        column = bisect_right(sums, here) - 1
        height, z = here - sums[column], column << PLACES - _WIDTH | place & 0xFFFFFFFF
        if column == last:
            return None
        if height >= lower[column]:
            top, end = (_SCALE * exp(-(at * at << 1) >> 2 * PLACES - 60, 62) for at in (z, z + 1))
            if height > top + 2 * _SCALE >> 62:
                continue
            if height + 1 > end - 2 * _SCALE >> 62:
                return None
        found.append(z if place >> 63 else -z)
    return found


def chance(x: Fraction) -> int:
    """Return 2^64·x rounded down: a 64-bit number below it is an event of probability x, above it none, and at it unknown."""
    return (x.numerator << 64) // x.denominator


def below(total: int, random_bytes: Bytes) -> int:
    """Return a whole number that is uniform below `total`; numbers that are too large are drawn again."""
    size = total.bit_length() + 7 >> 3
    while True:
        number = int.from_bytes(random_bytes(size), "little") >> 8 * size - total.bit_length()
        if number < total:
            return number

"""e^x, ln x and the tail of the normal law in integers, each within one unit.

A number x stands as the integer x·2^bits. Each function takes an exact number of this form and returns an integer that is at most
one unit (2^−bits) from the exact value: it computes with 40 or more further bits and rounds to the nearest. A shift to the right
rounds a product of integers down by less than one unit.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

#: Bits beyond those of the result.
GUARD = 40
#: Bits of logarithms and exponentials of fractions.
WIDE = 320


def _inverse_tangent(inverse: int, bits: int) -> int:
    """Return atan(1/inverse) = Σ_n (−1)^n/((2n + 1)·inverse^(2n + 1)) within 2^18 units.

    Each of fewer than 2^17 terms is rounded twice; what follows the first zero is below one unit, as the terms fall by 4 or more.
    """
    power, total, n = (1 << bits) // inverse, 0, 0
    while power:
        total += (-1) ** n * (power // (2 * n + 1))
        power //= inverse * inverse
        n += 1
    return total


@cache
def root_of_two_pi(bits: int) -> int:
    """Return √(2π) within one unit; π = 16·atan(1/5) − 4·atan(1/239) (Machin)."""
    work = bits + GUARD
    pi = 16 * _inverse_tangent(5, work) - 4 * _inverse_tangent(239, work)
    return math.isqrt(2 * pi << 2 * bits - work)


def exp(x: int, bits: int) -> int:
    """Return e^x = (e^(x/2^m))^(2^m), where |x|/2^m < 2^−8.

    Taylor's series ends at a term that is rounded to zero: each of its N < 2^14 terms errs by at most 3 units, what follows by 8,
    and x/2^m by one: less than 2^16 units in all, of a power near 1. A square has twice the relative error, and a further unit.
    So m squarings make it less than 2^(m + 17) units, times e^x if x > 0. `work` has GUARD + m bits more than the result, and
    1.5·x > x·log₂ e further ones: the error is below 2^−22 units of the result, which is then rounded.
    """
    m = max(0, x.bit_length() - bits) + 8
    work = bits + GUARD + m + max(0, 3 * x >> bits + 1) + 1
    y, total, term, n = x << work - bits >> m, 1 << work, 1 << work, 1
    while term:
        term = (term * y >> work) // n
        total += term
        n += 1
    for _ in range(m):
        total = total * total >> work
    return total + (1 << work - bits - 1) >> work - bits


def ln(x: int, bits: int) -> int:
    """Return ln x for x > 0, by Newton's method from a double: ln x = y + ln(1 + d), d = x·e^−y − 1.

    e^−y has log₂ x bits more than y, so that d errs by less than 2 units. It ends once d² is below one unit: then y + d errs by
    less than 3.
    """
    work = bits + GUARD
    more = work + max(0, x.bit_length() - bits)
    y, d = round((math.log(x) - bits * math.log(2.0)) * (1 << GUARD)) << bits, 1 << work
    while d * d >> work:
        d = (x * exp(-y << more - work, more) >> bits + more - work) - (1 << work)
        y += d
    return y + (1 << GUARD - 1) >> GUARD


def tail(x: int, bits: int) -> int:
    """Return Pr[N(0, 1) > x]; where e^(−x²/2) is below a unit, 0.

    For x ≥ 0 it is ½ − φ(x)·Σ_n x^(2n+1)/(1·3·…·(2n+1)) (Abramowitz & Stegun 26.2.11). All terms are positive. A rounding of up
    to 2 units in one of them is passed on with factors x²/(2n + 3) whose products are at most e^(x²/2), so that N terms err by
    at most 2N²·e^(x²/2) units, and their product with φ(x) ≤ 0.4·e^(−x²/2) by N², N < 2^16. `work` has log₂ e^(x²/2) < 0.73·x²
    bits more, since φ errs by a unit times a sum below 1.3·e^(x²/2). The series ends at a zero once the factors are below ½.
    """
    if x < 0:
        return (1 << bits) - tail(-x, bits)
    if x * x >> bits + 1 > bits + 3 << bits:
        return 0
    work = bits + GUARD + (x * x * 73 // 100 >> 2 * bits) + 1
    wide = x << work - bits
    square = wide * wide >> work
    density = (exp(-(square >> 1), work) << work) // root_of_two_pi(work)
    term, total, n = wide, 0, 0
    while term or square >> work > n:
        total += term
        term = (term * square >> work) // (2 * n + 3)
        n += 1
    return (1 << bits - 1) - ((density * total >> work) + (1 << work - bits - 1) >> work - bits)


def up(x: Fraction, bits: int) -> int:
    """Return the least number of `bits` bits that is at least x."""
    return -((-x.numerator << bits) // x.denominator)


def root(square: Fraction, bits: int) -> int:
    """Return an upper bound of √square, at most one unit above it."""
    return math.isqrt((square.numerator << 2 * bits) // square.denominator) + 1


def ln_above(x: Fraction) -> Fraction:
    """Return an upper bound of ln x, for x > 0."""
    return Fraction(ln(up(x, WIDE), WIDE) + 1, 1 << WIDE)


def exp_above(x: Fraction) -> Fraction:
    """Return an upper bound of e^x."""
    return Fraction(exp(up(x, WIDE), WIDE) + 1, 1 << WIDE)

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


@cache
def _inverse_tangent(inverse: int, bits: int, sign: int) -> int:
    """Return Σ_n sign^n/((2n + 1)·inverse^(2n + 1)): atan(1/inverse), or atanh for sign 1; within 2^18 units.

    Each of fewer than 2^17 terms is rounded twice; what follows the first zero is below one unit, as the terms fall by 4 or more.
    """
    power, total, n = (1 << bits) // inverse, 0, 0
    while power:
        total += sign**n * (power // (2 * n + 1))
        power //= inverse * inverse
        n += 1
    return total


@cache
def ln2(bits: int) -> int:
    """Return ln 2 = 2·atanh(1/3) within one unit."""
    return 2 * _inverse_tangent(3, bits + GUARD, 1) >> GUARD


@cache
def root_of_two_pi(bits: int) -> int:
    """Return √(2π) within one unit; π = 16·atan(1/5) − 4·atan(1/239) (Machin)."""
    work = bits + GUARD
    pi = 16 * _inverse_tangent(5, work, -1) - 4 * _inverse_tangent(239, work, -1)
    return math.isqrt(2 * pi << 2 * bits - work)


def exp(x: int, bits: int) -> int:
    """Return e^x for x < 2^60.

    With k = ⌊x/ln 2⌋ from enough bits, x = k·ln 2 + r, 0 ≤ r < 0.7. k·ln 2 has 64 further bits, so that r errs by less than 3
    units of 2^−work. Taylor's series of e^(r/2^8) ends at the first term that is zero: each of its N < 2^10 terms errs by at
    most 3 units, what follows by 8. Eight squarings multiply the error by less than 2^8·e^0.7·2, and add fewer than 2^9 units:
    less than 2^22 in all, times 2^k, where work − bits = 40 + max(k, 0). That is below 2^−18 units of the result, which is then
    rounded.
    """
    k = (x << 64) // ln2(bits + 64)
    work = bits + GUARD + max(k, 0)
    y = ((x << work - bits) - (k * ln2(work + 64) >> 64)) >> 8
    total = term = 1 << work
    n = 1
    while term > 0:
        term = (term * y >> work) // n
        total += term
        n += 1
    for _ in range(8):
        total = total * total >> work
    shift = work - bits - k
    return total + (1 << shift >> 1) >> shift


def ln(x: int, bits: int) -> int:
    """Return ln x for x > 0.

    With a double y near ln x and d = x·e^−y − 1, ln x = y + ln(1 + d), and |d| < 2^−30 is checked. e^−y has log₂ x bits more
    than the result and GUARD, so that d errs by less than 2 units. The series of ln(1 + d) ends at a term that is rounded to 0
    or −1; each of fewer than 2^10 terms errs by less than 2 units, and what follows is below 2.
    """
    work = bits + GUARD + max(0, x.bit_length() - bits)
    start = round((math.log(x) - bits * math.log(2.0)) * (1 << 60))
    y = start << work - 60 if work >= 60 else start >> 60 - work
    d = (x * exp(-y, work) >> bits) - (1 << work)
    if abs(d) >= 1 << work - 30:
        raise ArithmeticError("the first value of a logarithm is not near enough")
    total, power, n = y, d, 1
    while power not in (0, -1):
        total += power // n if n % 2 else -(power // n)
        power = power * d >> work
        n += 1
    return total + (1 << work - bits - 1) >> work - bits


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

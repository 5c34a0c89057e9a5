"""Exponential, logarithm and normal tail in fixed-point integers, each with a proven error of at most one unit.

A number x is the integer x·2^bits. Every function takes an exact dyadic number and returns an integer within one unit
(2^−bits) of the exact value: it computes with 40 or more further bits, and rounds the result to the nearest. Products are exact
integers that are shifted right, which is rounding down by less than one unit.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

_GUARD = 40


@cache
def ln2(bits: int) -> int:
    """Return ln 2 within one unit.

    ln 2 = 2·atanh(1/3) = Σ_n 2/((2n+1)·3^(2n+1)). Each term is rounded down by less than one unit of 2^−(bits+20), there are
    fewer than 2^18 of them, and the terms after the first zero sum to less than one such unit, because each is below a ninth
    of the one before it.
    """
    power, total, n = (2 << (bits + 20)) // 3, 0, 0
    while power:
        total += power // (2 * n + 1)
        power //= 9
        n += 1
    return total >> 20


@cache
def root_of_two_pi(bits: int) -> int:
    """Return √(2π) within one unit, by Machin's π = 16·atan(1/5) − 4·atan(1/239); alternating series as in `ln2`."""
    work = bits + 30

    def arctangent(inverse: int) -> int:
        power, total, n = (1 << work) // inverse, 0, 0
        while power:
            total += (-1) ** n * (power // (2 * n + 1))
            power //= inverse * inverse
            n += 1
        return total

    pi = 16 * arctangent(5) - 4 * arctangent(239)
    return math.isqrt((2 * pi) << (2 * bits - work))


def exp(x: int, bits: int) -> int:
    """Return e^x within one unit, for x < 2^60.

    Proof. x = k·ln 2 + r, 0 ≤ r < 0.7 (for any integer k this is exact; k is chosen by division). At `work` bits r has an
    error below 3 units, since k·ln 2 is taken with 64 further bits. y = r/2^8. In Taylor's series of e^y each term has
    an error of at most 3 units: e ↦ (e·y + 1)/n + 1. It ends at the first term that is rounded to zero, and what follows is
    below 8 units because y < 1/2. With N terms the sum errs by less than 4N + 16 units, N < 2^10; eight squarings multiply
    that by less than 2^8·e^0.7·2 and add fewer than 2^9 units: less than 2^22 units. Times 2^k, at work − bits = 40 + max(k,
    0), this is below 2^−18 units of the result, which is then rounded to the nearest (the shift is at least 40).
    """
    k = (x << 64) // ln2(bits + 64)
    work = bits + _GUARD + max(k, 0)
    y = ((x << (work - bits)) - (k * ln2(work + 64) >> 64)) >> 8
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
    """Return ln x within one unit, for x > 0.

    Proof. y is a double near ln x and d = x·e^−y − 1, so that ln x = y + ln(1 + d). That |d| < 2^−30 is checked. e^−y has an
    error of one unit of `work`, which has log₂ x further bits, so d errs by less than 2 units. The series of ln(1 + d) is
    alternating or geometric with ratio below 2^−30: what follows a term that is rounded to 0 or −1 is below 2 units, and each
    of the fewer than 2^10 terms errs by less than 2 units.
    """
    size = max(0, x.bit_length() - bits)
    work = bits + _GUARD + size
    scale, whole = math.log(x), bits * math.log(2.0)
    start = round((scale - whole) * (1 << 60))
    y = start << (work - 60) if work >= 60 else start >> (60 - work)
    d = (x * exp(-y, work) >> bits) - (1 << work)
    if abs(d) >= 1 << (work - 30):
        raise ArithmeticError("the logarithm's first value is not near enough")
    total, power, n = y, d, 1
    while power not in (0, -1):
        total += power // n if n % 2 else -(power // n)
        power = power * d >> work
        n += 1
    return total + (1 << (work - bits - 1)) >> (work - bits)


def _half_to(x: int, bits: int) -> tuple[int, int]:
    """Return Pr[0 < N < x] and the density at x, for x ≥ 0, each within one unit.

    Pr[0 < N < x] = φ(x)·Σ_n t_n, t_n = x^(2n+1)/(1·3·…·(2n+1)), all positive (Abramowitz & Stegun 26.2.11). Proof of the error:
    rounding adds at most 2 units to each term, and passes them on by products of the factors x²/(2n+3), which are at most
    (x²/2)^m/m! ≤ e^(x²/2). So N terms err by at most 2N²·e^(x²/2) units, and their product with φ(x) ≤ 0.4·e^(−x²/2) by N²
    units, N < 2^16; φ errs by a few units, times a sum below 1.3·e^(x²/2). `work` has log₂ e^(x²/2) < 0.73·x² bits more. The
    series ends at a zero term once the factors are below ½, so that what follows is below the last error.
    """
    square = x * x >> bits
    work = bits + _GUARD + (square * 73 // 100 >> bits) + 1
    wide = x << (work - bits)
    square = wide * wide >> work
    density = (exp(-(square >> 1), work) << work) // root_of_two_pi(work)
    term, total, n = wide, 0, 0
    while term or square >> work > n:
        total += term
        term = (term * square >> work) // (2 * n + 3)
        n += 1
    half = 1 << (work - bits - 1)
    return (density * total >> work) + half >> (work - bits), density + half >> (work - bits)


@cache
def _node(sixteenths: int, bits: int) -> tuple[int, int]:
    half, density = _half_to((abs(sixteenths) << bits) >> 4, bits)
    return (1 << (bits - 1)) + (-half if sixteenths >= 0 else half), density


def tail(x: int, bits: int) -> int:
    """Return Pr[N(0, 1) > x] within one unit.

    Beyond x²/2 > (bits + 2)·ln 2 the tail is below e^(−x²/2)/2 < 1 unit, and 0 is returned. Beyond 40 the series of
    `_half_to` is used. Otherwise c is the nearest multiple of 1/16 and d = x − c, |d| ≤ 1/32:
    Φ(c + d) − Φ(c) = φ(c)·Σ_n (−1)^n He_n(c)·d^(n+1)/(n+1)!. With u_n = He_n(c)·d^n/n! the recurrence of Hermite
    polynomials is u_(n+1) = (c·d·u_n − d²·u_(n−1))/(n+1). *Rounding*: the errors of u obey e_(n+1) ≤ (|cd|·e_n +
    d²·e_(n−1))/(n+1)
    + 2 with |cd| ≤ 5/4, so all are below 6 units, and those of the sum below 6·(number of terms)/32. *Remainder*: Cramér's
    inequality |He_n(c)| ≤ 1.09·√(n!)·e^(c²/4) (Abramowitz & Stegun 22.14.17) bounds term n, with φ(c), by 0.44·|d|^(n+1)/√(n!);
    these fall by a factor below 1/32, and the series ends when that is below 2^−work.
    """
    if x < 0:
        return (1 << bits) - tail(-x, bits)
    if x * x >> (bits + 1) > (bits + 3) << bits:
        return 0
    if x > 40 << bits:
        return (1 << (bits - 1)) - _half_to(x, bits)[0]
    work = bits + _GUARD
    nearest = ((x >> (bits - 5)) + 1) >> 1
    at_node, density = _node(nearest, work)
    d = (x << _GUARD) - ((nearest << work) >> 4)
    product, square = (nearest * d) >> 4, d * d >> work
    before, u, total = 0, 1 << work, 0
    for n in range(_terms(work)):
        total += -(u // (n + 1)) if n % 2 else u // (n + 1)
        before, u = u, ((product * u - square * before) >> work) // (n + 1)
    moved = (density * (total * d >> work)) >> work
    return at_node - moved + (1 << (_GUARD - 1)) >> _GUARD


@cache
def _terms(work: int) -> int:
    n = 1
    while 5 * (n + 1) + math.lgamma(n + 1) / math.log(4.0) < work + 2:
        n += 1
    return n


def up(x: Fraction, bits: int) -> int:
    """Return the least dyadic number of `bits` bits that is at least x."""
    return -((-x.numerator << bits) // x.denominator)


#: Logarithms and exponentials of fractions have this many binary digits.
WIDE = 256


def logarithm(x: Fraction) -> Fraction:
    """Return ln x within 2^−250, for x > 0: two logarithms of integers, each within one unit of 2^−256."""
    return Fraction(ln(x.numerator << WIDE, WIDE) - ln(x.denominator << WIDE, WIDE), 1 << WIDE)


def exponential(x: Fraction) -> Fraction:
    """Return an upper bound of e^x that is at most 2^−254 larger if x < 0, and relatively so if x ≥ 0."""
    return Fraction(exp(up(x, WIDE), WIDE) + 1, 1 << WIDE)

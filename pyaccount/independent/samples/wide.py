"""Logarithms and exponentials of fractions, with 256 binary digits."""

from __future__ import annotations

from fractions import Fraction

from ..enclosures import exp, ln, up

#: Logarithms and exponentials of fractions have this many binary digits.
WIDE = 256


def logarithm(x: Fraction) -> Fraction:
    """Return ln x within 2^−250, for x > 0: two logarithms of integers, each within one unit of 2^−256."""
    return Fraction(ln(x.numerator << WIDE, WIDE) - ln(x.denominator << WIDE, WIDE), 1 << WIDE)


def exponential(x: Fraction) -> Fraction:
    """Return an upper bound of e^x that is at most 2^−254 larger if x < 0, and relatively so if x ≥ 0."""
    return Fraction(exp(up(x, WIDE), WIDE) + 1, 1 << WIDE)

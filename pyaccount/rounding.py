"""Round numbers for people, in the direction that keeps the statement true."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fractions import Fraction


def up(value: float, digits: int = 6) -> str:
    """Return `value` rounded up to `digits` significant digits: it is still an upper bound."""
    return _rounded(value, digits, ROUND_CEILING)


def down(value: float, digits: int = 6) -> str:
    """Return `value` rounded down to `digits` significant digits: it is still a lower bound."""
    return _rounded(value, digits, ROUND_FLOOR)


def decimal_beside(exact: Fraction, towards: float) -> float:
    """Return the double whose decimal is next to a fraction on the side of `towards`; the fraction's own double if there is one.

    The decimal is what the double is written as, which people mean: 3/10 has the double 0.3. Raises `OverflowError` beyond all
    doubles.
    """
    nearest = float(exact)
    written = type(exact)(repr(nearest))
    beyond = written >= exact if towards > 0 else written <= exact
    return nearest if beyond else math.nextafter(nearest, towards)


def shortest(value: float) -> str:
    """Return a given number in its shortest exact form."""
    text = f"{value:g}" if float(f"{value:g}") == value else repr(value)
    return text.replace("e-0", "e-").replace("e+0", "e").replace("e+", "e")


def positional(value: float | Fraction) -> str:
    """Return the decimal that a number is written as, without an exponent and without zeros that say nothing: 1e-5 is 0.00001."""
    text = f"{Decimal(repr(value) if isinstance(value, float) else str(value)):f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("-0", "") else text


def rounded_nearest(value: float, digits: int = 6) -> str:
    """Return `value` rounded to the nearest, to `digits` significant digits: for numbers that are not bounds.

    Whole numbers stay whole.
    """
    if isinstance(value, int):
        return str(value)
    return f"{value:.{digits}g}".replace("e-0", "e-").replace("e+0", "e").replace("e+", "e")


def _rounded(value: float, digits: int, mode: str) -> str:
    if not math.isfinite(value):
        return "∞" if value > 0 else str(value)
    short = f"{value:.{digits}g}"
    # If these few digits represent a number exactly, it was given that way: 1e-5 stays 1e-5.
    exact = Decimal(short) if float(short) == value else Decimal(value)
    rounded = Context(prec=digits, rounding=mode).plus(exact)
    if rounded == 0:
        return "0"
    text = f"{rounded.normalize():f}" if -4 <= rounded.adjusted() < 9 else f"{rounded.normalize():e}"
    return text.replace("e+", "e")

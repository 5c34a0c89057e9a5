"""Round values on an axis: three at least and few enough that their labels stand apart, for pictures of both kinds."""

from __future__ import annotations

import math

#: The fewest ticks by which an axis can be read, and the most that have room.
FEWEST, MOST = 3, 7

#: Mantissas of the ticks of a logarithmic axis with fewer decades than `FEWEST`, from the most to the least.
_MANTISSAS = ((1, 2, 5), (1, 3))

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

Ticks = list[tuple[float, str]]


def round_ticks(low: float, high: float, *, log: bool = False, most: int = MOST) -> Ticks:
    """Round values from `low` to `high` with their labels: from 3 to `most` of them.

    A logarithmic axis has whole decades, every one or every few; where it has fewer than three of them, mantissas 1, 2 and 5 or 1
    and 3; and where it is too short for these, the ticks of a linear axis. `low` < `high`, both positive on a logarithmic one.
    """
    if not log:
        return _linear(low, high, most)
    # From the top, which is where a probability ends.
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    if last - first + 1 >= FEWEST:
        stride = math.ceil((last - first) / (most - 1))
        return [(10.0**k, power(k)) for k in range(last, first - 1, -stride)]
    slack = 1e-9 * (high - low)
    for mantissas in _MANTISSAS:
        found = [(digit, k) for k in range(last + 1, first - 2, -1) for digit in reversed(mantissas)]
        inside = [(digit, k) for digit, k in found if low - slack <= digit * 10.0**k <= high + slack]
        if FEWEST <= len(inside) <= most:
            return [(digit * 10.0**k, _scaled(digit, k)) for digit, k in inside]
    return _linear(low, high, most)


def power(exponent: int) -> str:
    """A power of ten: in full while that is short."""
    return {0: "1", -1: "0.1", 1: "10"}.get(exponent, f"10{str(exponent).translate(_SUPERSCRIPTS)}")


def _linear(low: float, high: float, most: int) -> Ticks:
    """Multiples of a round step. One that is at least 1/most of the axis is below twice that, so that three fit."""
    width = high - low
    rough = width / most
    size = 10.0 ** math.floor(math.log10(rough))
    # A step that is too small by rounding alone would give a tick too many.
    step = next(size * factor for factor in (1.0, 2.0, 2.5, 5.0, 10.0) if size * factor >= rough * (1.0 + 1e-9))
    first, last = math.ceil(low / step - 1e-6), math.floor(high / step + 1e-6)
    decimals = max(0, -math.floor(math.log10(step) + 1e-9) + (1 if round(step / size, 6) == 2.5 else 0))
    values = [k * step for k in range(first, last + 1)]
    most_digits = max(abs(low), abs(high))
    if most_digits >= 1e5 or most_digits < 1e-3:
        exponent = math.floor(math.log10(most_digits))
        decimals = max(0, decimals + exponent)
        return [(value, _times(f"{value / 10.0**exponent:.{decimals}f}", exponent)) for value in values]
    return [(value, f"{value + 0.0:.{decimals}f}") for value in values]


def _scaled(digit: int, exponent: int) -> str:
    if digit == 1:
        return power(exponent)
    return f"{digit * 10.0**exponent:g}" if -3 <= exponent <= 3 else _times(str(digit), exponent)


def _times(mantissa: str, exponent: int) -> str:
    return "0" if float(mantissa) == 0.0 else f"{mantissa}·{power(exponent)}"

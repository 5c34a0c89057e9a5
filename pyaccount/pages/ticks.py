"""Chooses round values on an axis, at least three and few enough to keep their labels apart."""

from __future__ import annotations

import math

#: The fewest ticks with which an axis can be read, and the most that have room.
FEWEST, MOST = 3, 7

#: The mantissas of the ticks of a logarithmic axis with fewer decades than `FEWEST`, most ticks first.
_MANTISSAS = ((1, 2, 5), (1, 3))

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

Ticks = list[tuple[float, str]]


def round_ticks(low: float, high: float, *, log: bool = False, most: int = MOST) -> Ticks:
    """Return from 3 to `most` round values between `low` and `high`, with their labels.

    A logarithmic axis has ticks at whole decades, or at every n-th one. If it has fewer than three decades, its
    mantissas are 1, 2 and 5, or 1 and 3; if it is too short for these, it has the ticks of a linear axis. Requires
    `low` < `high`, both positive if `log`.
    """
    if not log:
        return _linear(low, high, most)
    # Begin at the top, where the axis of a probability ends.
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    if last - first + 1 >= FEWEST:
        stride = math.ceil((last - first) / (most - 1))
        return [(10.0**k, power(k)) for k in range(last, first - 1, -stride)]
    slack = 1e-9 * (high - low)
    for mantissas in _MANTISSAS:
        candidates = [(digit, k) for k in range(last + 1, first - 2, -1) for digit in reversed(mantissas)]
        inside = [(digit, k) for digit, k in candidates if low - slack <= digit * 10.0**k <= high + slack]
        if FEWEST <= len(inside) <= most:
            return [(digit * 10.0**k, _scaled(digit, k)) for digit, k in inside]
    return _linear(low, high, most)


def power(exponent: int) -> str:
    """Return a power of ten as text: in full if that is short."""
    return {0: "1", -1: "0.1", 1: "10"}.get(exponent, f"10{str(exponent).translate(_SUPERSCRIPTS)}")


def _linear(low: float, high: float, most: int) -> Ticks:
    """Return multiples of a round step. It is at least 1/`most` of the axis and less than twice that, so three fit."""
    width = high - low
    rough = width / most
    size = 10.0 ** math.floor(math.log10(rough))
    # A step that is too small because of rounding would give one tick too many.
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

"""The range of a number: what it contains, and how it is described in messages and in JSON Schema."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Range:
    """The numbers from `minimum` to `maximum`; `above` excludes the minimum, and `below` the maximum."""

    minimum: float
    maximum: float
    above: bool = False
    below: bool = False
    #: Whether 0 is in the range too, although it is below the minimum.
    zero: bool = False
    unit: str = ""
    words: str | None = None
    #: What the number counts or the unit it is measured in, if messages need not state it.
    measure: str = ""

    def __contains__(self, number: float) -> bool:
        """Whether the number is in the range; NaN and infinities are in no range."""
        if isinstance(number, float) and not math.isfinite(number):
            return False
        if self.zero and number == 0:
            return True
        from_below = number > self.minimum if self.above else number >= self.minimum
        from_above = number < self.maximum if self.below else number <= self.maximum
        return from_below and from_above

    def describe(self) -> str:
        """Return the range in words that complete "must be …"."""
        if self.words is not None:
            return self.words
        low = f"{'greater than' if self.above else 'at least'} {spelled_bound(self.minimum)}"
        high = f"{'less than' if self.below else 'at most'} {spelled_bound(self.maximum)}"
        return f"{low} and {high}{' ' if self.unit else ''}{self.unit}"

    def json_schema(self) -> dict[str, Any]:
        """Return the range as keywords of JSON Schema."""
        interval = {
            "exclusiveMinimum" if self.above else "minimum": self.minimum,
            "exclusiveMaximum" if self.below else "maximum": self.maximum,
        }
        return {"anyOf": [{"const": 0}, interval]} if self.zero else interval


def spelled_bound(number: float) -> str:
    """Return a bound as people write it: `50_000`, `1e9`, and `1e-5` without a leading zero in the exponent."""
    if isinstance(number, int) and abs(number) < 10**7:
        return f"{number:_}" if abs(number) >= 10**4 else str(number)
    mantissa, _, exponent = f"{number:g}".partition("e")
    if isinstance(number, int) and float(f"{number:g}") != number:
        return f"{number:_}"
    return f"{mantissa}e{int(exponent)}" if exponent else mantissa

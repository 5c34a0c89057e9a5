"""Spans of numbers, which a sweep can use as the values of a path."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import Field

from pyaccount.document import ranges
from pyaccount.reading.fields import Choice, Number
from pyaccount.reading.kinds import Section

TOO_LONG = f"a path has {ranges.GRID_LENGTH.describe()}"


class Span(Section):
    """The numbers from `start` to `stop`: `count` of them, or one every `step`."""

    start: Annotated[float, Number(ranges.SWEPT)] = Field(description="The first value.")
    stop: Annotated[float, Number(ranges.SWEPT)] = Field(
        description="The last value. With a step, values beyond it are not used."
    )
    count: Annotated[int | None, Number(ranges.GRID_LENGTH, whole=True)] = Field(
        default=None, description="The number of values, including start and stop. Instead of step."
    )
    step: Annotated[float | None, Number(ranges.SWEPT)] = Field(
        default=None, description="The difference between two consecutive values. Instead of count."
    )
    spacing: Annotated[Literal["linear", "log"], Choice(("linear", "log"))] = Field(
        default="linear",
        description="With count: whether consecutive values have equal differences (linear) or equal ratios (log).",
    )

    def numbers(self) -> list[int | float]:
        """Return the numbers of the span, rounded to twelve digits. Raises `ValueError` with a message for the user."""
        if (self.count is None) == (self.step is None):
            raise ValueError(
                "give one of count and step, and not both: it determines the numbers between start and stop"
            )
        if self.step is not None:
            return self._stepped(self.step)
        assert self.count is not None
        if (self.count == 1) != (self.start == self.stop):
            raise ValueError("an empty range: with count: 1, start and stop must be equal; otherwise they must differ")
        shares = [index / max(self.count - 1, 1) for index in range(self.count)]
        if self.spacing == "linear":
            return [_tidy(self.start + share * (self.stop - self.start)) for share in shares]
        if self.start <= 0.0 or self.stop <= 0.0:
            raise ValueError("spacing: log needs a start and a stop greater than 0")
        return [_tidy(self.start * (self.stop / self.start) ** share) for share in shares]

    def _stepped(self, step: float) -> list[int | float]:
        if self.spacing == "log":
            raise ValueError("spacing: log needs count, because a step is a difference")
        if step == 0.0 or (self.stop - self.start) / step < 0.0:
            raise ValueError("an empty range: this step never leads from start to stop")
        # If rounding leaves the last step slightly short of `stop`, it still counts.
        steps = math.floor((self.stop - self.start) / step * (1.0 + 1e-12))
        if steps + 1 not in ranges.GRID_LENGTH:
            raise ValueError(TOO_LONG)
        return [_tidy(self.start + index * step) for index in range(steps + 1)]


def _tidy(number: float) -> int | float:
    """Return the number rounded to twelve digits, as an `int` if it is whole."""
    rounded = float(f"{number:.12g}")
    return int(rounded) if rounded.is_integer() else rounded

"""Pictures as data: curves on axes, bars, and heat maps. `svg` and `figure` draw them."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pyaccount.pages.ticks import round_ticks

#: The style of a line: first and second direction, a reference, lower bounds, or one of many lines.
Style = Literal["first", "second", "reference", "lower", "third", "fourth", "fifth", "sixth"]
#: The styles of many lines, which differ in colour and dashes.
MANY: tuple[Style, ...] = ("first", "second", "third", "fourth", "fifth", "sixth")
#: The share of an axis that the longest bar takes, if no bar stands for all there is; its value is printed in the rest.
LONGEST = 0.84


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis from `low` to `high`, linear or logarithmic."""

    label: str
    low: float
    high: float
    log: bool = False

    def share(self, value: float) -> float:
        """Return the position of a value on the axis, from 0 to 1; values outside are moved to the end."""
        low, high, at = self.low, self.high, value
        if self.log:
            low, high, at = math.log(low), math.log(high), math.log(max(value, low))
        # The position is the middle if the axis has no length, or if its length exceeds every double.
        position = (at - low) / (high - low) if 0.0 < high - low < math.inf else 0.5
        return min(1.0, max(0.0, position))

    def ticks(self) -> list[tuple[float, str]]:
        """Return round values with their labels; none if the axis is too short or too long for doubles."""
        width = self.high - self.low
        if not self.log and not sys.float_info.min < width / 60.0 < sys.float_info.max / 60.0:
            return []
        return round_ticks(self.low, self.high, log=self.log)


@dataclass(frozen=True, slots=True)
class Series:
    """A line through points, or only the points."""

    label: str
    points: tuple[tuple[float, float], ...]
    style: Style
    markers: bool = False
    line: bool = True
    #: A text beside each point, shown if there is room; empty for no texts.
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Plot:
    """Curves on axes. `title` and `description` are for readers who do not see it."""

    title: str
    description: str
    x: Axis
    y: Axis
    series: tuple[Series, ...]
    #: The corner that the curves leave free for the legend, or `above` the axes.
    legend: Literal["top right", "bottom right", "bottom left", "top left", "above"] = "top right"


@dataclass(frozen=True, slots=True)
class BarGroup:
    """A quantity and its bars: for each its label, its length, and its value as text."""

    label: str
    bars: tuple[tuple[str, float, str], ...]
    #: The length of a bar that stands for all there is; 0 if there is no such length.
    whole: float = 0.0

    @property
    def axis(self) -> Axis:
        """The axis of the bars, from 0, so that lengths are proportional to values, to the whole, if there is one."""
        longest = max(value for _, value, _ in self.bars)
        return Axis(self.label, 0.0, max(self.whole, longest) if self.whole else longest / LONGEST)


@dataclass(frozen=True, slots=True)
class Bars:
    """Bars of several quantities, one below the other, each with its own axis."""

    title: str
    description: str
    quantities: tuple[BarGroup, ...]


@dataclass(frozen=True, slots=True)
class HeatMap:
    """A quantity as a colour over two numbers; `values` has a row for each of `y`, with NaN for missing values.

    `texts` has the same shape: what is written into each cell, if there are few enough of them.
    """

    title: str
    x: str
    y: str
    across: tuple[float, ...]
    up: tuple[float, ...]
    values: tuple[tuple[float, ...], ...]
    texts: tuple[tuple[str, ...], ...]
    label: str


def log_axis(label: str, values: Sequence[float]) -> Axis:
    """Return a logarithmic axis up to 1 that shows all positive values, in whole decades, at least one."""
    least = min((value for value in values if value > 0.0), default=0.1)
    # Smaller powers of ten are not normal doubles.
    decade = max(-307, math.floor(math.log10(least) + 1e-9))
    return Axis(label, 10.0 ** min(decade, -1), 1.0, log=True)


def axis_around(label: str, values: Sequence[float], *, room: float = 1.25) -> Axis:
    """Return a logarithmic axis that contains the given positive values, with room at both ends."""
    low, high = max(min(values) / room, sys.float_info.min), min(max(values) * room, sys.float_info.max)
    return Axis(label, low, high, log=True)

"""Pictures of curves as data and as SVG: axes, ticks, lines. No script, no font and no colour of their own.

Colours are classes that the page's style gives meaning to, so that a picture follows the page into the dark; lines differ in
their dashes too, for those who see no colours.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from markupsafe import escape

from pyaccount.certificate.ticks import round_ticks

#: The size of a picture in its own units, and the room around its axes.
WIDTH, HEIGHT = 640, 400
LEFT, RIGHT, TOP, BOTTOM = 96, 18, 16, 62
#: The height of a line of the legend, and the most letters that have room in it.
LINE, LETTERS = 20, 46
#: The room that words beside a point take.
LABEL_WIDTH, LABEL_HEIGHT = 62.0, 17.0

#: How a line looks: the first and second direction, something to compare with, lower bounds; and one of many lines.
Style = Literal["first", "second", "reference", "lower", "third", "fourth", "fifth", "sixth"]
#: The looks of many lines, which differ in colour and dashes.
MANY: tuple[Style, ...] = ("first", "second", "third", "fourth", "fifth", "sixth")


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis from `low` to `high`, with a logarithmic scale or without."""

    label: str
    low: float
    high: float
    log: bool = False

    def share(self, value: float) -> float:
        """Where on the axis a value stands, 0 to 1; what lies outside is moved to the end."""
        low, high, at = self.low, self.high, value
        if self.log:
            low, high, at = math.log(low), math.log(high), math.log(max(value, low))
        # A range of nothing has one place; one that no double is as long as has the middle.
        place = (at - low) / (high - low) if 0.0 < high - low < math.inf else 0.5
        return min(1.0, max(0.0, place))

    def ticks(self) -> list[tuple[float, str]]:
        """Round values with their labels; none where nothing between the ends can be told apart, or no double is as long."""
        width = self.high - self.low
        if not self.log and not sys.float_info.min < width / 60.0 < sys.float_info.max / 60.0:
            return []
        return round_ticks(self.low, self.high, log=self.log)


@dataclass(frozen=True, slots=True)
class Series:
    """A line through points, or the points alone."""

    label: str
    points: tuple[tuple[float, float], ...]
    style: Style
    markers: bool = False
    line: bool = True
    #: Words beside each point, where there is room, or none.
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Plot:
    """Curves on axes. `title` and `description` are its words for those who do not see it."""

    title: str
    description: str
    x: Axis
    y: Axis
    series: tuple[Series, ...]
    #: The corner that the curves leave free for the legend, or a place of its own.
    legend: Literal["top right", "bottom right", "bottom left", "top left", "above"] = "top right"

    @property
    def top(self) -> float:
        """Where the axes begin."""
        named = sum(1 for series in self.series if series.label)
        return TOP + (LINE * named + 4 if self.legend == "above" else 0)

    @property
    def bottom(self) -> float:
        """Where they end."""
        return self.top + HEIGHT - TOP - BOTTOM

    @property
    def height(self) -> float:
        """Of the whole picture."""
        return self.bottom + BOTTOM


def svg(plot: Plot, name: str) -> str:
    """The picture as an SVG element; `name` makes its identifiers unique in a page."""
    parts = [
        f'<svg class="plot" viewBox="0 0 {WIDTH} {plot.height}" role="img" aria-labelledby="{escape(name)}-t {escape(name)}-d" '
        'xmlns="http://www.w3.org/2000/svg">',
        f'<title id="{escape(name)}-t">{escape(plot.title)}</title>',
        f'<desc id="{escape(name)}-d">{escape(plot.description)}</desc>',
        *_axes(plot),
    ]
    for series in plot.series:
        places = [_place(plot, point) for point in series.points]
        if series.line and len(places) > 1:
            parts.append(f'<polyline class="line {series.style}" points="{_path(places)}"/>')
        if series.markers or (series.line and len(places) == 1):
            parts += [f'<circle class="marker {series.style}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in places]
    return "\n".join([*parts, *_labels(plot), *_legend(plot), "</svg>"])


def _place(plot: Plot, point: tuple[float, float]) -> tuple[float, float]:
    x = LEFT + plot.x.share(point[0]) * (WIDTH - LEFT - RIGHT)
    y = plot.bottom - plot.y.share(point[1]) * (plot.bottom - plot.top)
    return x, y


def _path(places: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)


def _axes(plot: Plot) -> list[str]:
    right, top, bottom = WIDTH - RIGHT, plot.top, plot.bottom
    parts = []
    for value, label in plot.x.ticks():
        x = LEFT + plot.x.share(value) * (right - LEFT)
        parts.append(f'<line class="grid" x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{bottom}"/>')
        parts.append(f'<text class="tick" x="{x:.1f}" y="{bottom + 26}" text-anchor="middle">{escape(label)}</text>')
    for value, label in plot.y.ticks():
        y = bottom - plot.y.share(value) * (bottom - top)
        parts.append(f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}"/>')
        parts.append(f'<text class="tick" x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{escape(label)}</text>')
    middle_x, middle_y = (LEFT + right) / 2, (top + bottom) / 2
    parts.append(f'<polyline class="axis" points="{LEFT},{top} {LEFT},{bottom} {right},{bottom}"/>')
    parts.append(
        f'<text class="label" x="{middle_x}" y="{plot.height - 10}" text-anchor="middle">{escape(plot.x.label)}</text>'
    )
    parts.append(
        f'<text class="label" transform="translate(16 {middle_y}) rotate(-90)" text-anchor="middle">'
        f"{escape(plot.y.label)}</text>"
    )
    return parts


def _labels(plot: Plot) -> list[str]:
    """Words beside points: above or below, and none where they would lie on others."""
    parts: list[str] = []
    taken: list[tuple[float, float]] = []
    for series in plot.series:
        for (x, y), label in zip((_place(plot, point) for point in series.points), series.labels, strict=False):
            for place in ((x + 5.0, y - 6.0), (x - 5.0 - LABEL_WIDTH, y + 16.0)):
                if all(abs(place[0] - a) > LABEL_WIDTH or abs(place[1] - b) > LABEL_HEIGHT for a, b in taken):
                    taken.append(place)
                    at, anchor = (place[0], "start") if place[0] > x else (place[0] + LABEL_WIDTH, "end")
                    parts.append(
                        f'<text class="point" x="{at:.1f}" y="{place[1]:.1f}" text-anchor="{anchor}">{escape(label)}</text>'
                    )
                    break
    return parts


def _legend(plot: Plot) -> list[str]:
    shown = [series for series in plot.series if series.label]
    if not shown:
        return []
    across = plot.legend.endswith("right")
    x = WIDTH - RIGHT - 10 if across else LEFT + 14
    y = plot.bottom - 12 - LINE * (len(shown) - 1) if plot.legend.startswith("bottom") else TOP + 16
    y -= LINE / 2 if plot.legend == "above" else 0
    # The words start at the swatch on the left, and end at it on the right.
    text, anchor = (x - 38, "end") if across else (x + 38, "start")
    swatch = (x - 28, x) if across else (x, x + 28)
    parts = []
    for k, series in enumerate(shown):
        height = y + LINE * k
        if series.line:
            parts.append(
                f'<line class="line {series.style}" x1="{swatch[0]}" y1="{height - 4}" x2="{swatch[1]}" y2="{height - 4}"/>'
            )
        if series.markers:
            parts.append(f'<circle class="marker {series.style}" cx="{sum(swatch) / 2:.1f}" cy="{height - 4}" r="3"/>')
        parts.append(
            f'<text class="key" x="{text}" y="{height}" text-anchor="{anchor}">{escape(_short(series.label))}</text>'
        )
    return parts


def _short(label: str) -> str:
    return label if len(label) <= LETTERS else f"{label[: LETTERS - 1]}…"


def log_axis(label: str, values: Sequence[float], *, high: float = 1.0) -> Axis:
    """A logarithmic axis up to `high` that shows all positive values: whole decades, one at least."""
    least = min((value for value in values if value > 0.0), default=high / 10.0)
    # A power of ten below these is no double.
    decade = max(-307, math.floor(math.log10(least) + 1e-9))
    return Axis(label, 10.0 ** min(decade, math.floor(math.log10(high)) - 1), high, log=True)


def around(label: str, values: Sequence[float], *, room: float = 1.25) -> Axis:
    """A logarithmic axis on which positive values stand, with room at both ends."""
    low, high = max(min(values) / room, sys.float_info.min), min(max(values) * room, sys.float_info.max)
    return Axis(label, low, high, log=True)

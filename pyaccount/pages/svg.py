"""Draws pictures as SVG: axes, ticks, lines and bars, without scripts, fonts or colours.

Colours are CSS classes that the page's style sheet defines, so that a picture follows the dark mode; lines also differ
in their dashes, for readers who do not see colours. The label of a bar is above it, where it has the whole width, and
the value is at the bar's end, so that both can be read on a narrow screen. Where bars are shares of a whole, the axis ends with
the whole, and the value is above the bar too.
"""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import escape

from pyaccount.pages.plot import Axis, BarGroup, Bars, Plot

#: The size of a picture in its own units, and the margins around its axes.
WIDTH, HEIGHT = 640, 400
LEFT, RIGHT, TOP, BOTTOM = 96, 18, 16, 62
#: The height of a line of the legend, and the most letters that fit into it.
LINE, LETTERS = 20, 46
#: The space that a text beside a point takes.
LABEL_WIDTH, LABEL_HEIGHT = 62.0, 17.0
#: For bars: the margins around the axes, the height of a row and of its bar, and the space for ticks and label below.
SIDE, ABOVE, ROW, THICK, BELOW = 22, 8, 46, 16, 66


def svg(picture: Plot | Bars, name: str) -> str:
    """Return the picture as an SVG element; `name` makes its identifiers unique in a page."""
    height, parts = _bars(picture) if isinstance(picture, Bars) else _plot(picture)
    opening = [
        f'<svg class="plot" viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="{escape(name)}-t {escape(name)}-d" '
        'xmlns="http://www.w3.org/2000/svg">',
        f'<title id="{escape(name)}-t">{escape(picture.title)}</title>',
        f'<desc id="{escape(name)}-d">{escape(picture.description)}</desc>',
    ]
    return "\n".join([*opening, *parts, "</svg>"])


def _plot(plot: Plot) -> tuple[float, list[str]]:
    """Return the height of a picture of curves, and its elements."""
    named = sum(1 for series in plot.series if series.label)
    top = TOP + (LINE * named + 4 if plot.legend == "above" else 0)
    drawing = _Curves(plot, top, top + HEIGHT - TOP - BOTTOM)
    return drawing.bottom + BOTTOM, [*drawing.axes(), *drawing.lines(), *drawing.labels(), *drawing.legend()]


class _Curves:
    """Draws curves between the heights `top` and `bottom`."""

    def __init__(self, plot: Plot, top: float, bottom: float) -> None:
        self.plot, self.top, self.bottom = plot, top, bottom

    def place(self, point: tuple[float, float]) -> tuple[float, float]:
        x = LEFT + self.plot.x.share(point[0]) * (WIDTH - LEFT - RIGHT)
        return x, self.bottom - self.plot.y.share(point[1]) * (self.bottom - self.top)

    def lines(self) -> list[str]:
        parts = []
        for series in self.plot.series:
            places = [self.place(point) for point in series.points]
            if series.line and len(places) > 1:
                parts.append(f'<polyline class="line {series.style}" points="{_path(places)}"/>')
            if series.markers or (series.line and len(places) == 1):
                parts += [f'<circle class="marker {series.style}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in places]
        return parts

    def axes(self) -> list[str]:
        right, top, bottom = WIDTH - RIGHT, self.top, self.bottom
        parts = []
        for value, label in self.plot.x.ticks():
            x = LEFT + self.plot.x.share(value) * (right - LEFT)
            parts.append(f'<line class="grid" x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{bottom}"/>')
            parts.append(
                f'<text class="tick" x="{x:.1f}" y="{bottom + 26}" text-anchor="middle">{escape(label)}</text>'
            )
        for value, label in self.plot.y.ticks():
            y = bottom - self.plot.y.share(value) * (bottom - top)
            parts.append(f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}"/>')
            parts.append(f'<text class="tick" x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{escape(label)}</text>')
        parts.append(f'<polyline class="axis" points="{LEFT},{top} {LEFT},{bottom} {right},{bottom}"/>')
        parts.append(
            f'<text class="label" x="{(LEFT + right) / 2}" y="{bottom + BOTTOM - 10}" text-anchor="middle">'
            f"{escape(self.plot.x.label)}</text>"
        )
        parts.append(
            f'<text class="label" transform="translate(16 {(top + bottom) / 2}) rotate(-90)" text-anchor="middle">'
            f"{escape(self.plot.y.label)}</text>"
        )
        return parts

    def labels(self) -> list[str]:
        """Return the texts beside points, above or below them; those that would overlap others are left out."""
        parts: list[str] = []
        taken: list[tuple[float, float]] = []
        for series in self.plot.series:
            for (x, y), label in zip(map(self.place, series.points), series.labels, strict=False):
                for place in ((x + 5.0, y - 6.0), (x - 5.0 - LABEL_WIDTH, y + 16.0)):
                    if all(abs(place[0] - a) > LABEL_WIDTH or abs(place[1] - b) > LABEL_HEIGHT for a, b in taken):
                        taken.append(place)
                        at, anchor = (place[0], "start") if place[0] > x else (place[0] + LABEL_WIDTH, "end")
                        parts.append(
                            f'<text class="point" x="{at:.1f}" y="{place[1]:.1f}" text-anchor="{anchor}">{escape(label)}</text>'
                        )
                        break
        return parts

    def legend(self) -> list[str]:
        shown = [series for series in self.plot.series if series.label]
        legend = self.plot.legend
        if not shown:
            return []
        across = legend.endswith("right")
        x = WIDTH - RIGHT - 10 if across else LEFT + 14
        y = self.bottom - 12 - LINE * (len(shown) - 1) if legend.startswith("bottom") else TOP + 16
        y -= LINE / 2 if legend == "above" else 0
        # The text begins at the swatch if it is on the left, and ends at it if it is on the right.
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
                parts.append(
                    f'<circle class="marker {series.style}" cx="{sum(swatch) / 2:.1f}" cy="{height - 4}" r="3"/>'
                )
            words = escape(cut_label(series.label, LETTERS))
            parts.append(f'<text class="key" x="{text}" y="{height}" text-anchor="{anchor}">{words}</text>')
        return parts


def _path(places: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)


def cut_label(label: str, letters: int) -> str:
    """Return a label cut to at most `letters` letters."""
    return label if len(label) <= letters else f"{label[: letters - 1]}…"


def _bars(bars: Bars) -> tuple[float, list[str]]:
    """Return the height of a picture of bars, and its elements."""
    parts: list[str] = []
    top = 0.0
    for group in bars.quantities:
        parts += _group(group, group.axis, top + ABOVE)
        top += ABOVE + ROW * len(group.bars) + BELOW
    return top, parts


def _group(group: BarGroup, axis: Axis, top: float) -> list[str]:
    right = WIDTH - SIDE
    bottom = top + ROW * len(group.bars)
    parts = []
    for value, label in axis.ticks():
        x = SIDE + axis.share(value) * (right - SIDE)
        parts.append(f'<line class="grid" x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{bottom}"/>')
        parts.append(f'<text class="tick" x="{x:.1f}" y="{bottom + 22}" text-anchor="middle">{escape(label)}</text>')
    for place, (word, value, said) in enumerate(group.bars):
        y, end = top + ROW * place, SIDE + axis.share(value) * (right - SIDE)
        parts.append(f'<text class="key" x="{SIDE + 6}" y="{y + 18}">{escape(cut_label(word, LETTERS))}</text>')
        parts.append(
            f'<rect class="bar" x="{SIDE}" y="{y + ROW - THICK - 4}" width="{end - SIDE:.1f}" height="{THICK}"/>'
        )
        if group.whole:
            # A bar may fill the whole width, so its value is above it.
            parts.append(f'<text class="value" x="{right}" y="{y + 18}" text-anchor="end">{escape(said)}</text>')
        else:
            parts.append(f'<text class="value" x="{end + 6:.1f}" y="{y + ROW - 7}">{escape(said)}</text>')
    parts.append(f'<polyline class="axis" points="{SIDE},{top} {SIDE},{bottom} {right},{bottom}"/>')
    parts.append(
        f'<text class="label" x="{(SIDE + right) / 2}" y="{bottom + 46}" text-anchor="middle">{escape(group.label)}</text>'
    )
    return parts

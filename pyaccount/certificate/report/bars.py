"""Bars as data and as SVG: a few quantities, each with an axis of its own, for things that are called by words.

The word stands above its bar, where it has the whole width, and the value at the bar's end: both can be read on a narrow screen.
"""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import escape

from pyaccount.certificate.report.plot import LETTERS, WIDTH, Axis

#: The room around the axes, for a bar with its word, and below an axis for its ticks and its label.
SIDE, TOP, ROW, THICK, BELOW = 22, 8, 46, 16, 66
#: The share of an axis that the largest bar takes: the rest is for its value.
LONGEST = 0.84


@dataclass(frozen=True, slots=True)
class BarGroup:
    """What is compared, and the bars that have it: each with its word, its length and how that is said."""

    label: str
    bars: tuple[tuple[str, float, str], ...]

    @property
    def axis(self) -> Axis:
        """From 0, so that a bar that is twice as long is twice as much."""
        return Axis(self.label, 0.0, max(value for _, value, _ in self.bars) / LONGEST)

    @property
    def height(self) -> float:
        """Of its part of the picture."""
        return TOP + ROW * len(self.bars) + BELOW


@dataclass(frozen=True, slots=True)
class Bars:
    """Quantities below one another. `title` and `description` are the words for those who do not see it."""

    title: str
    description: str
    quantities: tuple[BarGroup, ...]

    @property
    def height(self) -> float:
        """Of the whole picture."""
        return sum(one.height for one in self.quantities)


def bars_svg(bars: Bars, name: str) -> str:
    """The picture as an SVG element; `name` makes its identifiers unique in a page."""
    parts = [
        f'<svg class="plot" viewBox="0 0 {WIDTH} {bars.height}" role="img" '
        f'aria-labelledby="{escape(name)}-t {escape(name)}-d" xmlns="http://www.w3.org/2000/svg">',
        f'<title id="{escape(name)}-t">{escape(bars.title)}</title>',
        f'<desc id="{escape(name)}-d">{escape(bars.description)}</desc>',
    ]
    top = 0.0
    for one in bars.quantities:
        parts += _quantity(one, top + TOP)
        top += one.height
    return "\n".join([*parts, "</svg>"])


def _quantity(quantity: BarGroup, top: float) -> list[str]:
    axis, right = quantity.axis, WIDTH - SIDE
    bottom = top + ROW * len(quantity.bars)
    parts = []
    for value, label in axis.ticks():
        x = SIDE + axis.share(value) * (right - SIDE)
        parts.append(f'<line class="grid" x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{bottom}"/>')
        parts.append(f'<text class="tick" x="{x:.1f}" y="{bottom + 22}" text-anchor="middle">{escape(label)}</text>')
    for place, (word, value, said) in enumerate(quantity.bars):
        y, end = top + ROW * place, SIDE + axis.share(value) * (right - SIDE)
        short = word if len(word) <= LETTERS else f"{word[: LETTERS - 1]}…"
        parts.append(f'<text class="key" x="{SIDE + 6}" y="{y + 18}">{escape(short)}</text>')
        parts.append(
            f'<rect class="bar" x="{SIDE}" y="{y + ROW - THICK - 4}" width="{end - SIDE:.1f}" height="{THICK}"/>'
        )
        parts.append(f'<text class="value" x="{end + 6:.1f}" y="{y + ROW - 7}">{escape(said)}</text>')
    parts.append(f'<polyline class="axis" points="{SIDE},{top} {SIDE},{bottom} {right},{bottom}"/>')
    middle = (SIDE + right) / 2
    parts.append(
        f'<text class="label" x="{middle}" y="{bottom + 46}" text-anchor="middle">{escape(quantity.label)}</text>'
    )
    return parts

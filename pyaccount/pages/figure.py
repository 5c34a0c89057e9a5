"""Draws pictures with matplotlib, which is imported only here, and only when a picture is drawn."""

from __future__ import annotations

import io
import math
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pyaccount.errors import DomainError, MissingExtraError
from pyaccount.files import write_atomically
from pyaccount.pages.page import legible
from pyaccount.pages.plot import Bars, HeatMap, Plot
from pyaccount.pages.svg import cut_label
from pyaccount.pages.ticks import MOST, round_ticks

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text
    from matplotlib.transforms import Bbox

#: The formats of pictures, by the endings of their files.
ENDINGS = (".svg", ".png", ".pdf")
#: The width of a picture in inches, and the size of its small letters in points, which can be read at 400 pixels.
WIDE, SMALL = 5.2, 9.5
#: The most ticks of a horizontal axis, and the most letters of a name.
MOST_ACROSS, LETTERS = 6, 60
#: The most lines with names; a picture with more of them has no legend.
MOST_NAMED = 12
#: The most labelled positions on a side of a heat map, and the most columns and rows of which every cell has its value.
MOST_PLACES, MOST_WRITTEN = 6, 10
#: How bright red, green and blue are.
_LUMA = (0.299, 0.587, 0.114)
#: Markers and dashes of lines, which differ for readers who do not see colours.
_LOOKS = (("o", "-"), ("s", "--"), ("^", "-."), ("D", ":"), ("v", "-"), ("x", "--"))


def figure(picture: Plot | Bars | HeatMap) -> Figure:
    """Return the picture as a figure of matplotlib, which a notebook shows and `savefig` writes.

    Raises `MissingExtraError` without matplotlib.
    """
    picture = legible(picture)
    match picture:
        case Plot():
            return _curves(picture)
        case Bars():
            return _bars(picture)
        case HeatMap():
            return _heat_map(picture)


def check_drawing() -> None:
    """Raise `MissingExtraError` if matplotlib is not installed. Call this before long work."""
    _new_figure()


def check_ending(path: str | Path) -> None:
    """Raise `DomainError` unless the name of a file ends in one of `ENDINGS`."""
    if Path(path).suffix not in ENDINGS:
        raise DomainError(f"{path}: the name of a picture must end in {', '.join(ENDINGS)}")


def save(drawn: Figure, path: Path) -> None:
    """Write a picture, completely or not at all, in the format of the file's ending, one of `ENDINGS`."""
    from matplotlib import rc_context  # matplotlib is an extra

    stream = io.BytesIO()
    # Without a date and with fixed identifiers, the same document gives the same file.
    with rc_context({"svg.hashsalt": "pyaccount"}):
        metadata = {"Date": None} if path.suffix == ".svg" else None
        drawn.savefig(stream, format=path.suffix.removeprefix("."), metadata=metadata)
    write_atomically(path, stream.getvalue())


def _new_figure(height: float = 4.0) -> Figure:
    """Return an empty picture, `height` inches high, that is not shown in a window."""
    try:
        from matplotlib.figure import Figure  # matplotlib is an extra
    except ImportError as error:
        raise MissingExtraError.of("matplotlib", "pictures need it") from error
    return Figure(figsize=(WIDE, height), layout="constrained")


def _curves(plot: Plot) -> Figure:
    drawn = _new_figure()
    axes = drawn.subplots()
    labels = []
    for series, (marker, style) in zip(plot.series, cycle(_LOOKS)):
        if not series.points:
            continue
        axes.plot(
            [x for x, _ in series.points],
            # A logarithmic axis leaves out values that are not positive.
            [y if y > 0.0 or not plot.y.log else math.nan for _, y in series.points],
            marker=marker if series.markers else "",
            markersize=4,
            linestyle=(":" if series.style == "reference" else style) if series.line else "",
            color="grey" if series.style == "reference" else None,
            label=cut_label(series.label, LETTERS) or None,
        )
        for point, label in zip(series.points, series.labels, strict=False):
            labels.append(axes.annotate(label, point, textcoords="offset points", xytext=(4, 4), fontsize=8))
    for axis, set_scale, set_limits, set_label in (
        (plot.x, axes.set_xscale, axes.set_xlim, axes.set_xlabel),
        (plot.y, axes.set_yscale, axes.set_ylim, axes.set_ylabel),
    ):
        set_scale("log" if axis.log else "linear")
        if axis.low < axis.high:
            set_limits(axis.low, axis.high)
        set_label(axis.label, parse_math=False)
    axes.set_title(plot.title, fontsize=SMALL, wrap=True, parse_math=False)
    _round_ticks(axes)
    if 0 < sum(1 for series in plot.series if series.label) <= MOST_NAMED:
        # The legend is above the axes, where no line is, or in the corner that the lines leave free.
        legend = (
            drawn.legend(fontsize=SMALL, loc="outside lower center")
            if plot.legend == "above"
            else axes.legend(fontsize=SMALL)
        )
        # The name of a line comes from the user, so it is not parsed as mathematics.
        for text in legend.get_texts():
            text.set_parse_math(False)
    _keep_apart(drawn, labels)
    return drawn


def _bars(bars: Bars) -> Figure:
    """Draw a panel for each quantity; the label of a bar is above it."""
    groups = bars.quantities
    drawn = _new_figure(height=0.7 + sum(1.0 + 0.45 * len(group.bars) for group in groups))
    panels = drawn.subplots(len(groups), 1, squeeze=False, height_ratios=[len(group.bars) + 1 for group in groups])
    for axes, group in zip(panels[:, 0], groups, strict=True):
        places = [-float(place) for place in range(len(group.bars))]
        axes.barh(places, [value for _, value, _ in group.bars], height=0.36)
        for place, (word, value, said) in zip(places, group.bars, strict=True):
            words = f" {cut_label(word, LETTERS)}"
            axes.text(0.0, place + 0.24, words, fontsize=SMALL, va="bottom", parse_math=False)
            if group.whole:
                axes.text(group.axis.high, place + 0.24, said, fontsize=SMALL, va="bottom", ha="right")
            else:
                axes.text(value, place, f" {said}", fontsize=SMALL, va="center")
        axes.set_xlim(0.0, group.axis.high)
        axes.set_ylim(places[-1] - 0.4, 0.75)
        axes.set_yticks([])
        axes.set_xlabel(group.label)
        _round_ticks(axes)
    drawn.suptitle(bars.title, fontsize=SMALL, wrap=True, parse_math=False)
    return drawn


def _heat_map(picture: HeatMap) -> Figure:
    drawn = _new_figure()
    axes = drawn.subplots()
    image = axes.imshow(picture.values, origin="lower", aspect="auto")
    for ticks, set_ticks, set_label, label in (
        (picture.across, axes.set_xticks, axes.set_xlabel, picture.x),
        (picture.up, axes.set_yticks, axes.set_ylabel, picture.y),
    ):
        step = math.ceil(len(ticks) / MOST_PLACES)
        set_ticks(range(0, len(ticks), step), [f"{tick:g}" for tick in ticks[::step]], fontsize=SMALL)
        set_label(label)
    axes.set_title(picture.title, fontsize=SMALL, wrap=True, parse_math=False)
    if max(len(picture.across), len(picture.up)) <= MOST_WRITTEN:
        shades = image.to_rgba(np.array(picture.values))
        for row, line in enumerate(picture.texts):
            for column, words in enumerate(line):
                color = "white" if shades[row, column, :3] @ _LUMA < 0.5 else "black"
                axes.text(column, row, words, ha="center", va="center", fontsize=7, color=color)
    scale = drawn.colorbar(image, label=picture.label).ax
    if scale.get_ylim()[0] < scale.get_ylim()[1]:
        marks = round_ticks(*scale.get_ylim())
        scale.set_yticks([value for value, _ in marks], [label for _, label in marks], fontsize=SMALL)
    return drawn


def _round_ticks(axes: Axes) -> None:
    """Put at least three round values on the current axes; matplotlib may leave a logarithmic one without any."""
    for axis, limits, scale, most in (
        (axes.xaxis, axes.get_xlim(), axes.get_xscale(), MOST_ACROSS),
        (axes.yaxis, axes.get_ylim(), axes.get_yscale(), MOST),
    ):
        if not len(axis.get_majorticklocs()):
            # The axis has labels that are words, or none.
            continue
        low, high = limits
        ticks = round_ticks(low, high, log=scale == "log", most=most)
        axis.set_ticks([value for value, _ in ticks], labels=[label for _, label in ticks])
        axis.set_ticks([], minor=True)
        axis.set_tick_params(labelsize=SMALL)
    # Setting ticks must not change the limits.
    axes.set_xlim(axes.get_xlim())
    axes.set_ylim(axes.get_ylim())


def _keep_apart(drawn: Figure, labels: Iterable[Text]) -> None:
    """Remove labels that overlap others."""
    drawn.draw_without_rendering()
    taken: list[Bbox] = []
    for label in labels:
        extent = label.get_window_extent()
        if any(extent.overlaps(other) for other in taken):
            label.remove()
        else:
            taken.append(extent)

"""Pictures, with matplotlib, which is imported only here and in `sweeping.picture`."""

from __future__ import annotations

import io
import math
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING

from pyaccount.certificate.error_lines import ErrorLines
from pyaccount.certificate.legible import legible
from pyaccount.certificate.ticks import MOST, round_ticks
from pyaccount.errors import MissingExtraError
from pyaccount.files import write_atomically
from pyaccount.rounding import up

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text
    from matplotlib.transforms import Bbox

    from pyaccount.certificate.amplification import AmplificationCertificate
    from pyaccount.certificate.comparison import Comparison
    from pyaccount.certificate.model import CertificateModel

#: The formats of pictures, by the endings of their files.
ENDINGS = (".svg", ".png", ".pdf")
#: The width of a picture in inches, and the size of its small letters in points: on 400 pixels they can still be read.
WIDE, SMALL = 5.2, 9.5
#: The most ticks of an axis that lies, and the most letters of a name that have room.
MOST_ACROSS, LETTERS = 6, 60
#: Markers and dashes of lines, which differ for those who see no colours.
_LOOKS = (("o", "-"), ("s", "--"), ("^", "-."), ("D", ":"), ("v", "-"), ("x", "--"))


def profile_figure(data: CertificateModel) -> Figure:
    """δ at most and δ at least over ε, at the points of a certificate. Raises `MissingExtraError` without matplotlib."""
    figure = new_figure()
    axes = figure.subplots()
    epsilons = [point.epsilon for point in data.profile]
    for label, values in (
        ("δ at most", [point.delta for point in data.profile]),
        ("δ at least", [point.delta_lower for point in data.profile]),
    ):
        # A lower end of 0 says nothing, and has no place on this axis.
        axes.plot(epsilons, [value or math.nan for value in values], marker="o", markersize=3, label=label)
    axes.set_yscale("log")
    axes.set_xlabel("ε")
    axes.set_ylabel("δ")
    axes.legend(fontsize=SMALL)
    read_by_ticks(axes)
    return figure


def new_figure(height: float = 4.0) -> Figure:
    """An empty picture that belongs to no window, `height` inches high. Raises `MissingExtraError` without matplotlib."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise MissingExtraError.of("matplotlib", "pictures need it") from error
    return Figure(figsize=(WIDE, height), layout="constrained")


def aligned_profile(data: AmplificationCertificate, path: Path) -> None:
    """The aligned privacy profile: how much ε falls against how much δ does, as ε of the base mechanism runs.

    Right of 0 and above it sampling helps in both. The format is that of the file's ending, one of `ENDINGS`; the file appears
    whole or not at all. Raises `MissingExtraError` without matplotlib.
    """
    data, figure = legible(data), new_figure()
    axes = figure.subplots()
    falls = [row.epsilon - row.amplified_epsilon for row in data.effects]
    gains = [row.delta - row.amplified_delta for row in data.effects]
    axes.plot(gains, falls, marker="o", markersize=3)
    labels = [
        axes.annotate(f"{row.epsilon:g}", (x, y), textcoords="offset points", xytext=(4, 4), fontsize=8)
        for row, x, y in zip(data.effects, gains, falls, strict=True)
    ]
    axes.axvline(0.0, color="grey", linewidth=0.5)
    axes.axhline(0.0, color="grey", linewidth=0.5)
    axes.set_xlabel("δ − δ′ (right of 0: δ falls)")
    axes.set_ylabel("ε − ε′ (above 0: ε falls)")
    title = f"{data.name}\n{data.subject}\nlabels: ε without sampling"
    axes.set_title(title, fontsize=SMALL, wrap=True, parse_math=False)
    axes.margins(0.12)
    read_by_ticks(axes)
    _keep_apart(figure, labels)
    save(figure, path)


def comparison_figure(data: Comparison) -> Figure:
    """The error against ε at most of the certificates compared, a line for each sampler with its matrix, σ beside the points.

    Where all have one ε, σ and the error as bars. What is drawn is said at `ErrorLines`. Raises `DomainError` where nothing is
    left, `MissingExtraError` without matplotlib.
    """
    drawn = ErrorLines.of(data)
    if drawn.one_epsilon is not None:
        return _bars(drawn, drawn.one_epsilon)
    figure = new_figure()
    axes = figure.subplots()
    labels = []
    for (label, points), (marker, style) in zip(drawn.lines.items(), cycle(_LOOKS)):
        places = [(point.epsilon, point.error) for point in points]
        axes.plot(*zip(*places, strict=True), marker=marker, linestyle=style, label=_short(label))
        for point, place in zip(points, places, strict=True):
            labels.append(axes.annotate(point.noise, place, textcoords="offset points", xytext=(4, 4), fontsize=8))
    every = [point for points in drawn.lines.values() for point in points]
    axes.set_xscale("log")
    axes.set_yscale("log")
    # Room for the words right of the last points, and around points of one value.
    axes.set_xlim(min(point.epsilon for point in every) / 1.4, max(point.epsilon for point in every) * 1.8)
    axes.set_ylim(min(point.error for point in every) / 1.25, max(point.error for point in every) * 1.25)
    axes.set_xlabel("ε at most")
    axes.set_ylabel("root mean square error\n(clip norms)")
    what = f"error of {drawn.error_of}, certified at δ = {drawn.deltas}; labels: certified σ"
    axes.set_title(what, fontsize=SMALL, wrap=True, parse_math=False)
    read_by_ticks(axes)
    # Above the axes, where no line is.
    legend = figure.legend(fontsize=SMALL, loc="outside lower center")
    # What a stranger calls a sampler is no mathematics.
    for text in legend.get_texts():
        text.set_parse_math(False)
    _keep_apart(figure, labels)
    return figure


def _bars(drawn: ErrorLines, epsilon: float) -> Figure:
    """σ and the error of each certificate, each with an axis of its own; the word of a bar stands above it."""
    bars = drawn.bars()
    quantities: list[tuple[str, list[tuple[str, float | None]]]] = [
        ("σ (noise multiplier)", [(bar.label, bar.noise_multiplier) for bar in bars]),
        (f"root mean square error of {drawn.error_of}\n(clip norms)", [(bar.label, bar.error) for bar in bars]),
    ]
    shown = [(label, [(word, value) for word, value in found if value is not None]) for label, found in quantities]
    shown = [(label, found) for label, found in shown if found]
    figure = new_figure(height=0.7 + sum(1.0 + 0.45 * len(found) for _, found in shown))
    panels = figure.subplots(len(shown), 1, squeeze=False, height_ratios=[len(found) + 1 for _, found in shown])
    for axes, (label, found) in zip(panels[:, 0], shown, strict=True):
        places = [-float(place) for place in range(len(found))]
        axes.barh(places, [value for _, value in found], height=0.36)
        for place, (word, value) in zip(places, found, strict=True):
            axes.text(0.0, place + 0.24, f" {_short(word)}", fontsize=SMALL, va="bottom", parse_math=False)
            said = up(value, 3) if label.startswith("σ") else f"{value:.4g}"
            axes.text(value, place, f" {said}", fontsize=SMALL, va="center")
        axes.set_xlim(0.0, max(value for _, value in found) / 0.84)
        axes.set_ylim(places[-1] - 0.4, 0.75)
        axes.set_yticks([])
        axes.set_xlabel(label)
        read_by_ticks(axes)
    figure.suptitle(f"certified at ε = {up(epsilon)} at most, δ = {drawn.deltas}", fontsize=SMALL)
    return figure


def read_by_ticks(*all_axes: Axes) -> None:
    """Put round values on the axes as they are now, three at least; matplotlib's own may leave a logarithmic one without any."""
    for axes in all_axes:
        for axis, limits, scale, most in (
            (axes.xaxis, axes.get_xlim(), axes.get_xscale(), MOST_ACROSS),
            (axes.yaxis, axes.get_ylim(), axes.get_yscale(), MOST),
        ):
            if not len(axis.get_majorticklocs()):
                # Words stand there, or nothing.
                continue
            low, high = limits
            found = round_ticks(low, high, log=scale == "log", most=most)
            axis.set_ticks([value for value, _ in found], labels=[label for _, label in found])
            axis.set_ticks([], minor=True)
            axis.set_tick_params(labelsize=SMALL)
        # The ticks do not move the ends.
        axes.set_xlim(axes.get_xlim())
        axes.set_ylim(axes.get_ylim())


def _keep_apart(figure: Figure, labels: Iterable[Text]) -> None:
    """Take out labels that would lie on others."""
    figure.draw_without_rendering()
    taken: list[Bbox] = []
    for label in labels:
        extent = label.get_window_extent()
        if any(extent.overlaps(other) for other in taken):
            label.remove()
        else:
            taken.append(extent)


def _short(label: str) -> str:
    return label if len(label) <= LETTERS else f"{label[: LETTERS - 1]}…"


def save(figure: Figure, path: Path) -> None:
    """Write a picture in the format of the file's ending, one of `ENDINGS`; the file appears whole or not at all."""
    from matplotlib import rc_context  # noqa: PLC0415 - an extra

    drawn = io.BytesIO()
    # Without a date and with fixed names inside, so that the same document gives the same file.
    with rc_context({"svg.hashsalt": "pyaccount"}):
        metadata = {"Date": None} if path.suffix == ".svg" else None
        figure.savefig(drawn, format=path.suffix.removeprefix("."), metadata=metadata)
    write_atomically(path, drawn.getvalue())

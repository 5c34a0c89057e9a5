"""Pictures, with matplotlib, which is imported only here and in `sweeping.picture`."""

from __future__ import annotations

import io
import math
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING

from pyaccount.certificate.error_lines import ErrorLines
from pyaccount.certificate.legible import legible
from pyaccount.errors import MissingExtraError
from pyaccount.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pyaccount.certificate.amplification import AmplificationCertificate
    from pyaccount.certificate.comparison import Comparison
    from pyaccount.certificate.model import CertificateModel

#: The formats of pictures, by the endings of their files.
ENDINGS = (".svg", ".png", ".pdf")
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
    axes.legend()
    return figure


def new_figure() -> Figure:
    """An empty picture that belongs to no window. Raises `MissingExtraError` without matplotlib."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise MissingExtraError.of("matplotlib", "pictures need it") from error
    return Figure(figsize=(6, 4), layout="constrained")


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
    for row, x, y in zip(data.effects, gains, falls, strict=True):
        axes.annotate(f"{row.epsilon:g}", (x, y), textcoords="offset points", xytext=(4, 4), fontsize=7)
    axes.axvline(0.0, color="grey", linewidth=0.5)
    axes.axhline(0.0, color="grey", linewidth=0.5)
    axes.set_xlabel("δ − δ′ (right of 0: δ falls)")
    axes.set_ylabel("ε − ε′ (above 0: ε falls)")
    axes.set_title(f"{data.name}\n{data.subject}\nlabels: ε without sampling", fontsize=9, wrap=True, parse_math=False)
    save(figure, path)


def comparison_figure(data: Comparison) -> Figure:
    """The error against ε at most of the certificates compared, a line for each sampler with its matrix, σ beside the points.

    What is drawn is said at `ErrorLines`. Raises `DomainError` where nothing is left, `MissingExtraError` without matplotlib.
    """
    drawn = ErrorLines.of(data)
    figure = new_figure()
    axes = figure.subplots()
    for (label, points), (marker, style) in zip(drawn.lines.items(), cycle(_LOOKS)):
        places = [(point.epsilon, point.error) for point in points]
        axes.plot(*zip(*places, strict=True), marker=marker, linestyle=style, label=label)
        for point, place in zip(points, places, strict=True):
            axes.annotate(point.noise, place, textcoords="offset points", xytext=(4, 4), fontsize=7)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("ε at most")
    axes.set_ylabel(f"root mean square error of {drawn.error_of}, in clip norms", wrap=True)
    axes.set_title(f"certified at δ = {drawn.deltas}; labels: certified σ", fontsize=9, wrap=True)
    # What a stranger calls a sampler is no mathematics.
    for text in axes.legend(fontsize=8).get_texts():
        text.set_parse_math(False)
    return figure


def save(figure: Figure, path: Path) -> None:
    """Write a picture in the format of the file's ending, one of `ENDINGS`; the file appears whole or not at all."""
    from matplotlib import rc_context  # noqa: PLC0415 - an extra

    drawn = io.BytesIO()
    # Without a date and with fixed names inside, so that the same document gives the same file.
    with rc_context({"svg.hashsalt": "pyaccount"}):
        metadata = {"Date": None} if path.suffix == ".svg" else None
        figure.savefig(drawn, format=path.suffix.removeprefix("."), metadata=metadata)
    write_atomically(path, drawn.getvalue())

"""Pictures, with matplotlib: the extra `plot`."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import TYPE_CHECKING

from pyaccount.errors import MissingExtraError
from pyaccount.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pyaccount.certificate.amplification import AmplificationCertificate
    from pyaccount.certificate.model import CertificateModel

#: The formats of pictures, by the endings of their files.
ENDINGS = (".svg", ".png", ".pdf")


def profile_figure(data: CertificateModel) -> Figure:
    """δ at most and δ at least over ε, at the points of a certificate. Raises `MissingExtraError` without matplotlib."""
    figure = _figure()
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


def _figure() -> Figure:
    """An empty picture that belongs to no window. Raises `MissingExtraError` without matplotlib."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise MissingExtraError("pictures need matplotlib: install pyaccount[plot]") from error
    return Figure(figsize=(6, 4), layout="constrained")


def aligned_profile(data: AmplificationCertificate, path: Path) -> None:
    """The aligned privacy profile: how much ε falls against how much δ does, as ε of the base mechanism runs.

    Right of 0 and above it sampling helps in both. The format is that of the file's ending, one of `ENDINGS`; the file appears
    whole or not at all. Raises `MissingExtraError` without matplotlib.
    """
    figure = _figure()
    from matplotlib import rc_context  # noqa: PLC0415 - an extra

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
    axes.set_title(f"{data.name}\n{data.subject}\nlabels: ε without sampling", fontsize=9, wrap=True)
    drawn = io.BytesIO()
    # Without a date and with fixed names inside, so that the same document gives the same file.
    with rc_context({"svg.hashsalt": "pyaccount"}):
        metadata = {"Date": None} if path.suffix == ".svg" else None
        figure.savefig(drawn, format=path.suffix.removeprefix("."), metadata=metadata)
    write_atomically(path, drawn.getvalue())

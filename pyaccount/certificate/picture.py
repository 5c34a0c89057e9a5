"""Pictures, with matplotlib: the extra `plot`."""

from __future__ import annotations

import io
import math
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING

from pyaccount.errors import DomainError, MissingExtraError
from pyaccount.files import write_atomically
from pyaccount.rounding import plain, up

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
        raise MissingExtraError("pictures need matplotlib: install pyaccount[plot]") from error
    return Figure(figsize=(6, 4), layout="constrained")


def aligned_profile(data: AmplificationCertificate, path: Path) -> None:
    """The aligned privacy profile: how much ε falls against how much δ does, as ε of the base mechanism runs.

    Right of 0 and above it sampling helps in both. The format is that of the file's ending, one of `ENDINGS`; the file appears
    whole or not at all. Raises `MissingExtraError` without matplotlib.
    """
    figure = new_figure()
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
    save(figure, path)


def comparison_figure(data: Comparison) -> Figure:
    """The error against ε at most of the certificates compared, a line for each sampler with its matrix, σ beside the points.

    The error is the root mean square of the prefix sums' noise or, where all have the same workload, of that. What does not hold,
    has no finite ε or no one error is not in it. Raises `DomainError` where nothing is left, `MissingExtraError` without
    matplotlib.
    """
    rows = [row for row in data.rows if row.prefix_sum_mse is not None and row.holds and 0.0 < row.epsilon < math.inf]
    if not rows:
        raise DomainError("nothing to draw: no certificate that holds has a finite ε and one error")
    figure = new_figure()
    axes = figure.subplots()
    workloads = {row.workload for row in rows}
    workload = workloads.pop() if len(workloads) == 1 else None
    lines: dict[str, list[tuple[float, float, str]]] = {}
    for row in rows:
        error = row.prefix_sum_mse if workload is None else row.workload_mse
        assert error is not None
        noise = "" if row.noise_multiplier is None else f"σ {up(row.noise_multiplier, 3)}"
        lines.setdefault(row.series(data), []).append((row.epsilon, math.sqrt(error), noise))
    for (label, points), (marker, style) in zip(lines.items(), cycle(_LOOKS)):
        points.sort()
        axes.plot(*zip(*(point[:2] for point in points), strict=True), marker=marker, linestyle=style, label=label)
        for epsilon, error, noise in points:
            axes.annotate(noise, (epsilon, error), textcoords="offset points", xytext=(4, 4), fontsize=7)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("ε at most")
    axes.set_ylabel(f"root mean square error of {workload or 'prefix sums'}, in clip norms", wrap=True)
    deltas = sorted({row.delta for row in rows})
    axes.set_title(f"certified at δ = {', '.join(map(plain, deltas))}; labels: certified σ", fontsize=9, wrap=True)
    axes.legend(fontsize=8)
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

"""The page of a document's matrices: what each phase trains with, its error, and how the noise is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyaccount.certificate.report.evidence import searched_facts
from pyaccount.certificate.report.origins import ORIGINS
from pyaccount.pages.page import (
    Block,
    Content,
    Entry,
    Fact,
    Literally,
    Page,
    PageSection,
    every_digit,
    exact,
)

if TYPE_CHECKING:
    from pyaccount.certificate.matrix_description import MatrixDescription, PhaseMatrix

#: The most coefficients that are shown; the JSON has them all.
SHOWN = 8


def matrix_page(data: MatrixDescription) -> Page:
    """Return the page of the matrices."""
    blocks: list[Block] = [_phase(phase, place) for place, phase in enumerate(data.phases, start=1)]
    sections = [PageSection("matrices", "Matrices to train with", tuple(blocks))]
    if data.searched is not None:
        sections.append(PageSection("search", "How the matrix was found", (searched_facts(data.searched),)))
    return Page("Matrix", data.name, tuple(sections), origins=ORIGINS)


def _phase(phase: PhaseMatrix, place: int) -> Entry:
    matrix = phase.matrix
    norm = every_digit(matrix.column_norm, "clip norms per clip norm", "matrix")
    rows = [Fact("kind", (matrix.kind, ", column norm ", norm))]
    for name, values in (
        ("coefficients", matrix.coefficients),
        ("inverse_coefficients", matrix.inverse_coefficients),
        ("scales", None if matrix.buffers is None else matrix.buffers.scales),
        ("decays", None if matrix.buffers is None else matrix.buffers.decays),
    ):
        if values is not None:
            rows.append(Fact(name, _coefficients(values)))
    if matrix.normalization is not None:
        rows.append(Fact("normalization", (Literally(repr(matrix.normalization)),)))
    rows.append(_errors("prefix sums", phase.mean_square_error, phase.max_square_error**0.5))
    if phase.workload is not None:
        rows.append(_errors("workload", phase.workload.mse, phase.workload.max_error, f"{phase.workload.what}; "))
    rows.append(Fact("noise", (phase.generation,)))
    title = phase.name or ("Training" if place == 1 else f"Phase {place}")
    return Entry(title, f"{phase.iterations} iterations", tuple(rows))


def _errors(label: str, mse: float, largest: float, of: str = "") -> Fact:
    mean, most = exact(mse, "squared clip norms", "matrix"), exact(largest, "clip norms", "matrix")
    content = ("noise MSE ", mean, "·σ², largest error ", most, "·σ")
    return Fact(label, content, (f"{of}in units of the clip norm, per coordinate",))


def _coefficients(values: list[float]) -> Content:
    more = len(values) - SHOWN
    shown = Literally(", ".join(map(repr, values[:SHOWN])))
    return (shown,) if more <= 0 else (shown, f" and {more} more, all of which its JSON has")

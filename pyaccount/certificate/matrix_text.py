"""The matrices of a document for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from pyaccount.certificate.text_evidence import search_text
from pyaccount.rounding import plain

if TYPE_CHECKING:
    from rich.console import Console

    from pyaccount.certificate.matrix_description import MatrixDescription, PhaseMatrix

#: The most coefficients that are printed; the JSON has them all.
SHOWN = 8


def print_matrices(console: Console, found: MatrixDescription) -> None:
    """Print what each phase trains with."""
    console.print(Text.assemble(("Matrix", "bold"), "  ", (found.name, "bold cyan")))
    for phase in found.phases:
        grid = Table.grid(padding=(0, 2))
        grid.add_column(style="bold")
        grid.add_column(overflow="fold")
        for label, text in _lines(phase):
            grid.add_row(label, Text(text))
        console.print(grid)
    if found.searched is not None:
        console.print(Text(search_text(found.searched)))


def _lines(phase: PhaseMatrix) -> list[tuple[str, str]]:
    matrix = phase.matrix
    listed: list[tuple[str, list[float]]] = [
        (name, values)
        for name, values in (
            ("coefficients", matrix.coefficients),
            ("inverse_coefficients", matrix.inverse_coefficients),
            ("scales", None if matrix.buffers is None else matrix.buffers.scales),
            ("decays", None if matrix.buffers is None else matrix.buffers.decays),
        )
        if values is not None
    ]
    return [
        *([] if phase.name is None else [("phase", phase.name)]),
        ("kind", f"{matrix.kind}, {phase.iterations} iterations, column norm {plain(matrix.column_norm)}"),
        *((name, _some(values)) for name, values in listed),
        *([] if matrix.normalization is None else [("normalization", repr(matrix.normalization))]),
        (
            "prefix sums",
            f"noise MSE {phase.mean_square_error:.6g}·σ², largest variance {phase.max_square_error:.6g}·σ², in units of the clip "
            "norm squared",
        ),
        *_workload(phase),
        ("noise", phase.generation),
    ]


def _workload(phase: PhaseMatrix) -> list[tuple[str, str]]:
    """The errors under the phase's workload, at σ = 1."""
    found = phase.workload
    if found is None:
        return []
    errors = f"noise MSE {found.mse:.6g}·σ², largest error {found.max_error:.6g}·σ, in units of the clip norm"
    return [("workload", f"{found.what}: {errors}")]


def _some(values: list[float]) -> str:
    more = len(values) - SHOWN
    shown = ", ".join(repr(value) for value in values[:SHOWN])
    return shown if more <= 0 else f"{shown} and {more} more, all of which its JSON has"

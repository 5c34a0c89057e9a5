"""The matrices of a document before it is certified: what C is, its error, and how training makes C⁻¹Z."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from pyaccount.certificate.matrix import StrategyMatrix
from pyaccount.certificate.phases import NO_MATRIX, matrix_record, workload_utility
from pyaccount.certificate.provenance import versions
from pyaccount.certificate.report.evidence import searched_facts
from pyaccount.certificate.report.parts import ORIGINS
from pyaccount.document.tree import Node, TrainingNode
from pyaccount.errors import DocumentError, Problem
from pyaccount.execute.certified import considered, searched
from pyaccount.pages.page import Content, Entry, Fact, Literally, Page, PageSection, every_digit, exact
from pyaccount.pages.readable import Readable
from pyaccount.plan.common import number
from pyaccount.plan.compiled import CompiledDocument
from pyaccount.plan.matrices import matrix_plan, strategy
from pyaccount.plan.matrices.toeplitz import INDEPENDENT
from pyaccount.plan.protection import Case, Protection, RunCase
from pyaccount.records.certificate import MatrixRecord, WorkloadUtility
from pyaccount.records.evidence import ConsideredRecord, SearchedRecord
from pyaccount.records.fields import Finite, OutputRecord, Record

#: The most coefficients that the page shows; the JSON has all of them.
SHOWN = 8


class PhaseMatrix(Record):
    """The strategy matrix C of one phase."""

    name: str | None = Field(description="The name of the phase, if it has one.")
    iterations: int = Field(description="The number of rows and columns of C.")
    matrix: MatrixRecord = Field(description="C itself, as in a certificate.")
    mean_square_error: Finite = Field(
        description="(1/n)‖AC⁻¹‖_F², where A is the lower triangle of ones: the mean over the rounds of the variance "
        "of the noise of a prefix sum, at σ = 1 and clip norm 1. At another σ, multiply by σ². Exact up to "
        "rounding."
    )
    max_square_error: Finite = Field(
        description="The largest squared norm of a row of AC⁻¹, that is, the largest of these variances."
    )
    workload: WorkloadUtility | None = Field(
        default=None,
        description="The errors under the workload of the phase, at σ = 1 and clip norm 1; null if it has none.",
    )
    generation: str = Field(
        description="How to compute the rows z_t of C⁻¹w, which training adds to the clipped sums of rounds t = 0, "
        "1, …, from rows w_t of independent noise with a standard deviation of σ clip norms. The names are those "
        "of fields of `matrix`."
    )


class MatrixDescription(OutputRecord, Readable):
    """What to train with, before anything is certified. None of this is a guarantee."""

    pyaccount: Literal[1] = Field(description="The version of this format.")
    kind: Literal["matrix"] = Field(description="The kind of this JSON: a description of matrices.")
    name: str = Field(description="The name of the document.")
    workload: Literal["prefix-sums"] = Field(
        description="What `mean_square_error` and `max_square_error` are errors of: the sums of the noise of the "
        "first rounds."
    )
    phases: list[PhaseMatrix] = Field(description="One description for each phase.")
    considered: list[ConsideredRecord] = Field(
        description="The candidates of every choice; empty if there was no choice."
    )
    searched: SearchedRecord | None = Field(description="How the matrix was found; null if no matrix was searched for.")
    document: dict[str, Any] = Field(description="The document as data.")
    document_sha256: str = Field(description="The hash of the document.")
    versions: dict[str, str] = Field(description="The versions that made it: of pyaccount, of its core, of Python.")

    @property
    def matrices(self) -> tuple[StrategyMatrix, ...]:
        """The matrices as arrays, one for each phase."""
        return tuple(StrategyMatrix(phase.matrix, phase.iterations) for phase in self.phases)

    def page(self) -> Page:
        """Return the description as a page."""
        entries = tuple(_entry(phase, place) for place, phase in enumerate(self.phases, start=1))
        sections = [PageSection("matrices", "Matrices to train with", entries)]
        if self.searched is not None:
            sections.append(PageSection("search", "How the matrix was found", (searched_facts(self.searched),)))
        return Page("Matrix", self.name, tuple(sections), origins=ORIGINS)


def matrix_description(plan: CompiledDocument) -> MatrixDescription:
    """Return the matrices of a plan whose choices are made and whose matrix is found.

    Raises `DocumentError` if the number of rounds is the blank, and for the same reasons as `strategy`.
    """
    document, asked = plan.document, plan.asked or plan.document
    unknown = [_unknown(case) for case in Protection.of(document).cases() if case.node.rounds == "solve"]
    if unknown:
        raise DocumentError(unknown)
    return MatrixDescription(
        pyaccount=1,
        kind="matrix",
        name=asked.name,
        workload="prefix-sums",
        phases=[
            _phase(one, Protection.of(document), phase)
            for one, phase in zip(document.phases, asked.phases, strict=True)
        ],
        considered=considered(plan),
        searched=searched(plan),
        document=asked.to_mapping(),
        document_sha256=asked.sha256,
        versions=versions(),
    )


def _unknown(case: Case) -> Problem:
    message = "the matrix has a row for each iteration, and how many there are is what is solved for"
    allowed = "a number; or certify the document, whose certificate states the matrix"
    return case.asked.problem("contradiction", case.node.at("training", "iterations"), message, allowed=allowed)


def _phase(node: Node, protection: Protection, asked: Node) -> PhaseMatrix:
    if not isinstance(node, TrainingNode) or not isinstance(asked, TrainingNode):
        return PhaseMatrix(
            name=node.name,
            iterations=1,
            matrix=NO_MATRIX,
            mean_square_error=1.0,
            max_square_error=1.0,
            workload=None,
            generation=INDEPENDENT,
        )
    case = RunCase(protection, node)
    built = strategy(case)
    return PhaseMatrix(
        name=case.node.name,
        iterations=number(case.node.training.iterations),
        matrix=matrix_record(case, asked),
        mean_square_error=built.error.mean_square,
        max_square_error=built.error.max_square,
        workload=workload_utility(case, 1.0),
        generation=matrix_plan(case).generation(built),
    )


def _entry(phase: PhaseMatrix, place: int) -> Entry:
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

"""Several certificates side by side: what is of interest when choosing a sampler, and why a document has no certificate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from pyaccount.certificate.compared import FailedRecord
from pyaccount.certificate.model import NonNegative, Probability, Record
from pyaccount.pages.forms import printed
from pyaccount.pages.readable import Readable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.figure import Figure
    from pandas import DataFrame

    from pyaccount.certificate.model import CertificateModel, PhaseRecord
    from pyaccount.pages.page import Page


class ComparedRecord(Record):
    """The certificate of one document, in a row."""

    name: str
    holds: bool = Field(description="Whether the claim of the document is certified.")
    kind: Literal["deterministic", "verified", "confidence"] = Field(description="The kind of guarantee.")
    adjacency: str
    group_size: int
    unit: Literal["record", "user"] = Field(description="What is protected: a record or a user.")
    sampler: str = Field(description="The sampler of each phase.")
    epsilon: NonNegative = Field(description="Upper bound on ε, in nats.")
    epsilon_lower: NonNegative = Field(description="Lower bound: no smaller ε holds.")
    delta: Probability = Field(description="Upper bound on δ.")
    noise_multiplier: float | None = Field(description="σ, if all phases have the same Gaussian noise; otherwise null.")
    unamplified_epsilon: NonNegative | None = Field(
        description="Upper bound on ε at this δ, if no participations were secret (each certificate states what "
        "exactly that means). Null if it is infinite, or not known at such a small δ."
    )
    expected_batch_size: float | None = Field(
        description="The expected number of records (or draws) in a batch, if there is one phase."
    )
    distinct_records: float | None = Field(
        description="The expected number of distinct records in a batch, if there is one phase."
    )
    prefix_sum_mse: float | None = Field(
        description="The mean variance of the noise of prefix sums, if there is one phase."
    )
    workload: str | None = Field(
        default=None, description="The workload of the document in words; null if it has none."
    )
    workload_mse: float | None = Field(default=None, description="The mean variance of the noise under this workload.")
    seconds: float = Field(description="The time that certifying took here, in seconds; 0 for a finished certificate.")
    document_sha256: str
    finished: bool = Field(
        default=False,
        description="Whether it was a finished certificate, whose numbers are shown unchanged and were not recomputed.",
    )
    matrix: str | None = Field(
        default=None,
        description="The kind of matrix, if there is one phase, and whether it was optimised for its sampling.",
    )

    def series(self, among: Comparison) -> str:
        """What it is a point of in a picture of several: its sampler and its matrix, and who is protected where they differ."""
        words = [self.sampler, *([] if self.matrix in (None, "identity") else [self.matrix])]
        return ", ".join([*words, *([] if alike(among) else [protects(self)])])


class Comparison(Record, Readable):
    """Several certificates side by side."""

    pyaccount: Literal[1] = Field(description="The version of this format.")
    kind: Literal["comparison"]
    rows: list[ComparedRecord] = Field(
        description="One row for each certificate, in the order in which they were given."
    )
    failures: list[FailedRecord] = Field(
        default_factory=list, description="What has no row, and why. Each entry states its place among the rows."
    )

    def entries(self) -> Iterator[ComparedRecord | FailedRecord]:
        """Rows and failures in the order of what was compared."""
        rows, failures = iter(self.rows), {failed.place: failed for failed in self.failures}
        for place in range(len(self.rows) + len(self.failures)):
            yield failures[place] if place in failures else next(rows)

    def to_json(self) -> str:
        """The comparison as JSON text."""
        return self.model_dump_json(indent=2) + "\n"

    def to_dict(self) -> dict[str, list[Any]]:
        """The certificates as columns, by the names of `rows`; `failures` has what has none."""
        return {name: [getattr(row, name) for row in self.rows] for name in ComparedRecord.model_fields}

    def to_pandas(self) -> DataFrame:
        """The columns of `to_dict` as a data frame of pandas. Raises `MissingExtraError`."""
        from pyaccount.tables import data_frame

        return data_frame(self.to_dict())

    def page(self) -> Page:
        """The comparison as a page, with a picture of the error against ε where there is one."""
        from pyaccount.certificate.report.comparisons import comparison_page

        return comparison_page(self)

    def plot(self) -> Figure:
        """The error against ε, with the certified σ, as a figure of matplotlib; bars of both where all have one ε.

        Raises `DomainError` where nothing can be drawn, `MissingExtraError`.
        """
        from pyaccount.certificate.error_lines import ErrorLines
        from pyaccount.certificate.report.comparisons import errors_plot
        from pyaccount.pages.figure import figure

        return figure(errors_plot(ErrorLines.of(self)))


def protects(row: ComparedRecord) -> str:
    """Who is protected, and against which change."""
    return f"{row.adjacency}, {row.group_size} {row.unit}{'s' if row.group_size > 1 else ''}"


def alike(data: Comparison) -> bool:
    """Whether all rows protect the same."""
    return len({protects(row) for row in data.rows}) <= 1


def remarks(data: Comparison) -> list[str]:
    """What keeps the numbers of different rows from being compared."""
    found = []
    if not alike(data):
        found.append("The documents protect against different changes: their ε do not compare.")
    if len({row.workload for row in data.rows if row.workload}) > 1:
        found.append("The workloads differ: their errors do not compare.")
    if len({row.delta for row in data.rows}) > 1 and len({row.epsilon for row in data.rows}) > 1:
        found.append(
            "The δ differ: the same mechanism has a smaller ε at a larger δ, so that neither compares by itself."
        )
    return found


def row_of(data: CertificateModel, seconds: float, *, finished: bool = False) -> ComparedRecord:
    """A certificate as a row; `seconds` is what it took."""
    workload = None if data.utility is None else data.utility.workload
    only = data.phases[0] if len(data.phases) == 1 else None
    # Told at a larger δ, where this one is too small to resolve, it would be no bound.
    unamplified = data.unamplified.epsilon if data.unamplified.delta <= data.guarantee.delta else None
    return ComparedRecord(
        name=data.name,
        holds=data.holds,
        kind=data.guarantee.kind,
        adjacency=data.privacy.adjacency,
        group_size=data.privacy.group_size,
        unit=data.privacy.unit,
        sampler=" + ".join(dict.fromkeys(phase.sampler for phase in data.phases)),
        epsilon=data.guarantee.epsilon,
        epsilon_lower=data.guarantee.epsilon_lower,
        delta=data.guarantee.delta,
        noise_multiplier=data.noise_multiplier if all(phase.noise == "gaussian" for phase in data.phases) else None,
        unamplified_epsilon=unamplified,
        expected_batch_size=None if only is None else only.expected_batch_size,
        distinct_records=None if only is None else only.distinct_records,
        prefix_sum_mse=None if data.utility is None else data.utility.prefix_sum_mse,
        workload=None if workload is None else workload.what,
        workload_mse=None if workload is None else workload.mse,
        seconds=seconds,
        document_sha256=data.document_sha256,
        finished=finished,
        matrix=None if only is None else _matrix(only, data),
    )


def _matrix(phase: PhaseRecord, data: CertificateModel) -> str:
    return f"{phase.matrix.kind} for its sampling" if data.evidence.searched is not None else phase.matrix.kind


def written(data: Comparison, form: str) -> str:
    """The comparison as text, markdown, json or html."""
    return data.to_json() if form == "json" else printed(data.page(), form)

"""Certificates side by side: what a person wants to see when choosing a sampler, and why a document has none."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field
from rich.console import Console
from rich.text import Text

from pyaccount.certificate.compared import WORDS, FailedRecord
from pyaccount.certificate.layout import NARROW, Figures
from pyaccount.certificate.legible import legible
from pyaccount.certificate.model import NonNegative, Probability, Record
from pyaccount.rounding import down, plain, up

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matplotlib.figure import Figure
    from pandas import DataFrame

    from pyaccount.certificate.model import CertificateModel, PhaseRecord


class ComparedRecord(Record):
    """One document's certificate in a row."""

    name: str
    holds: bool = Field(description="Whether the document's claim is certified.")
    kind: Literal["deterministic", "verified", "confidence"] = Field(description="The kind of guarantee.")
    adjacency: str
    group_size: int
    unit: Literal["record", "user"] = Field(description="Who is protected.")
    sampler: str = Field(description="The sampler of each phase.")
    epsilon: NonNegative = Field(description="ε at most.")
    epsilon_lower: NonNegative = Field(description="No ε below this holds.")
    delta: Probability = Field(description="δ at most.")
    noise_multiplier: float | None = Field(description="σ, where all phases have the same Gaussian noise.")
    unamplified_epsilon: NonNegative | None = Field(
        description="ε at most if no participations were secret, at this δ (each certificate says what that is); null: infinite, "
        "or not known at so small a δ."
    )
    expected_batch_size: float | None = Field(description="Expected records (or draws) in a batch, with one phase.")
    distinct_records: float | None = Field(description="Expected distinct records in a batch, with one phase.")
    prefix_sum_mse: float | None = Field(description="Mean variance of the noise of prefix sums, with one phase.")
    workload: str | None = Field(default=None, description="The document's workload in words; null without one.")
    workload_mse: float | None = Field(default=None, description="Mean variance of the noise under that workload.")
    seconds: float = Field(description="How long certifying took here; 0 for a finished certificate.")
    document_sha256: str
    finished: bool = Field(
        default=False,
        description="Whether it was a finished certificate, whose figures stand here unchanged and not recomputed.",
    )
    matrix: str | None = Field(
        default=None,
        description="The kind of matrix, with one phase, and that it was optimised for the sampling where it was.",
    )

    def series(self, among: Comparison) -> str:
        """What it is a point of in a picture of several: its sampler and its matrix, and who is protected where they differ."""
        words = [self.sampler, *([] if self.matrix in (None, "identity") else [self.matrix])]
        return ", ".join([*words, *([] if alike(among) else [protects(self)])])


class Comparison(Record):
    """Certificates side by side."""

    pyaccount: Literal[1] = Field(description="Format version.")
    kind: Literal["comparison"]
    rows: list[ComparedRecord] = Field(description="Of each certificate, in the order of what was compared.")
    failures: list[FailedRecord] = Field(
        default_factory=list, description="What has no row, and why; each says its place among the rows."
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
        from pyaccount.certificate.notebook import data_frame  # noqa: PLC0415

        return data_frame(self.to_dict())

    def plot(self) -> Figure:
        """The error against ε, with the certified σ, as a figure of matplotlib; bars of both where all have one ε.

        Raises `DomainError` where nothing can be drawn, `MissingExtraError`.
        """
        from pyaccount.certificate.picture import comparison_figure  # noqa: PLC0415

        return comparison_figure(legible(self))

    def _repr_html_(self) -> str:
        from pyaccount.certificate.notebook import paragraph, table  # noqa: PLC0415

        columns = _columns(self)
        titles = [title for title, _ in columns]
        rows = [
            _failed(one, titles, one.name, f"{WORDS[one.why]}: {one.message}")
            if isinstance(one, FailedRecord)
            else [show(one) for _, show in columns]
            for one in legible(self).entries()
        ]
        return table(titles, rows) + "".join(paragraph(remark) for remark in remarks(self))

    def to_html(self) -> str:
        """The comparison as one self-contained HTML page, with a picture of the error against ε where there is one."""
        from pyaccount.certificate.report.comparisons import comparison_page  # noqa: PLC0415 - Jinja loads when a page is wanted
        from pyaccount.certificate.report.html import html  # noqa: PLC0415

        return html(comparison_page(legible(self)))

    def to_markdown(self) -> str:
        """A Markdown table, with remarks on what does not compare. Upper bounds are rounded up, lower bounds down."""
        columns = _columns(self)
        titles = [title for title, _ in columns]
        lines = [titles, ["---" if title in _WORDS else "---:" for title in titles]]
        for row in legible(self).entries():
            if isinstance(row, FailedRecord):
                why = _markdown(f"{WORDS[row.why]}: {row.message}")
                lines.append(_failed(row, titles, _markdown(row.name), why))
                continue
            # What a stranger calls it may be markup, or the end of a cell.
            lines.append([_markdown(show(row)) if title in _WORDS else show(row) for title, show in columns])
        table = "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
        return table + "".join(f"\n**{remark}**\n" for remark in remarks(self))


#: A heading, and what stands below it.
_Column = tuple[str, Callable[[ComparedRecord], str]]

#: The columns of the table, for people.
_COLUMNS: tuple[_Column, ...] = (
    ("name", lambda row: row.name if row.holds else f"{row.name} (does not hold)"),
    ("sampler", lambda row: row.sampler),
    # More noise is no worse: what is certified with σ is with σ rounded up.
    ("σ", lambda row: "" if row.noise_multiplier is None else up(row.noise_multiplier)),
    ("ε at most", lambda row: up(row.epsilon)),
    ("ε at least", lambda row: down(row.epsilon_lower)),
    # With every digit: the lower end of ε holds at this δ, and not at one that is rounded up.
    ("δ at most", lambda row: plain(row.delta)),
    ("ε unamplified", lambda row: "∞" if row.unamplified_epsilon is None else up(row.unamplified_epsilon, 4)),
    ("distinct a batch", lambda row: _number(row.distinct_records)),
    ("prefix-sum MSE", lambda row: _number(row.prefix_sum_mse)),
    ("workload", lambda row: row.workload or ""),
    ("its MSE", lambda row: _number(row.workload_mse)),
    ("guarantee", lambda row: row.kind),
    ("time", lambda row: "finished" if row.finished else f"{row.seconds:.2g} s"),
)


#: Titles of columns that hold words.
_WORDS = ("name", "protects", "sampler", "workload", "guarantee")


def _failed(failed: FailedRecord, titles: Sequence[str], name: str, why: str) -> list[str]:
    """The cells of what has no certificate: why that is stands where others have their guarantee."""
    cells = {"name": name, "guarantee": why, "time": f"{failed.seconds:.2g} s"}
    return [cells.get(title, "") for title in titles]


def _markdown(text: str) -> str:
    """Text that is read as itself in a cell of a table: messages quote what documents say."""
    from pyaccount.certificate.report.markdown import text as escaped  # noqa: PLC0415 - few comparisons need it

    return escaped(text)


def protects(row: ComparedRecord) -> str:
    """Who is protected, and against which change."""
    return f"{row.adjacency}, {row.group_size} {row.unit}{'s' if row.group_size > 1 else ''}"


def _columns(data: Comparison) -> tuple[_Column, ...]:
    """The columns; what is protected is one of them where that is not the same everywhere, a workload where there is one."""
    unused = () if any(row.workload for row in data.rows) else ("workload", "its MSE")
    columns = tuple(column for column in _COLUMNS if column[0] not in unused)
    return columns if alike(data) else (columns[0], ("protects", protects), *columns[1:])


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


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


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


def _turned(titles: Sequence[str], rows: Sequence[Sequence[str]], styles: Sequence[str]) -> Figures:
    """The comparison with a column for each of what was compared, where its rows are too long to be read."""
    names = [row[0] for row in rows]
    table = Figures("", ("", *names), words=("", *names), padding=NARROW)
    for place, title in enumerate(titles[1:], start=1):
        table.add(title, *(row[place] for row in rows), styles=("", *styles))
    return table


def written(data: Comparison, form: str) -> str:
    """The comparison as text, markdown, json or html."""
    if form == "json":
        return data.to_json()
    if form == "html":
        return data.to_html()
    if form == "markdown":
        return data.to_markdown()
    stream = io.StringIO()
    print_comparison(Console(file=stream, width=180), data)
    return stream.getvalue()


def print_comparison(console: Console, data: Comparison) -> None:
    """The comparison for a terminal."""
    data = legible(data)
    columns = _columns(data)
    title = protects(data.rows[0]) if data.rows and alike(data) else ""
    titles = [heading for heading, _ in columns]
    table = Figures("", titles, words=_WORDS, padding=NARROW)
    rows, styles = [], []
    for row in data.entries():
        if isinstance(row, FailedRecord):
            cells, style = _failed(row, titles, row.name, WORDS[row.why]), "red"
        else:
            cells, style = [show(row) for _, show in columns], ""
        rows.append(cells)
        styles.append(style)
        table.add(*cells, styles=[style] * len(cells))
    if title:
        console.print(Text(title, style="italic"))
    console.print(table if table.fits(console.width) else _turned(titles, rows, styles))
    for one in data.failures:
        console.print(Text(f"{one.name}: {WORDS[one.why].removeprefix('none: ')}: {one.message}", style="red"))
    for remark in remarks(data):
        console.print(Text(remark, style="yellow"))

"""The page of a comparison: certificates side by side, and their errors against ε."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle

from pyaccount.certificate.compared import WORDS, ComparedRecord, FailedRecord, alike, protects, remarks
from pyaccount.certificate.report.parts import ORIGINS, FieldRow, table
from pyaccount.certificate.words import count_words
from pyaccount.errors import DomainError
from pyaccount.pages.page import Block, Fact, FactList, Figure, Page, PageSection, PageTable, Paragraph
from pyaccount.pages.plot import MANY, BarGroup, Bars, Plot, Series, axis_around
from pyaccount.rounding import shortest, up

#: Values of ε that differ by less count as one target, because blanks are solved to a tolerance.
AGREEMENT = 0.02


@dataclass(frozen=True, slots=True)
class Point:
    """One certificate: upper bound on ε, root mean square error, and the certified σ if there is a single one."""

    #: The name of the mechanism in the document.
    name: str
    epsilon: float
    error: float
    noise_multiplier: float | None

    @property
    def noise(self) -> str:
        """The certified σ in words, rounded up; empty if there is no single σ."""
        return "" if self.noise_multiplier is None else f"σ {up(self.noise_multiplier, 3)}"


@dataclass(frozen=True, slots=True)
class ErrorLines:
    """The lines of the picture by their labels (the sampler with its matrix), each with its points by rising ε."""

    lines: Mapping[str, tuple[Point, ...]]
    #: The points in the order of the comparison, each with the label of its line.
    in_order: tuple[tuple[str, Point], ...]
    #: The quantity whose error is shown: prefix sums, or a workload in words.
    error_of: str
    #: The values of δ at which ε is certified, in words.
    deltas: str

    @property
    def one_epsilon(self) -> float | None:
        """The largest ε if all agree to `AGREEMENT`, so that bars replace the curve over ε; otherwise None."""
        epsilons = [point.epsilon for points in self.lines.values() for point in points]
        return max(epsilons) if max(epsilons) <= (1.0 + AGREEMENT) * min(epsilons) else None

    @classmethod
    def of(cls, compared: Sequence[ComparedRecord]) -> ErrorLines:
        """Collect the lines. The error is that of prefix sums, or that of the workload if all have the same one.

        Rows that do not hold, or that have no finite ε or no single error, are left out. Raises `DomainError` if no row
        remains.
        """
        rows = [
            row
            for row in compared
            # An ε or an error of 0 cannot be shown on a logarithmic axis.
            if (row.prefix_sum_mse or 0.0) > 0.0 and row.holds and 0.0 < row.epsilon < math.inf
        ]
        workloads = {row.workload for row in rows}
        workload = workloads.pop() if len(workloads) == 1 else None
        same = alike(compared)
        lines: dict[str, list[Point]] = {}
        in_order = []
        for row in rows:
            error = row.prefix_sum_mse if workload is None else row.workload_mse
            if not error:
                continue
            point = Point(row.name, row.epsilon, math.sqrt(error), row.noise_multiplier)
            lines.setdefault(row.series(alike=same), []).append(point)
            in_order.append((row.series(alike=same), point))
        if not lines:
            raise DomainError("nothing to draw: no certificate that holds has a finite ε and a single error")
        return cls(
            {label: tuple(sorted(points, key=lambda one: (one.epsilon, one.error))) for label, points in lines.items()},
            tuple(in_order),
            workload or "prefix sums",
            ", ".join(shortest(delta) for delta in sorted({row.delta for row in rows})),
        )


def comparison_page(rows: Sequence[ComparedRecord], failed: Sequence[FailedRecord]) -> Page:
    """Return the page of certificates side by side, and of the sources without a certificate."""
    holding = sum(row.holds for row in rows)
    statement = f"Of {count_words(len(rows), 'certificate')}, {holding} hold{'s' if holding == 1 else ''}."
    if rows and alike(rows):
        statement += f" All are about {protects(rows[0])}."
    sections = [PageSection("certificates", "The certificates", tuple(_tables(rows)))] if rows else []
    if failed:
        failures = tuple(Fact(one.name, (f"{WORDS[one.why]}: {one.message}",)) for one in failed)
        sections.append(PageSection("failures", "What has no certificate", (FactList(failures),)))
    opening = (*(Paragraph((remark,)) for remark in remarks(rows)), _picture(rows))
    sections.append(PageSection("errors", "Noise and error", opening))
    return Page(
        title="Comparison",
        name=f"{count_words(len(rows), 'certificate')} side by side",
        statement=statement,
        sections=tuple(sections),
        origins=ORIGINS,
        stated="The figures are those of the certificates, each of which says what must be true for them; finished certificates "
        "are taken as stated and were not recomputed here.",
        made_from="certificates, which are what counts; this page is a view of them",
    )


def _picture(rows: Sequence[ComparedRecord]) -> Block:
    """Return the picture of the errors, or a paragraph with the reason why there is none."""
    try:
        drawn = ErrorLines.of(rows)
    except DomainError as error:
        return Paragraph((f"{error}.".capitalize(),))
    left_out = "Certificates that do not hold, or have no single error, are left out."
    if drawn.one_epsilon is None:
        caption = (
            f"The error of {drawn.error_of}, certified at δ = {drawn.deltas}. The label of a point is its certified σ, where it "
            f"has room. {left_out}"
        )
    else:
        caption = (
            f"The certified σ, and the error of {drawn.error_of}, at ε = {up(drawn.one_epsilon)} at most and δ = {drawn.deltas}. "
            f"{left_out}"
        )
    return Figure("errors-picture", errors_plot(drawn), (caption,), "compared")


def errors_plot(drawn: ErrorLines) -> Plot | Bars:
    """Return the plot of errors over upper bounds on ε, a line for each sampler and matrix; bars if ε is the same."""
    if drawn.one_epsilon is not None:
        return _bars(drawn, drawn.one_epsilon)
    points = [point for line in drawn.lines.values() for point in line]
    return Plot(
        title=f"Root mean square error of {drawn.error_of} over ε, both logarithmic, at δ = {drawn.deltas}; labels: certified σ",
        description="The less of both, the better. The tables of the certificates have the values.",
        x=axis_around("ε at most (nats)", [point.epsilon for point in points], room=1.4),
        y=axis_around("root mean square error (clip norms)", [point.error for point in points]),
        series=tuple(
            Series(
                label,
                tuple((point.epsilon, point.error) for point in line),
                style,
                markers=True,
                labels=tuple(point.noise for point in line),
            )
            for (label, line), style in zip(drawn.lines.items(), cycle(MANY))
        ),
        legend="above",
    )


def _bars(drawn: ErrorLines, epsilon: float) -> Bars:
    """Return bars of σ and the error of each certificate, for certificates with the same ε.

    They are labelled by sampler and matrix, and by name if several have the same.
    """
    bars = [
        (label if len(drawn.lines[label]) == 1 else f"{label}: {point.name}", point) for label, point in drawn.in_order
    ]
    sigmas = [(label, point.noise_multiplier) for label, point in bars if point.noise_multiplier is not None]
    noises = tuple((label, sigma, up(sigma, 3)) for label, sigma in sigmas)
    errors = tuple((label, point.error, f"{point.error:.4g}") for label, point in bars)
    quantities = [BarGroup("σ (noise multiplier)", noises)] if noises else []
    quantities.append(BarGroup(f"root mean square error of {drawn.error_of} (clip norms)", errors))
    return Bars(
        title=f"Certified at ε = {up(epsilon)} at most, δ = {drawn.deltas}",
        description="The noise multiplier and the root mean square error of each certificate; shorter bars are better. "
        "The tables of the certificates have the values.",
        quantities=tuple(quantities),
    )


#: The columns of the tables: what is certified, with which error, and by which evidence.
CERTIFIED = (
    FieldRow("guarantee", "kind"),
    FieldRow("ε at most", "epsilon", origin="compared"),
    FieldRow("ε at least", "epsilon_lower", origin="compared"),
    FieldRow("δ at most", "delta", origin="compared", digits=0),
    FieldRow("unamplified ε at most", "unamplified_epsilon", origin="compared", digits=4, absent="∞ or not known"),
)
NOISE = (
    FieldRow("sampler", "sampler"),
    FieldRow("matrix", "matrix", absent="several phases"),
    # More noise is never worse, so what is certified with σ also holds with σ rounded up.
    FieldRow("σ", "noise_multiplier", origin="compared", unit="noise multiplier", enough=True, absent="not one"),
    FieldRow("distinct records a batch", "distinct_records", origin="compared", unit="records", absent="not stated"),
    FieldRow("prefix-sum MSE", "prefix_sum_mse", origin="compared", absent="not stated"),
)
WORKLOAD = (
    FieldRow("workload", "workload", absent="none"),
    FieldRow("its MSE", "workload_mse", origin="compared", absent="not stated"),
)
DOCUMENTS = (
    FieldRow("SHA-256", "document_sha256", literal=True),
    FieldRow("seconds", "seconds", origin="record", unit="seconds", digits=2, absent="finished before"),
)


def _tables(rows: Sequence[ComparedRecord]) -> list[PageTable]:
    """Return the tables: what is certified, with which error, and by which evidence."""
    who = () if alike(rows) else (FieldRow("protects", "protected"),)
    return [
        _table(
            rows, "The guarantees, with ε in nats. An unamplified ε assumes that no participation is secret.", CERTIFIED
        ),
        _table(
            rows,
            "The noise, and the error that it causes.",
            (*NOISE, *(WORKLOAD if any(row.workload for row in rows) else ())),
        ),
        _table(rows, "The documents.", (*who, *DOCUMENTS)),
    ]


def _table(rows: Sequence[ComparedRecord], caption: str, columns: tuple[FieldRow, ...]) -> PageTable:
    """Return a table with a row for each certificate, by name."""
    words = {"name", "guarantee", "sampler", "matrix", "protects", "SHA-256"}
    named = (FieldRow("name", "shown_name"), *columns)
    return table((caption,), rows, named, tuple(one.label for one in named if one.label in words))

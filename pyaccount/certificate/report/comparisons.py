"""The page of a comparison: certificates side by side, and their errors against ε."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING

from pyaccount.certificate.compared import WORDS, alike, protects, remarks
from pyaccount.certificate.error_lines import ErrorLines
from pyaccount.certificate.report.origins import ORIGINS
from pyaccount.certificate.words import count_words
from pyaccount.errors import DomainError
from pyaccount.pages.page import (
    Block,
    Content,
    Fact,
    FactList,
    Figure,
    Literally,
    Page,
    PageSection,
    PageTable,
    Paragraph,
    already_rounded,
    at_least,
    at_most,
    every_digit,
    exact,
)
from pyaccount.pages.plot import MANY, BarGroup, Bars, Plot, Series, axis_around
from pyaccount.rounding import up

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyaccount.certificate.compared import ComparedRecord, FailedRecord

_Cell = tuple[str, "Callable[[ComparedRecord], Content]"]


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
    """Return bars of σ and the error of each certificate, for certificates with the same ε."""
    bars = drawn.bars()
    noises = tuple(
        (bar.label, bar.noise_multiplier, up(bar.noise_multiplier, 3))
        for bar in bars
        if bar.noise_multiplier is not None
    )
    errors = tuple((bar.label, bar.error, f"{bar.error:.4g}") for bar in bars)
    quantities = [BarGroup("σ (noise multiplier)", noises)] if noises else []
    quantities.append(BarGroup(f"root mean square error of {drawn.error_of} (clip norms)", errors))
    return Bars(
        title=f"Certified at ε = {up(epsilon)} at most, δ = {drawn.deltas}",
        description="The noise multiplier and the root mean square error of each certificate; shorter bars are better. "
        "The tables of the certificates have the values.",
        quantities=tuple(quantities),
    )


def _tables(rows: Sequence[ComparedRecord]) -> list[PageTable]:
    """Return the tables: what is certified, with which error, and by which evidence."""
    who: list[_Cell] = [] if alike(rows) else [("protects", lambda row: (protects(row),))]
    workload: list[_Cell] = [
        ("workload", lambda row: (row.workload or "",)),
        ("its MSE", lambda row: _exact(row.workload_mse)),
    ]
    return [
        _table(
            rows,
            "What is certified. Each ε is in nats; unamplified: if no participations were secret.",
            (("guarantee", lambda row: (row.kind,)),),
            (
                ("ε at most", lambda row: (at_most(row.epsilon, "nats", "compared"),)),
                ("ε at least", lambda row: (at_least(row.epsilon_lower, "nats", "compared"),)),
                ("δ at most", lambda row: (every_digit(row.delta, "probability", "compared"),)),
                ("unamplified ε at most", _unamplified),
            ),
        ),
        _table(
            rows,
            "At which noise and error.",
            (("sampler", lambda row: (row.sampler,)), ("matrix", lambda row: (row.matrix or "several phases",))),
            (
                ("σ", _noise),
                ("distinct records a batch", lambda row: _exact(row.distinct_records, "records")),
                ("prefix-sum MSE", lambda row: _exact(row.prefix_sum_mse)),
                *(workload if any(row.workload for row in rows) else []),
            ),
        ),
        _table(
            rows,
            "Of which documents.",
            (*who, ("SHA-256", lambda row: (Literally(row.document_sha256),))),
            (("seconds", _seconds),),
        ),
    ]


def _table(
    compared: Sequence[ComparedRecord], caption: str, words: tuple[_Cell, ...], numbers: tuple[_Cell, ...]
) -> PageTable:
    """Return a table with a row for each certificate, by name."""
    columns = (*words, *numbers)
    rows = tuple((_name(row), *(show(row) for _, show in columns)) for row in compared)
    return PageTable(
        (caption,),
        ("name", *(heading for heading, _ in columns)),
        rows,
        words=("name", *(heading for heading, _ in words)),
    )


def _name(row: ComparedRecord) -> Content:
    return (row.name if row.holds else f"{row.name} (does not hold)",)


def _exact(value: float | None, unit: str = "squared clip norms") -> Content:
    return ("not stated",) if value is None else (exact(value, unit, "compared"),)


def _noise(row: ComparedRecord) -> Content:
    # More noise is never worse, so what is certified with σ also holds with σ rounded up.
    value = row.noise_multiplier
    return ("not one",) if value is None else (already_rounded(up(value), "noise multiplier", "compared"),)


def _unamplified(row: ComparedRecord) -> Content:
    value = row.unamplified_epsilon
    return ("∞ or not known",) if value is None else (at_most(value, "nats", "compared", 4),)


def _seconds(row: ComparedRecord) -> Content:
    return ("finished before",) if row.finished else (exact(row.seconds, "seconds", "record", 2),)

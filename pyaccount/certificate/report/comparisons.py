"""The page of a comparison: certificates side by side, and their error against ε."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING

from pyaccount.certificate.compared import WORDS
from pyaccount.certificate.comparison import alike, protects, remarks
from pyaccount.certificate.error_lines import ErrorLines
from pyaccount.certificate.report.bars import BarGroup, Bars
from pyaccount.certificate.report.page import (
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
    at_least,
    at_most,
    every_digit,
    exact,
    safe,
)
from pyaccount.certificate.report.plot import MANY, Plot, Series, around
from pyaccount.certificate.words import counted
from pyaccount.errors import DomainError
from pyaccount.rounding import up

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyaccount.certificate.comparison import ComparedRecord, Comparison

_Cell = tuple[str, "Callable[[ComparedRecord], Content]"]


def comparison_page(data: Comparison) -> Page:
    """The page."""
    rows = data.rows
    holding = sum(row.holds for row in rows)
    statement = f"Of {counted(len(rows), 'certificate')}, {holding} hold{'s' if holding == 1 else ''}."
    if rows and alike(data):
        statement += f" All are about {protects(rows[0])}."
    opening = (*(Paragraph((remark,)) for remark in remarks(data)), _picture(data))
    sections = [PageSection("errors", "Noise and error", opening)]
    if rows:
        sections.append(PageSection("certificates", "The certificates", tuple(_tables(data))))
    if data.failures:
        facts = tuple(Fact(one.name, (f"{WORDS[one.why]}: {one.message}",)) for one in data.failures)
        sections.append(PageSection("failures", "What has no certificate", (FactList(facts),)))
    return Page(
        title="Comparison",
        name=f"{counted(len(rows), 'certificate')} side by side",
        holds=None,
        statement=statement,
        headline=(),
        sections=tuple(sections),
        stated="The figures are those of the certificates, each of which says what must be true for them; finished certificates "
        "are taken as stated and were not recomputed here.",
        made_from="certificates, which are what counts; this page is a view of them",
    )


def _picture(data: Comparison) -> Block:
    """The error against ε at most, a line for each sampler with its matrix, σ beside the points; bars where all have one ε."""
    try:
        drawn = ErrorLines.of(data)
    except DomainError as error:
        return Paragraph((f"{error}.".capitalize(),))
    if drawn.one_epsilon is not None:
        return _bars(drawn, drawn.one_epsilon)
    points = [point for line in drawn.lines.values() for point in line]
    plot = Plot(
        title="Root mean square error over ε, both logarithmic",
        description="The less of both, the better. The tables of the certificates have the values.",
        x=around("ε at most (nats)", [point.epsilon for point in points], room=1.4),
        y=around("root mean square error (clip norms)", [point.error for point in points]),
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
    caption = (
        f"The error of {drawn.error_of}, certified at δ = {drawn.deltas}; beside the points the certified σ, where it has room. "
        "What does not hold, or has no one error, is left out."
    )
    return Figure("errors-picture", plot, (caption,), "compared")


def _bars(drawn: ErrorLines, epsilon: float) -> Figure:
    """σ and the error of each certificate, where all have one ε."""
    bars = drawn.bars()
    noises = tuple(
        (bar.label, bar.noise_multiplier, up(bar.noise_multiplier, 3))
        for bar in bars
        if bar.noise_multiplier is not None
    )
    errors = tuple((bar.label, bar.error, f"{bar.error:.4g}") for bar in bars)
    quantities = [BarGroup("σ (noise multiplier)", noises)] if noises else []
    quantities.append(BarGroup("root mean square error (clip norms)", errors))
    plot = Bars(
        title="Noise multiplier and root mean square error of each certificate",
        description="The shorter the bar of the error, the better. The tables of the certificates have the values.",
        quantities=tuple(quantities),
    )
    caption = (
        f"The certified σ, and the error of {drawn.error_of}, at ε = {up(epsilon)} at most and δ = {drawn.deltas}. What does not "
        "hold, or has no one error, is left out."
    )
    return Figure("errors-picture", plot, (caption,), "compared")


def _tables(data: Comparison) -> list[PageTable]:
    """What is certified, at which error, and how it is known."""
    who: list[_Cell] = [] if alike(data) else [("protects", lambda row: (protects(row),))]
    workload: list[_Cell] = [
        ("workload", lambda row: (row.workload or "",)),
        ("its MSE", lambda row: _exact(row.workload_mse)),
    ]
    return [
        _table(
            data,
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
            data,
            "At which noise and error.",
            (("sampler", lambda row: (row.sampler,)), ("matrix", lambda row: (row.matrix or "several phases",))),
            (
                ("σ", _noise),
                ("distinct records a batch", lambda row: _exact(row.distinct_records, "records")),
                ("prefix-sum MSE", lambda row: _exact(row.prefix_sum_mse)),
                *(workload if any(row.workload for row in data.rows) else []),
            ),
        ),
        _table(
            data,
            "Of which documents.",
            (*who, ("SHA-256", lambda row: (Literally(row.document_sha256),))),
            (("seconds", _seconds),),
        ),
    ]


def _table(data: Comparison, caption: str, words: tuple[_Cell, ...], numbers: tuple[_Cell, ...]) -> PageTable:
    """A table of all certificates, by name."""
    columns = (*words, *numbers)
    rows = tuple((_name(row), *(show(row) for _, show in columns)) for row in data.rows)
    return PageTable((caption,), ("name", *(heading for heading, _ in columns)), rows, words=1 + len(words))


def _name(row: ComparedRecord) -> Content:
    return (row.name if row.holds else f"{row.name} (does not hold)",)


def _exact(value: float | None, unit: str = "squared clip norms") -> Content:
    return ("not stated",) if value is None else (exact(value, unit, "compared"),)


def _noise(row: ComparedRecord) -> Content:
    # More noise is no worse: what is certified with σ is with σ rounded up.
    value = row.noise_multiplier
    return ("not one",) if value is None else (safe(up(value), "noise multiplier", "compared"),)


def _unamplified(row: ComparedRecord) -> Content:
    value = row.unamplified_epsilon
    return ("∞ or not known",) if value is None else (at_most(value, "nats", "compared", 4),)


def _seconds(row: ComparedRecord) -> Content:
    return ("finished before",) if row.finished else (exact(row.seconds, "seconds", "record", 2),)

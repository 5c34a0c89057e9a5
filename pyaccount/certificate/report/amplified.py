"""The report of an amplification certificate: what one draw does to one mechanism."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyaccount.certificate.report.evidence import provenance_section
from pyaccount.certificate.report.page import (
    Block,
    Checklist,
    Code,
    Fact,
    FactList,
    Figure,
    Page,
    PageSection,
    PageTable,
    Paragraph,
    at_most,
    chosen,
    exact,
)
from pyaccount.certificate.report.plot import Axis, Plot, Series
from pyaccount.certificate.report.written import yaml_text

if TYPE_CHECKING:
    from pyaccount.certificate.amplification import AmplificationCertificate


def amplification_page(data: AmplificationCertificate) -> Page:
    """The report."""
    headline = [
        Fact(
            "η at most",
            (at_most(data.eta, "probability", "amplification"),),
            ("probability that a record is drawn at all",),
        )
    ]
    if data.effects:
        first = data.effects[0]
        headline += [
            Fact("ε′ at most", (at_most(first.amplified_epsilon, "nats", "amplification"),), ("nats, with sampling",)),
            Fact(
                "δ′ at most",
                (at_most(first.amplified_delta, "probability", "amplification"),),
                ("probability, with sampling",),
            ),
        ]
    facts = [
        Fact("sampling", (data.subject,)),
        Fact("law of draws", (data.law,), ("of the number of times that a record is drawn",)),
        Fact("theorem", (data.theorem,)),
        Fact("source", (data.source,)),
    ]
    if data.distinct_records is not None:
        distinct = exact(data.distinct_records, "records per batch", "amplification")
        facts.append(Fact("distinct records", (distinct,), ("expected in a batch",)))
    effects: tuple[Block, ...] = (Paragraph(("Nothing is asked of this mechanism.",)),)
    if data.effects:
        effects = (_picture(data), _effects(data))
    return Page(
        title="Amplification by sampling",
        name=data.name,
        holds=None,
        statement=data.statement,
        headline=tuple(headline),
        sections=(
            PageSection("effects", "What the draw does", effects),
            PageSection("theorems", "How it is known", (FactList(tuple(facts)),)),
            PageSection("assumptions", "What must be true", (Checklist(tuple(data.assumptions)),)),
            PageSection("document", "The document", (Code(yaml_text(data.document), "yaml"),)),
            provenance_section(data),
        ),
    )


def _effects(data: AmplificationCertificate) -> PageTable:
    rows = tuple(
        (
            (chosen(row.epsilon, "nats"),),
            (at_most(row.delta, "probability", "amplification"),),
            (at_most(row.amplified_epsilon, "nats", "amplification"),),
            (at_most(row.amplified_delta, "probability", "amplification"),),
            (row.effect,),
        )
        for row in data.effects
    )
    headings = ("ε (nats)", "δ at most", "ε′ at most (nats)", "δ′ at most", "effect of sampling")
    return PageTable(("Without sampling: ε and δ; with it: ε′ and δ′.",), headings, rows)


def _picture(data: AmplificationCertificate) -> Figure:
    """ε′ over ε, against no effect at all."""
    rows = sorted((row.epsilon, row.amplified_epsilon) for row in data.effects)
    high = max(max(row) for row in rows) or 1.0
    plot = Plot(
        title="ε with sampling over ε without",
        description="Below the dotted line of no effect, sampling lowers ε. The table has the values, and those of δ.",
        x=Axis("ε without sampling (nats)", 0.0, high),
        y=Axis("ε′ with sampling (nats), at most", 0.0, high),
        series=(
            Series("certified", tuple(rows), "first", markers=True, line=False),
            Series("no effect", ((0.0, 0.0), (high, high)), "reference"),
        ),
        legend="top left",
    )
    return Figure(
        "effects-picture", plot, ("Below the dotted line sampling lowers ε; see the table for δ.",), "amplification"
    )

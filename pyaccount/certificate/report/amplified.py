"""The page of an amplification certificate: what one draw does to one mechanism."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyaccount.certificate.report.evidence import provenance_section
from pyaccount.certificate.report.parts import AS_STATED, MADE_FROM, ORIGINS, FieldRow, facts, table, yaml_text
from pyaccount.certificate.report.sections import alert, badges
from pyaccount.pages.page import (
    Block,
    Checklist,
    Code,
    Fact,
    FactList,
    Figure,
    Page,
    PageSection,
    Paragraph,
    at_most,
    chosen_value,
    filled,
)
from pyaccount.pages.plot import Axis, Plot, Series

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyaccount.records.amplification import AmplificationData


ORIGIN = "amplification"
DRAWN = FieldRow("η", "eta", "the probability that a record is drawn at all", ORIGIN)
THEOREM = (
    FieldRow("sampling", "subject"),
    DRAWN,
    FieldRow("law of draws", "law", "of the number of times that a record is drawn"),
    FieldRow("theorem", "theorem"),
    FieldRow("source", "source"),
    FieldRow("distinct records", "distinct_records", "expected in a batch", ORIGIN, "records per batch"),
)
HEADLINE = (
    FieldRow("ε′ at most", "amplified_epsilon", "nats, with sampling", ORIGIN),
    FieldRow("δ′ at most", "amplified_delta", "probability, with sampling", ORIGIN),
)
EFFECTS = (
    FieldRow("ε (nats)", "epsilon"),
    FieldRow("δ at most", "delta", origin=ORIGIN),
    FieldRow("ε′ at most (nats)", "amplified_epsilon", origin=ORIGIN),
    FieldRow("δ′ at most", "amplified_delta", origin=ORIGIN),
    FieldRow("effect of sampling", "effect"),
)


def amplification_page(data: AmplificationData, contradictions: Sequence[str] = ()) -> Page:
    """Return the page of an amplification certificate; `contradictions` are what in it contradicts the rest."""
    headline = facts(
        data, (DRAWN._replace(label="η at most", note="probability that a record is drawn at all"),), labelled=True
    )
    headline += facts(data.effects[0], HEADLINE, labelled=True) if data.effects else []
    effects: tuple[Block, ...] = (Paragraph(("Nothing is asked of this mechanism.",)),)
    if data.effects:
        caption = ("Without sampling: ε and δ; with it: ε′ and δ′.",)
        effects = (_picture(data), table(caption, data.effects, EFFECTS, ("effect of sampling",)))
    return Page(
        title="Amplification by sampling",
        name=data.name,
        badges=badges(contradictions, holds=None),
        alert=alert(contradictions),
        statement=data.statement,
        headline=tuple(headline),
        sections=(
            PageSection("effects", "What the draw does", effects),
            PageSection("theorems", "How it is known", (FactList(tuple(facts(data, THEOREM))),)),
            PageSection("assumptions", "What must be true", (Checklist(tuple(data.assumptions)),)),
            PageSection("document", "The document", (Code(yaml_text(data.document), "yaml"),)),
            provenance_section(data),
        ),
        origins=ORIGINS,
        stated=AS_STATED,
        made_from=MADE_FROM,
    )


def brief_effects(data: AmplificationData) -> tuple[Fact, ...]:
    """Return the short answer: the statement, and ε′ and δ′ for each ε and δ of the document."""
    rows = [Fact("statement", (data.statement,))]
    for row in data.effects:
        epsilon, delta = chosen_value(row.epsilon, "nats"), at_most(row.delta, "probability", "amplification")
        after = at_most(row.amplified_epsilon, "nats", "amplification")
        beside = at_most(row.amplified_delta, "probability", "amplification")
        effect = filled("ε′ at most {}, δ′ at most {}: {}", after, beside, row.effect)
        rows.append(Fact(f"ε {epsilon.text}, δ {delta.text}", effect))
    return tuple(rows)


def aligned_profile(data: AmplificationData) -> Plot:
    """Return the aligned privacy profile: ε − ε′ over δ − δ′, as ε without sampling varies.

    In the upper right quadrant sampling lowers both ε and δ.
    """
    points = tuple((row.delta - row.amplified_delta, row.epsilon - row.amplified_epsilon) for row in data.effects)
    low_x, high_x, low_y, high_y = (pick(0.0, *(point[k] for point in points)) for k in (0, 1) for pick in (min, max))
    room_x, room_y = (0.12 * (high - low) or 1.0 for low, high in ((low_x, high_x), (low_y, high_y)))
    x = Axis("δ − δ′ (right of 0: δ falls)", low_x - room_x, high_x + room_x)
    y = Axis("ε − ε′ (above 0: ε falls)", low_y - room_y, high_y + room_y)
    labels = tuple(f"{row.epsilon:g}" for row in data.effects)
    return Plot(
        title=f"{data.name}: {data.subject}; beside the points ε without sampling",
        description="Right of 0 and above it sampling helps in both.",
        x=x,
        y=y,
        series=(
            Series("", points, "first", markers=True, labels=labels),
            Series("", ((0.0, y.low), (0.0, y.high)), "reference"),
            Series("", ((x.low, 0.0), (x.high, 0.0)), "reference"),
        ),
    )


def _picture(data: AmplificationData) -> Figure:
    """Return the picture of ε′ over ε, with the line of no effect."""
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

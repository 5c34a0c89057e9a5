"""The page of a ledger's status: what is spent, by whom, what is left, and what one more typical entry would cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyaccount.ledger.totals import SYMBOLS
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
    at_least,
    at_most,
    chosen_value,
    directed,
    estimate,
    exact,
)
from pyaccount.pages.plot import BarGroup, Bars
from pyaccount.rounding import up

if TYPE_CHECKING:
    from pyaccount.ledger.status_records import BlockRecord, DataSetRecord, FilterRecord, StatusRecord, TypicalRecord

#: The most blocks and people in a picture; tables have all of them.
MOST_BARS = 12
#: The length of a bar that is all of the budget, in per cent.
WHOLE = 100.0
UNITS = {"epsilon": "nats", "rho": "nats", "mu": "standard deviations", "gaussian_mu": "standard deviations"}
ORIGINS = {
    "budget": "The document of the data set.",
    "total": "The joint guarantee of all fixed entries and of the whole budgets of the filters, which may still be spent.",
    "filter": "The sum of the costs of the entries of a filter, rounded up, or what its budget has left, rounded down.",
    "shares": "Shares of the budget, which add up in a filter. Of a fixed entry: how much the total grew when it was reserved.",
    "median": "The median of the shares of earlier entries of the same kind; a guess about the next one.",
    "ledger": "Counted in the ledger.",
}


def status_page(status: StatusRecord) -> Page:
    """Return the status as a page, with a section for each data set."""
    sections = [_section(index, data_set) for index, data_set in enumerate(status.data_sets)]
    ledger = FactList(
        (
            Fact("events", (exact(status.events, "events", "ledger"),)),
            Fact("last event", (status.last or "none",)),
            Fact(
                "last hash",
                (Literally(status.head),),
                ("note it elsewhere: `pyaccount ledger verify --expected-head`",),
            ),
            *(
                Fact(
                    "clock set back",
                    (f"from {one.amended_from} to {one.time}",),
                    (f"event {one.sequence}: {one.reason}",),
                )
                for one in status.amendments
            ),
        )
    )
    sections.append(PageSection("ledger", "Ledger", (ledger,)))
    return Page(
        "Privacy ledger", status.ledger, tuple(sections), origins=ORIGINS, made_from=f"the state of {status.time}"
    )


def _section(index: int, data_set: DataSetRecord) -> PageSection:
    protected = f"{data_set.unit}s, {data_set.adjacency}" + (
        f", groups of {data_set.group_size}" if data_set.group_size > 1 else ""
    )
    facts = (*_left(data_set), Fact("budget", (data_set.budget,)), Fact("protects", (protected,)))
    blocks: list[Block] = [FactList(facts)]
    if not data_set.blocks:
        blocks.append(Paragraph(("No period has an entry yet, so each has its whole budget.",)))
    else:
        blocks += [*_picture(index, data_set), *_totals(data_set), *_filters(data_set)]
    if data_set.spenders:
        blocks.append(_spenders(data_set))
    if data_set.open:
        blocks.append(_open(data_set))
    return PageSection(f"data-set-{index + 1}", data_set.name, tuple(blocks))


def _left(data_set: DataSetRecord) -> tuple[Fact, ...]:
    """Return what fixed entries may still add to the fullest block that is open; empty if no block has a total."""
    blocks = [
        (block.share, block.name, block.total) for block in data_set.blocks if block.open and block.total is not None
    ]
    if not blocks:
        return ()
    _, name, total = max(blocks, key=lambda block: block[0])
    unit = UNITS.get(data_set.measure, "probability")
    left = directed(at_least(max(0.0, total.limit - total.value), unit, "total", 4))
    content = (*left, " of ", chosen_value(total.limit, unit, "budget"), f" ({SYMBOLS[data_set.measure]})")
    return (Fact("left", content, (f"for fixed entries on its fullest block, {name}",)),)


def _picture(index: int, data_set: DataSetRecord) -> list[Block]:
    """Return a picture of the shares of the budget that are spent, by block and by person; none if nothing is spent."""
    groups = []
    shown = [block for block in data_set.blocks if block.share > 0.0][-MOST_BARS:]
    if shown:
        bars = tuple((block.name, 100.0 * block.share, f"{up(100.0 * block.share, 3)} %") for block in shown)
        groups.append(BarGroup("% of the budget that is spent or set aside, by block", bars, WHOLE))
    for label, field in (
        ("% of the budget, by who reserved the fixed entries", "fixed_share"),
        ("% of a filter, by who reserved the adaptive entries", "filter_share"),
    ):
        people = [(one.who, 100.0 * getattr(one, field)) for one in data_set.spenders if getattr(one, field) > 0.0]
        if people:
            people = sorted(people, key=lambda one: -one[1])[:MOST_BARS]
            bars = tuple((who, part, f"about {part:.3g} %") for who, part in people)
            groups.append(BarGroup(label, bars, WHOLE))
    if not groups:
        return []
    parts = "; ".join(f"{word}: {said}" for group in groups for word, _, said in group.bars)
    picture = Bars(f"The budget of {data_set.name}", f"Shares of the budget. {parts}.", tuple(groups))
    caption = "A full bar is the whole budget. The shares of people are those on their fullest block."
    return [Figure(f"budget-{index + 1}", picture, (caption,), "shares")]


def _totals(data_set: DataSetRecord) -> list[Block]:
    rows: list[tuple[Content, ...]] = []
    unit = UNITS.get(data_set.measure, "probability")
    for block in data_set.blocks:
        total = block.total
        if total is None:
            continue
        left = max(0.0, total.limit - total.value)
        rows.append(
            (
                (block.name,),
                (_state(block),),
                (exact(total.fixed, "entries", "ledger"),),
                (at_most(total.value, unit, "total", 5),),
                (chosen_value(total.limit, unit, "budget"),),
                (at_least(left, unit, "total", 4),),
                _typical(total.typical),
            )
        )
    if not rows:
        return []
    symbol = SYMBOLS[data_set.measure]
    headings = ("block", "state", "fixed entries", f"{symbol} at most", "budget", "left", "a typical fixed entry")
    caption = "The total of each block: all fixed entries together with the whole budgets of the filters."
    return [PageTable((caption,), headings, tuple(rows), words=(*headings[:2], headings[-1]))]


def _state(block: BlockRecord) -> str:
    if not block.open:
        return "retired"
    return "begun: new entries are adaptive" if block.begun else "not begun: new entries are fixed"


def _typical(typical: TypicalRecord | None) -> Content:
    if typical is None:
        return ("",)
    share: Content = (*directed(estimate(100.0 * typical.share, "%", "median", 3)), " %")
    return (*share, "" if typical.fitting is None else f"; {typical.fitting} more like it would fit")


def _filters(data_set: DataSetRecord) -> list[Block]:
    rows: list[tuple[Content, ...]] = []
    for block in data_set.blocks:
        for filter_ in block.filters:
            rows += _terms(block, filter_)
    if not rows:
        return []
    headings = ("block", "filter", "entries", "term", "spent", "budget", "left", "a typical entry")
    caption = "The filters of adaptive entries. What is left is the most that one more entry may cost."
    return [PageTable((caption,), headings, tuple(rows), words=(headings[0], headings[1], headings[3], headings[-1]))]


def _terms(block: BlockRecord, filter_: FilterRecord) -> list[tuple[Content, ...]]:
    rows: list[tuple[Content, ...]] = []
    for index, term in enumerate(filter_.terms):
        unit = "probability" if term.term == "δ" else "standard deviations" if term.term == "μ" else "nats"
        first = index == 0
        rows.append(
            (
                (block.name if first else "",),
                (filter_.name if first else "",),
                (exact(filter_.entries, "entries", "ledger"),) if first else ("",),
                (term.term,),
                (at_most(term.spent, unit, "filter", 5),),
                (chosen_value(term.limit, unit, "budget"),),
                (at_least(term.left, unit, "filter", 5),),
                _typical(filter_.typical) if first else ("",),
            )
        )
    return rows


def _spenders(data_set: DataSetRecord) -> PageTable:
    rows: Sequence[tuple[Content, ...]] = [
        (
            (one.who,),
            *(
                (exact(getattr(one, state), "entries", "ledger"),)
                for state in ("reserved", "begun", "committed", "released")
            ),
            (estimate(100.0 * one.fixed_share, "%", "shares", 3),),
            (estimate(100.0 * one.filter_share, "%", "shares", 3),),
        )
        for one in data_set.spenders
    ]
    headings = (
        "who",
        "reserved",
        "begun",
        "committed",
        "released",
        "fixed: % of the budget",
        "adaptive: % of a filter",
    )
    return PageTable(
        ("Who reserved what. Shares are those of the fullest block of each person.",),
        headings,
        tuple(rows),
        words=headings[:1],
    )


def _open(data_set: DataSetRecord) -> PageTable:
    rows = tuple(
        (
            (one.id,),
            (one.name,),
            (one.who,),
            (one.purpose,),
            (f"{one.state} since {one.since[:19].replace('T', ' ')}",),
            (", ".join(f"{block} ({filter_ or 'fixed'})" for block, filter_ in one.blocks.items()),),
        )
        for one in data_set.open
    )
    headings = ("entry", "document", "who", "what for", "state", "blocks")
    return PageTable(("Entries that are reserved or have begun.",), headings, rows, words=headings)

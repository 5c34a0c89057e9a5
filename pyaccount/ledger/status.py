"""Computes the status of a ledger: what is spent, by whom, and what is left."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from statistics import median_low
from typing import TYPE_CHECKING, Any

from pyaccount.ledger.events import spelled
from pyaccount.ledger.state import BlockState, EntryPlace, KeptDataSet, LedgerEntry, limit_of, measure_of
from pyaccount.ledger.status_records import (
    AmendmentRecord,
    BlockRecord,
    DataSetRecord,
    FilterRecord,
    OpenRecord,
    SpenderRecord,
    StatusRecord,
    TermRecord,
    TotalRecord,
    TypicalRecord,
)
from pyaccount.ledger.totals import limits, measured, shares
from pyaccount.pages.readable import Readable

if TYPE_CHECKING:
    from pyaccount.ledger.rows import LedgerRows
    from pyaccount.pages.page import Page


class LedgerStatus(StatusRecord, Readable):
    """What is spent of the budgets of a ledger, by whom, and what is left."""

    def page(self) -> Page:
        """Return the status as a page."""
        from pyaccount.ledger.page import status_page

        return status_page(self)

    def to_openmetrics(self) -> str:
        """Return the status as OpenMetrics text, for dashboards."""
        from pyaccount.ledger.status_records import openmetrics

        return openmetrics(self)


def status_of(place: str, rows: LedgerRows, names: Sequence[str], now: datetime) -> LedgerStatus:
    """Return the status of some data sets of a ledger."""
    return LedgerStatus(
        pyaccount=1,
        kind="ledger-status",
        ledger=place,
        time=spelled(now),
        events=rows.head.sequence,
        head=rows.head.hash,
        last=rows.head.time or None,
        amendments=[
            AmendmentRecord(sequence=event.sequence, time=event.time, **event.content) for event in rows.amendments()
        ],
        data_sets=[_data_set(rows, name) for name in names],
    )


def _data_set(rows: LedgerRows, name: str) -> DataSetRecord:
    kept = rows.data_set(name)
    assert kept is not None
    document, entries, share = kept.data_set, rows.entries(name), _Shares(kept)
    measure: Any = measure_of(document)
    taken: dict[tuple[str, str | None], list[float]] = defaultdict(list)
    for entry in entries:
        for place in entry.places:
            if place.counts:
                taken[place.block, place.filter].append(share.of(place))
    return DataSetRecord(
        name=name,
        adjacency=document.privacy.adjacency,
        group_size=document.privacy.group_size,
        unit=document.privacy.unit,
        budget=document.budget_words(),
        measure=measure,
        blocks=[_block(kept, block, taken) for block in rows.blocks(name)],
        spenders=_spenders(share, entries),
        open=[_open(entry) for entry in entries if entry.state in ("reserved", "begun")],
    )


class _Shares:
    """Which share of the budget a place takes: in its filter, or of the whole budget for a fixed entry. These are estimates."""

    def __init__(self, kept: KeptDataSet) -> None:
        self._limit = limit_of(kept.data_set)
        # In a filter of μ the squares add up.
        self._limits = {
            name: [limit * limit if "mu" in budget else limit for _, limit in limits(budget)]
            for name, budget in kept.data_set.filters.items()
        }

    def of(self, place: EntryPlace) -> float:
        """Return the share of one place."""
        against = (self._limit,) if place.filter is None else self._limits[place.filter]
        return max((cost / limit for cost, limit in zip(place.cost, against, strict=False) if limit), default=0.0)


def _block(kept: KeptDataSet, block: BlockState, taken: dict[tuple[str, str | None], list[float]]) -> BlockRecord:
    filters = []
    for name, rule in kept.filters.items():
        account = block.accounts[name]
        budget = kept.data_set.filters[name]
        spent = measured(budget, account.spent)
        left = measured(budget, rule.remaining(account.spent), left=True)
        share = max(shares(budget, account.spent))
        terms = [
            TermRecord(term=term, limit=limit, spent=spent[index][1], left=left[index][1])
            for index, (term, limit) in enumerate(limits(budget))
        ]
        filters.append(
            FilterRecord(
                name=name,
                entries=account.entries,
                share=share,
                terms=terms,
                typical=_typical(taken.get((block.name, name), []), 1.0 - share),
            )
        )
    total = None
    if block.total is not None:
        total = TotalRecord(
            value=block.total.value,
            limit=limit_of(kept.data_set),
            epsilon=block.total.epsilon,
            delta=block.total.delta,
            fixed=block.fixed,
            typical=_typical(taken.get((block.name, None), []), None),
        )
    return BlockRecord(
        name=block.name,
        open=block.open,
        begun=block.begun,
        share=filters[0].share if total is None else total.value / total.limit if total.limit else 0.0,
        total=total,
        filters=filters,
    )


def _typical(taken: list[float], left: float | None) -> TypicalRecord | None:
    """Return the typical entry, given the shares that entries took and the share that is left."""
    if not taken:
        return None
    share = median_low(taken)
    fitting = None if left is None or share <= 0.0 else math.floor(max(0.0, left) / share)
    return TypicalRecord(share=share, fitting=fitting)


def _spenders(share: _Shares, entries: Sequence[LedgerEntry]) -> list[SpenderRecord]:
    states: dict[str, dict[str, int]] = defaultdict(
        lambda: dict.fromkeys(("reserved", "begun", "committed", "released"), 0)
    )
    taken: dict[str, dict[tuple[str, str | None], float]] = defaultdict(lambda: defaultdict(float))
    for entry in entries:
        states[entry.who][entry.state] += 1
        for place in entry.places:
            if place.counts:
                taken[entry.who][place.block, place.filter] += share.of(place)
    records = [
        SpenderRecord(
            who=who,
            fixed_share=max((part for (_, filter_), part in taken[who].items() if filter_ is None), default=0.0),
            filter_share=max((part for (_, filter_), part in taken[who].items() if filter_ is not None), default=0.0),
            **counted,
        )
        for who, counted in states.items()
    ]
    return sorted(records, key=lambda record: (-record.fixed_share - record.filter_share, record.who))


def _open(entry: LedgerEntry) -> OpenRecord:
    assert entry.state in ("reserved", "begun")
    return OpenRecord(
        id=entry.id,
        name=entry.name,
        who=entry.who,
        purpose=entry.purpose,
        state="reserved" if entry.state == "reserved" else "begun",
        since=entry.begun or entry.reserved,
        blocks={place.block: place.filter for place in entry.places},
    )

"""Changes of a budget, and refunds: what is computed for them from the fixed entries of blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pyaccount.document.data_set import DataSet
from pyaccount.errors import BudgetError, Problem
from pyaccount.ledger.access import refuse
from pyaccount.ledger.state import BlockState, KeptDataSet, LedgerEntry, Total, within
from pyaccount.ledger.totals import Phases, total_of, total_words
from pyaccount.ledger.words import spent_words


def check_change(kept: KeptDataSet, document: DataSet, place: str) -> None:
    """Raise `LedgerError` if more than the numbers of the budget and the list of blocks differs."""
    before, after = kept.data_set.to_mapping(), document.to_mapping()
    path = ("data_sets", document.name)
    numbers = ("epsilon", "delta", "rho", "mu", "risk")
    for mapping in (before, after):
        mapping.pop("blocks", None)
        for name in numbers:
            mapping["privacy"].pop(name, None)
    different = [name for name in sorted({*before, *after}) if before.get(name) != after.get(name)]
    if different or kept.data_set.way != document.way:
        what = ", ".join(different) or "the kind of the budget"
        message = (
            f"{what} of {document.name} would change, on which earlier entries rely: only the numbers of the budget may change, "
            "and blocks may be added. Enter another data set for anything else"
        )
        raise refuse("not-allowed-now", message, path, place)


def changed_budget(
    document: DataSet, blocks: Sequence[BlockState], fixed: Callable[[str], Iterable[Phases]], place: str
) -> dict[str, Any]:
    """Return the content of the event. Raises `BudgetError` if a block has spent more than the new budget."""
    after = KeptDataSet.new(document)
    empty = total_of(after, [])
    problems = []
    totals: dict[str, Total | None] = {}
    for block in blocks:
        path = ("data_sets", document.name, "blocks", block.name)
        totals[block.name] = total = total_of(after, fixed(block.name)) if block.fixed else empty
        if not within(document, total):
            assert total is not None
            message = (
                f"the budget would be {document.budget_words()}, and what is spent on {block.name} is "
                f"{total_words(document, total)}: a budget cannot be lower than what is spent"
            )
            problems.append(Problem("over-budget", message, path, place))
        for name, rule in after.filters.items():
            spent = block.accounts[name].spent
            if not rule.admits(spent, rule.nothing):
                message = (
                    f"the budget would be {document.budget_words()}, and what is spent on {block.name} is "
                    f"{spent_words(document.filters[name], spent)}: a budget cannot be lower than what is spent"
                )
                problems.append(Problem("over-budget", message, path, place))
    if not within(document, empty):
        assert empty is not None
        message = (
            f"the whole budgets of the filters are {total_words(document, empty)}, more than {document.budget_words()}"
        )
        problems.append(Problem("over-budget", f"{message}: give a larger budget", ("data_sets", document.name), place))
    if problems:
        raise BudgetError(problems)
    written = {name: None if total is None else total.to_mapping() for name, total in totals.items()}
    return KeptDataSet.new(document, empty).to_mapping() | {"totals": written}


def refunds(
    entry: LedgerEntry, kept: KeptDataSet, blocks: Sequence[BlockState], fixed: Mapping[str, Mapping[str, Phases]]
) -> dict[str, Total]:
    """Return the totals of the blocks on which an entry is fixed and nothing has begun, without this entry."""
    totals = {}
    fixed_on = {place.block for place in entry.places if place.filter is None}
    for block in blocks:
        if block.name in fixed_on and not block.begun:
            remaining = [phases for other, phases in fixed[block.name].items() if other != entry.id]
            total = total_of(kept, remaining)
            assert total is not None
            assert block.total is not None
            # The old total bounds fewer entries too; of two bounds the smaller one counts.
            totals[block.name] = min(total, block.total, key=lambda one: one.value)
    return totals

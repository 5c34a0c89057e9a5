"""Decides where an entry counts on a block, and words why a budget does not admit it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pyaccount.certificate import Certificate
from pyaccount.document.data_set import BUDGET
from pyaccount.errors import BudgetError, CertificateError, DocumentError, DomainError, LedgerError, Problem
from pyaccount.ledger.planning import PlannedEntry, first_rounds, independent
from pyaccount.ledger.state import BlockState, EntryCost, EntryPlace, KeptDataSet, Total, within
from pyaccount.ledger.totals import Phases, spent_words, total_of, total_words

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyaccount.filters import Filter


class Decision(NamedTuple):
    """Where an entry counts, the new totals of blocks on which it is fixed, and what this was decided from."""

    places: tuple[EntryPlace, ...]
    totals: dict[str, Total]
    #: The versions of the blocks on which it is fixed: at another version, it has to be decided again.
    versions: dict[str, int]


class Deciding:
    """Decides about one entry. Costs are computed once for each filter."""

    def __init__(self, kept: KeptDataSet, found: PlannedEntry, filter_: str | None, place: str) -> None:
        #: The data set as it was when this was made. If it was changed, costs and totals have to be computed again.
        self.kept = kept
        self._found = found
        self._filter = filter_
        self._place = place
        self._costs: dict[str, EntryCost | Exception] = {}
        if filter_ is not None and filter_ not in kept.filters:
            names = ", ".join(kept.filters) or "none"
            message = (
                f"{kept.data_set.name} has no filter {filter_}: its filters, fixed when it was created, are: {names}"
            )
            path = ("data_sets", kept.data_set.name, "filters")
            raise LedgerError([Problem("unknown-name", message, path, place, value=filter_, allowed=names)])

    def decide(self, blocks: Sequence[BlockState], fixed: Callable[[str], list[Phases]]) -> Decision:
        """Return where the entry counts. Raises `BudgetError` with a problem for each block that does not admit it."""
        places: list[EntryPlace] = []
        totals: dict[str, Total] = {}
        problems: list[Problem] = []
        for block in blocks:
            if self.kept.data_set.filtered or block.begun or self._filter is not None:
                place = self._adaptive(block)
                if isinstance(place, Problem):
                    problems.append(place)
                else:
                    places.append(place)
                continue
            total = self._total([*fixed(block.name), list(self._found.phases)])
            if within(self.kept.data_set, total):
                before = 0.0 if block.total is None else block.total.value
                places.append(EntryPlace(block.name, None, (max(0.0, total.value - before),)))
                totals[block.name] = total
            else:
                problems.append(self._too_much(block, total, fixed(block.name)))
        if problems:
            raise BudgetError(problems)
        versions = {block.name: block.version for block in blocks if block.name in totals}
        return Decision(tuple(places), totals, versions)

    def admitted(self, place: EntryPlace, block: BlockState) -> bool:
        """Return whether the filter of a place still admits the entry."""
        assert place.filter is not None
        return self.kept.filters[place.filter].admits(block.accounts[place.filter].spent, place.cost)

    def _total(self, fixed: list[Phases]) -> Total:
        total = total_of(self.kept, fixed)
        assert total is not None
        return total

    def _adaptive(self, block: BlockState) -> EntryPlace | Problem:
        names = [self._filter] if self._filter is not None else list(self.kept.filters)
        reasons = []
        for name in names:
            rule, cost = self.kept.filters[name], self._cost(name)
            if isinstance(cost, Exception):
                problems = getattr(cost, "problems", ())
                reasons.append(f"{name}: {'; '.join(problem.message for problem in problems) or cost}")
                continue
            spent = block.accounts[name].spent
            if rule.admits(spent, cost):
                return EntryPlace(block.name, name, cost)
            reasons.append(f"{name}: {self._left(name, rule, spent, cost)}")
        return self._no_filter(block, reasons)

    def _cost(self, name: str) -> EntryCost | Exception:
        """Return the cost of the entry in a filter, or why it has none."""
        if name not in self._costs:
            try:
                self._costs[name] = tuple(self.kept.filters[name].cost(self._found.source))
            except (DocumentError, CertificateError, DomainError) as error:
                self._costs[name] = error
        return self._costs[name]

    def _no_filter(self, block: BlockState, reasons: list[str]) -> Problem:
        data_set = self.kept.data_set
        path = ("data_sets", data_set.name, "blocks", block.name)
        if data_set.filtered:
            why = f"no room in the budget of {data_set.budget_words()}"
        else:
            why = (
                "an entry of this block has begun, so this one is adaptive and must enter a filter"
                if block.begun
                else (f"the filter {self._filter} was asked for")
            )
        if not reasons:
            reasons = [
                "the data set has no filters, which are fixed when it is created: reserve all entries before the first one "
                "begins, or add a block with new data"
            ]
        message = "; ".join([f"{self._found.name} does not fit: {why}", *reasons])
        return Problem("over-budget", message, path, self._place)

    def _left(self, name: str, rule: Filter, spent: EntryCost, cost: EntryCost) -> str:
        budget = self.kept.data_set.filters[name]
        words = f"{spent_words(budget, cost)} is asked for, and {spent_words(budget, rule.remaining(spent), left=True)} is left"
        fitting = self._rounds(lambda document: rule.admits(spent, tuple(rule.cost(document))))
        return words + fitting

    def _too_much(self, block: BlockState, total: Total, fixed: list[Phases]) -> Problem:
        data_set = self.kept.data_set
        path = ("data_sets", data_set.name, "blocks", block.name)
        before = "" if block.total is None else f", and {total_words(data_set, block.total)} without it"
        message = (
            f"{self._found.name} does not fit: the total of the block would be {total_words(data_set, total)}{before}, and the "
            f"budget is {data_set.budget_words()}"
        )

        def fits(document: Any) -> bool:
            mapping = document.to_mapping()
            body = {
                key: value
                for key, value in mapping.items()
                if key not in ("pyaccount", "name", "privacy", "accounting")
            }
            return within(data_set, self._total([*fixed, body.get("phases") or [body]]))

        return Problem("over-budget", message + self._rounds(fits), path, self._place)

    def _rounds(self, fits: Callable[[Any], bool]) -> str:
        """Return in words how many of the rounds would fit, or what else to do."""
        found = self._found
        if found.rounds is None or found.rounds < 2 or not independent(found) or isinstance(found.source, Certificate):
            return ": ask for less, with more noise or fewer rounds"
        low, high = 0, found.rounds
        # The number is for people, so a hundredth is exact enough.
        while high - low > max(1, found.rounds // 100):
            middle = (low + high) // 2
            document = first_rounds(found, middle)
            if document is None:
                return ": ask for less, with more noise or fewer rounds"
            low, high = (middle, high) if fits(document) else (low, middle)
        if not low:
            return ": fewer rounds do not fit either, so use more noise"
        return f": {low} of its {found.rounds} rounds would fit"


def check_name(kept: KeptDataSet, filter_: str | None) -> None:
    """Raise `DomainError` if a filter is named for a data set in which all entries count in one."""
    if filter_ is not None and kept.data_set.filtered and filter_ != BUDGET:
        raise DomainError(
            f"filter = {filter_!r}: all entries of {kept.data_set.name} count in its budget: leave it out"
        )

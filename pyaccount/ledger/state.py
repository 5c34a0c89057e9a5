"""The state of a ledger, and the rules by which each event changes it.

Every command loads the few rows that it concerns into a `State`, applies its event, and stores them again; `ledger verify`
applies all events to an empty one. Both run these rules, so that a ledger whose events break a rule is noticed. No arithmetic
is repeated here: an event contains the cost of an entry as it was computed, and a filter of `pyaccount.filters` adds it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

from pyaccount.document.data_set import BUDGET, DataSet, load_data_set
from pyaccount.document.mechanisms.base import rounded_up
from pyaccount.filters import Filter, filter_of
from pyaccount.ledger.events import Event, canonical, hash_of

EntryState = Literal["reserved", "begun", "committed", "released"]
EntryCost = tuple[float, ...]


#: What is raised for plain data that lacks a key, or has a value of another type.
UNREADABLE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, AssertionError, RecursionError)


class BrokenRuleError(Exception):
    """An event that no command writes in this state."""


@dataclass(frozen=True, slots=True)
class Total:
    """The guarantee of a block: its fixed entries composed with the whole budgets of its filters. All are upper bounds.

    `value` is in the measure of the budget: ε at the δ of the budget, or the measure of a limit on attacks.
    """

    value: float
    epsilon: float
    delta: float

    def to_mapping(self) -> dict[str, float]:
        """Return the total as plain data."""
        return {"value": self.value, "epsilon": self.epsilon, "delta": self.delta}


@dataclass(frozen=True, slots=True)
class EntryPlace:
    """What an entry counts for on one block: its phases if `filter` is None (a fixed entry), or a cost in a filter.

    The cost of a fixed entry is by how much the total of the block grew when it was reserved: one number, which is not a bound,
    and which no rule uses.
    """

    block: str
    filter: str | None = None
    cost: EntryCost = ()
    #: Whether it still counts: what was not begun may be given back.
    counts: bool = True

    def to_mapping(self) -> dict[str, Any]:
        """Return the place as plain data."""
        return {"block": self.block, "filter": self.filter, "cost": list(self.cost), "counts": self.counts}

    @classmethod
    def of(cls, mapping: dict[str, Any]) -> EntryPlace:
        """Return the place of plain data."""
        return cls(mapping["block"], mapping["filter"], tuple(mapping["cost"]), mapping.get("counts", True))


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One entry: a document that somebody runs on blocks of a data set."""

    id: str
    data_set: str
    name: str
    who: str
    purpose: str
    document_sha256: str
    #: The hash of its phases, in which all blanks are filled.
    phases_sha256: str
    #: The number of rounds of a training run; None if the document is not a single run.
    rounds: int | None
    places: tuple[EntryPlace, ...]
    state: EntryState = "reserved"
    reserved: str = ""
    begun: str | None = None
    #: The hash of the first line of the record of the run that began it, which identifies the run; None if it was begun by hand.
    run: str | None = None
    ended: str | None = None
    certificate: str | None = None
    #: The ε and δ of the committed certificate, upper bounds.
    epsilon: float | None = None
    delta: float | None = None
    #: The hash of the first line of the record, which identifies the run, and that of its last line at the commit.
    record: str | None = None
    record_head: str | None = None
    #: The rounds that the record of the run contains.
    released_rounds: int | None = None

    def to_mapping(self) -> dict[str, Any]:
        """Return the entry as plain data."""
        mapping = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return mapping | {"places": [place.to_mapping() for place in self.places]}

    @classmethod
    def of(cls, mapping: dict[str, Any]) -> LedgerEntry:
        """Return the entry of plain data."""
        return cls(**mapping | {"places": tuple(map(EntryPlace.of, mapping["places"]))})


@dataclass(frozen=True, slots=True)
class Account:
    """What is spent in a filter of a block, and by how many entries."""

    spent: EntryCost
    entries: int = 0


@dataclass(frozen=True, slots=True)
class BlockState:
    """A block of a data set and its accounts."""

    data_set: str
    name: str
    accounts: dict[str, Account]
    total: Total | None
    #: Whether it takes entries.
    open: bool = True
    #: Whether an entry has begun, so that all later ones are adaptive.
    begun: bool = False
    #: The number of fixed entries that count.
    fixed: int = 0
    #: The number of the last event that changed what a fixed entry is checked against.
    version: int = 0

    def to_mapping(self) -> dict[str, Any]:
        """Return the block as plain data."""
        mapping: dict[str, Any] = {name: getattr(self, name) for name in self.__dataclass_fields__}
        mapping["total"] = None if self.total is None else self.total.to_mapping()
        mapping["accounts"] = {name: [list(one.spent), one.entries] for name, one in self.accounts.items()}
        return mapping

    @classmethod
    def of(cls, mapping: dict[str, Any]) -> BlockState:
        """Return the block of plain data."""
        total = None if mapping["total"] is None else Total(**mapping["total"])
        accounts = {name: Account(tuple(spent), entries) for name, (spent, entries) in mapping["accounts"].items()}
        return cls(**mapping | {"total": total, "accounts": accounts})


@lru_cache(maxsize=256)
def _parsed(text: str) -> tuple[DataSet, dict[str, Filter]]:
    data_set = load_data_set(json.loads(text))
    stated = list(data_set.filters)
    return data_set, {
        name: filter_of(budget, ("privacy",) if name == BUDGET else ("filters", stated.index(name)))
        for name, budget in data_set.filters.items()
    }


@dataclass(frozen=True, slots=True)
class KeptDataSet:
    """A data set of the ledger: its document, and the total of a block without entries."""

    #: The document as canonical JSON.
    text: str
    empty: Total | None

    @property
    def data_set(self) -> DataSet:
        """The document."""
        return _parsed(self.text)[0]

    @property
    def filters(self) -> dict[str, Filter]:
        """The filters, by their names."""
        return _parsed(self.text)[1]

    def to_mapping(self) -> dict[str, Any]:
        """Return the data set as plain data."""
        return {"document": json.loads(self.text), "empty": None if self.empty is None else self.empty.to_mapping()}

    @classmethod
    def of(cls, mapping: dict[str, Any]) -> KeptDataSet:
        """Return the data set of plain data."""
        return cls(canonical(mapping["document"]), None if mapping["empty"] is None else Total(**mapping["empty"]))

    @classmethod
    def new(cls, data_set: DataSet, empty: Total | None = None) -> KeptDataSet:
        """Return a data set that is entered."""
        return cls(canonical(data_set.to_mapping()), empty)


def within(data_set: DataSet, total: Total | None) -> bool:
    """Return whether a total keeps the budget of the data set; one in a single filter does so by the filter."""
    return total is None or total.value <= limit_of(data_set)


def measure_of(data_set: DataSet) -> str:
    """Return what the budget limits: `epsilon`, `rho` or `mu`, or the measure of a limit on attacks."""
    risk = data_set.privacy.risk
    words = ("advantage", "true_positive_rate", "gaussian_mu")
    return data_set.way if risk is None else next(word for word in words if getattr(risk, word) is not None)


def limit_of(data_set: DataSet) -> float:
    """Return the budget in its measure."""
    privacy = data_set.privacy
    return float(getattr(privacy.risk or privacy, measure_of(data_set)))


def _lessened(spent: EntryCost, by: EntryCost) -> EntryCost:
    """Return what is spent without a cost. The difference is rounded up, so it is still an upper bound on the other costs."""
    exact = (Fraction(one) - Fraction(other) for one, other in zip(spent, by, strict=True))
    return tuple(rounded_up(max(Fraction(0), difference)) for difference in exact)


@dataclass(slots=True)
class State:
    """Data sets, blocks and entries: all of a ledger, or those that a command concerns."""

    data_sets: dict[str, KeptDataSet] = field(default_factory=dict)
    blocks: dict[tuple[str, str], BlockState] = field(default_factory=dict)
    entries: dict[str, LedgerEntry] = field(default_factory=dict)
    #: Hashes of committed certificates, and of the first lines of the records of runs.
    certificates: set[str] = field(default_factory=set)
    records: set[str] = field(default_factory=set)

    def apply(self, event: Event) -> None:
        """Change the state by an event. Raises `BrokenRuleError` if the rules do not allow it."""
        rule = _RULES.get(event.kind)
        if rule is None:
            raise BrokenRuleError(f"there is no event {event.kind}")
        try:
            rule(self, event)
        except UNREADABLE as error:
            raise BrokenRuleError(f"the content of the event cannot be read: {error!r}") from error

    def _clock_amended(self, event: Event) -> None:
        """Change nothing: no rule depends on a time (`events`)."""
        _check(isinstance(event.content["reason"], str), "an amendment has a reason")

    def _created(self, event: Event) -> None:
        name = event.content["document"]["name"]
        _check(name not in self.data_sets, f"data set {name} exists")
        kept = KeptDataSet.of(event.content)
        _check(within(kept.data_set, kept.empty), "the filters exceed the budget")
        self.data_sets[name] = kept
        for block in kept.data_set.blocks:
            self._new_block(kept, name, block, event)

    def _new_block(self, kept: KeptDataSet, name: str, block: str, event: Event) -> None:
        _check((name, block) not in self.blocks, f"block {block} exists")
        divided = any(data_set == name for data_set, _ in self.blocks)
        _check(
            not divided or kept.data_set.undivided is None,
            "the data set has one block, since neighbours may differ in two",
        )
        accounts = {filter_: Account(rule.nothing) for filter_, rule in kept.filters.items()}
        self.blocks[name, block] = BlockState(name, block, accounts, kept.empty, version=event.sequence)

    def _budget_changed(self, event: Event) -> None:
        name = event.content["document"]["name"]
        before, kept = self.data_sets[name], KeptDataSet.of(event.content)
        _check(before.data_set.way == kept.data_set.way, "the budget is of another kind")
        for (data_set, _), block in list(self.blocks.items()):
            if data_set == name:
                total = event.content["totals"].get(block.name)
                total = None if total is None else Total(**total)
                _check(within(kept.data_set, total), f"the budget is below what is spent on {block.name}")
                for account, rule in kept.filters.items():
                    _check(
                        rule.admits(block.accounts[account].spent, rule.nothing),
                        f"the budget of {account} is below what is spent",
                    )
                self.blocks[data_set, block.name] = replace(block, total=total, version=event.sequence)
        self.data_sets[name] = kept

    def _block_added(self, event: Event) -> None:
        name = event.content["data_set"]
        self._new_block(self.data_sets[name], name, event.content["block"], event)

    def _block_retired(self, event: Event) -> None:
        key = event.content["data_set"], event.content["block"]
        _check(self.blocks[key].open, "the block was retired before")
        self.blocks[key] = replace(self.blocks[key], open=False, version=event.sequence)

    def _reserved(self, event: Event) -> None:
        content = event.content
        entry = LedgerEntry.of(
            {key: content[key] for key in LedgerEntry.__dataclass_fields__ if key in content}
            | {"reserved": event.time, "state": "reserved"}
        )
        _check(entry.id not in self.entries, f"entry {entry.id} exists")
        _check(bool(entry.places), "an entry names at least one block")
        _check(hash_of(content["phases"]) == entry.phases_sha256, "the phases have another hash than is stated")
        kept = self.data_sets[entry.data_set]
        for place in entry.places:
            block = self.blocks[entry.data_set, place.block]
            _check(block.open, f"block {block.name} is retired")
            if place.filter is None:
                _check(not block.begun, f"block {block.name} has begun, so that its entries are adaptive")
                _check(not kept.data_set.filtered, "every entry of this data set counts in its filter")
                total = Total(**content["totals"][block.name])
                _check(within(kept.data_set, total), f"the total of {block.name} exceeds the budget")
                _check(
                    kept.data_set.way != "epsilon" or total.delta == kept.data_set.privacy.delta,
                    f"the total of {block.name} is at another δ than the budget",
                )
                block = replace(block, total=total, fixed=block.fixed + 1, version=event.sequence)
            else:
                rule, account = kept.filters[place.filter], block.accounts[place.filter]
                _check(_is_cost(place.cost, rule), "the cost has another form than that of the filter")
                _check(
                    rule.admits(account.spent, place.cost), f"{place.filter} of {block.name} does not admit the entry"
                )
                block = _with_account(
                    block, place.filter, Account(rule.after(account.spent, place.cost), account.entries + 1)
                )
            self.blocks[entry.data_set, block.name] = block
        self.entries[entry.id] = entry

    def _begun(self, event: Event) -> None:
        entry = self.entries[event.content["entry"]]
        _check(entry.state == "reserved", f"the entry is {entry.state}")
        for place in entry.places:
            block = self.blocks[entry.data_set, place.block]
            _check(block.open, f"block {block.name} is retired")
            if not block.begun:
                self.blocks[entry.data_set, block.name] = replace(block, begun=True, version=event.sequence)
        run = event.content["run"]
        self.entries[entry.id] = replace(entry, state="begun", begun=event.time, run=run)

    def _committed(self, event: Event) -> None:
        content = event.content
        entry = self.entries[content["entry"]]
        _check(entry.state == "begun", f"the entry is {entry.state}")
        certificate, record = content["certificate"], content["record"]
        if record is None:
            # Without a record nothing distinguishes a second run from the first one.
            _check(certificate not in self.certificates, "this certificate was committed before")
        else:
            _check(record not in self.records, "this record was committed before")
            self.records.add(record)
        self.certificates.add(certificate)
        _check(
            record is None or entry.run in (None, record), "the record is that of another run than the one that began"
        )
        _check(
            not content["credited"] or (content["run_ended"] is True and entry.run is not None and record is not None),
            "rounds are credited to the run that began the entry, after it has ended for good",
        )
        released = content["released_rounds"]
        _check(
            released is None or entry.rounds is None or released <= entry.rounds,
            "the record has more rounds than planned",
        )
        places = []
        for place in entry.places:
            credit = content["credited"].get(place.block)
            _check(credit is None or place.filter is not None, "a fixed entry keeps its price")
            places.append(place if credit is None else self._credited(entry, place, tuple(credit)))
        self.entries[entry.id] = replace(
            entry,
            state="committed",
            ended=event.time,
            places=tuple(places),
            **{
                key: content[key]
                for key in ("certificate", "epsilon", "delta", "record", "record_head", "released_rounds")
            },
        )

    def _credited(self, entry: LedgerEntry, place: EntryPlace, cost: EntryCost) -> EntryPlace:
        assert place.filter is not None
        rule = self.data_sets[entry.data_set].filters[place.filter]
        _check(_is_cost(cost, rule), "the cost has another form than that of the filter")
        _check(all(new <= old for new, old in zip(cost, place.cost, strict=True)), "a credit would raise the price")
        block = self.blocks[entry.data_set, place.block]
        account = block.accounts[place.filter]
        spent = tuple(
            min(before, now)
            for before, now in zip(account.spent, rule.after(_lessened(account.spent, place.cost), cost), strict=True)
        )
        self.blocks[entry.data_set, block.name] = _with_account(block, place.filter, Account(spent, account.entries))
        return replace(place, cost=cost)

    def _released(self, event: Event) -> None:
        entry = self.entries[event.content["entry"]]
        _check(entry.state == "reserved", f"the entry is {entry.state}")
        places = []
        for place in entry.places:
            block = self.blocks[entry.data_set, place.block]
            # A fixed entry keeps its price once something has begun.
            counts = place.filter is None and block.begun
            if place.filter is not None:
                account = block.accounts[place.filter]
                nothing = self.data_sets[entry.data_set].filters[place.filter].nothing
                spent = _lessened(account.spent, place.cost) if account.entries > 1 else nothing
                block = _with_account(block, place.filter, Account(spent, account.entries - 1))
            elif not block.begun:
                total = Total(**event.content["totals"][block.name])
                _check(block.total is None or total.value <= block.total.value, "the total grew by a refund")
                block = replace(block, total=total, fixed=block.fixed - 1, version=event.sequence)
            self.blocks[entry.data_set, block.name] = block
            places.append(replace(place, counts=counts))
        self.entries[entry.id] = replace(entry, state="released", ended=event.time, places=tuple(places))


def _with_account(block: BlockState, name: str, account: Account) -> BlockState:
    return replace(block, accounts=block.accounts | {name: account})


def _is_cost(cost: Iterable[float], rule: Filter) -> bool:
    """Return whether a cost has the form of a filter's costs, and none of its numbers is negative or not finite."""
    cost = tuple(cost)
    return len(cost) == len(rule.nothing) and all(0.0 <= number < math.inf for number in cost)


def _check(holds: bool, rule: str) -> None:
    if not holds:
        raise BrokenRuleError(rule)


_RULES: dict[str, Callable[[State, Event], None]] = {
    "data-set-created": State._created,
    "budget-changed": State._budget_changed,
    "block-added": State._block_added,
    "block-retired": State._block_retired,
    "reserved": State._reserved,
    "begun": State._begun,
    "committed": State._committed,
    "released": State._released,
    "clock-amended": State._clock_amended,
}

"""Changes of a budget, refunds, and what is committed.

What changes and refunds need is computed from the fixed entries of blocks. A commitment has the certificate of an entry, the
record of its run, and what of its price is credited.

The record of a training run says whose run it is, and how many rounds it released. The room `training` writes records and
checks everything in them (`pyaccount verify --record`). A ledger needs the first line, the number of releases, and a whole
chain of hashes; rounds that were given up and repeated count each time.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pyaccount.certificate import Certificate
from pyaccount.document.data_set import DataSet
from pyaccount.errors import BudgetError, CertificateError, DocumentError, DomainError, LedgerError, Problem
from pyaccount.ledger.access import refuse
from pyaccount.ledger.planning import PlannedEntry, check_protected, first_rounds, independent, of_certificate
from pyaccount.ledger.state import BlockState, EntryCost, KeptDataSet, LedgerEntry, Total, within
from pyaccount.ledger.totals import Phases, spent_words, total_of, total_words

#: The largest number of bytes of a line.
_LONGEST = 1 << 20


class ReleasedRounds(NamedTuple):
    """What a record says of a run."""

    file: str
    document_sha256: str
    rounds: int
    #: The hash of the last line, which identifies the record at this length.
    head: str
    #: The hash of the first line, which identifies the run.
    run: str
    #: Whether the run was abandoned, so that it releases nothing more. One that was only closed may be continued.
    ended: bool


def read_record(path: str | os.PathLike[str]) -> ReleasedRounds:
    """Read the record of a run. Raises `LedgerError` if it is not one, and `OSError` if it cannot be read."""
    file = os.fsdecode(path)
    previous, document, rounds, run, ended = "0" * 64, None, 0, None, False
    with Path(path).open("rb") as lines:
        for number, line in enumerate(iter(lambda: lines.readline(_LONGEST + 1), b""), 1):
            if not line.endswith(b"\n"):
                if len(line) > _LONGEST:
                    raise _wrong(file, number, "is longer than any line of a record")
                # An unfinished line, which nobody has used.
                break
            try:
                event = json.loads(line)
                kind, before = event["event"], event["previous"]
            except (ValueError, KeyError, TypeError, RecursionError):
                raise _wrong(file, number, "is not a line of a record") from None
            if before != previous:
                raise _wrong(file, number, "does not follow the line before: lines were changed, lost or moved")
            if (kind == "run") != (number == 1):
                raise _wrong(file, number, "is not allowed at this place: the first line, and no other, begins the run")
            previous = hashlib.sha256(line).hexdigest()
            if kind == "run":
                document, run = event.get("document_sha256"), previous
            if ended and kind != "closed":
                raise _wrong(file, number, "follows the end of the run")
            ended = ended or kind == "abandoned"
            rounds += kind == "release"
    if run is None or not isinstance(document, str):
        raise _wrong(file, 1, "does not begin a run")
    return ReleasedRounds(file, document, rounds, previous, run, ended)


def _wrong(file: str, line: int, what: str) -> LedgerError:
    message = f"this line {what}, so that the file does not show what was released: give the record that the run wrote"
    return LedgerError([Problem("other-document", message, (), file, line)])


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
        too_much = [] if total is None or within(document, total) else [total_words(document, total)]
        for name, rule in after.filters.items():
            spent = block.accounts[name].spent
            if not rule.admits(spent, rule.nothing):
                too_much.append(spent_words(document.filters[name], spent))
        for words in too_much:
            message = (
                f"the budget would be {document.budget_words()}, and what is spent on {block.name} is {words}: a budget cannot "
                "be lower than what is spent"
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


def commitment(
    entry: LedgerEntry,
    kept: KeptDataSet,
    source: Certificate | str | os.PathLike[str],
    record: str | os.PathLike[str] | None,
    place: str,
) -> dict[str, Any]:
    """Return the content of the event of a commit. Raises `LedgerError` unless all of it is about this entry."""
    certificate = source if isinstance(source, Certificate) else Certificate.load(source)
    found = of_certificate(certificate)
    check_protected(found, kept.data_set, place)
    path = ("entries", entry.id)
    if (found.document_sha256, found.phases_sha256) != (entry.document_sha256, entry.phases_sha256):
        message = (
            f"the certificate is about {found.name} (document {found.document_sha256[:12]}), and the entry was reserved for "
            f"{entry.name} (document {entry.document_sha256[:12]}) with the values that were known then: commit "
            "the certificate of the reserved document"
        )
        raise refuse("other-document", message, path, place, value=found.document_sha256, allowed=entry.document_sha256)
    released = None if record is None else _released(entry, found, read_record(record), place)
    guarantee = certificate.data.guarantee
    return {
        "data_set": entry.data_set,
        "entry": entry.id,
        "certificate": hashlib.sha256(certificate.to_json().encode()).hexdigest(),
        "epsilon": guarantee.epsilon,
        "delta": guarantee.delta,
        "record": None if released is None else released.run,
        "record_head": None if released is None else released.head,
        "released_rounds": None if released is None else released.rounds,
        "run_ended": None if released is None else released.ended,
        "credited": {} if released is None else _credited(entry, kept, found, released),
    }


def _released(entry: LedgerEntry, found: PlannedEntry, released: ReleasedRounds, place: str) -> ReleasedRounds:
    path = ("entries", entry.id)
    if released.document_sha256 != found.document.sha256:
        message = (
            f"the record {released.file} is of a run of the document {released.document_sha256[:12]}, and the certificate "
            f"is about {found.document.sha256[:12]}: give the record of the run of this certificate"
        )
        raise refuse(
            "other-document", message, path, place, value=released.document_sha256, allowed=found.document.sha256
        )
    if entry.run is not None and released.run != entry.run:
        message = (
            f"the record {released.file} is that of the run {released.run[:12]}, and the entry was begun by the run "
            f"{entry.run[:12]}: give the record of this run"
        )
        raise refuse("other-document", message, path, place, value=released.run, allowed=entry.run)
    if entry.rounds is not None and released.rounds > entry.rounds:
        message = (
            f"the record {released.file} contains {released.rounds} rounds, and {entry.rounds} were planned: what was released "
            "has no certificate. Reserve a document with all of these rounds, and certify it"
        )
        raise refuse("ran-over", message, path, place, value=released.rounds, allowed=f"at most {entry.rounds}")
    return released


def _credited(
    entry: LedgerEntry, kept: KeptDataSet, found: PlannedEntry, released: ReleasedRounds
) -> dict[str, EntryCost]:
    """Return the lower costs of the places in filters whose costs are sums over rounds.

    Such a filter counts every round by itself, and admits the next round whatever was released before; the run is then the
    rounds that were released. A filter in (ε, δ) terms counts the run as one mechanism, so it credits nothing. Nothing is
    credited to a run that may still be continued, and to one that is not known to be the only run of the entry.
    """
    rounds = released.rounds
    if not released.ended or entry.run is None:
        return {}
    if entry.rounds is None or rounds >= entry.rounds or not independent(found):
        return {}
    credited: dict[str, EntryCost] = {}
    for place in entry.places:
        if place.filter is None or "epsilon" in kept.data_set.filters[place.filter]:
            continue
        rule = kept.filters[place.filter]
        if rounds == 0:
            credited[place.block] = rule.nothing
            continue
        first = first_rounds(found, rounds)
        try:
            cost = None if first is None else tuple(rule.cost(first))
        except (CertificateError, DocumentError, DomainError):
            cost = None
        if cost is not None and all(new <= old for new, old in zip(cost, place.cost, strict=True)):
            credited[place.block] = cost
    return credited

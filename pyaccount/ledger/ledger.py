"""`Ledger`: one budget for a data set, which many people and many runs share."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pyaccount.document.data_set import DataSet, load_data_set
from pyaccount.errors import BudgetError, Problem
from pyaccount.ledger.access import LedgerAccess, refuse
from pyaccount.ledger.events import spelled
from pyaccount.ledger.rows import LedgerRows
from pyaccount.ledger.state import BlockState, EntryPlace, KeptDataSet, LedgerEntry, Total, within

if TYPE_CHECKING:
    from pyaccount.certificate import Certificate
    from pyaccount.ledger.history import EventRecord, LedgerHistory
    from pyaccount.ledger.planning import EntrySource, PlannedEntry
    from pyaccount.ledger.reserving import Decision
    from pyaccount.ledger.status import LedgerStatus
    from pyaccount.ledger.verification import LedgerVerification

#: How often a reservation is decided again because others changed a block meanwhile, before it is decided under the lock.
TRIES = 4


class _Reservation(NamedTuple):
    """What a reservation states beside its document."""

    who: str
    purpose: str
    blocks: tuple[str, ...]
    id: str | None


class Admission(NamedTuple):
    """Whether something is entered in a ledger, or would fit."""

    #: The entry; None if it is not entered, but would fit.
    entry: LedgerEntry | None
    #: Where it counts, or would count.
    words: str


class Ledger(LedgerAccess):
    """A ledger of data sets' budgets: an SQLite file, or a PostgreSQL database for several machines (`docs/ledger.md`).

    `Ledger("budgets.db")` names the file; `Ledger("postgresql://user@host/name")` a database, with the extra `ledger-postgres`.
    Nothing is opened before a method needs it. Each method that changes the ledger is one transaction, which is on disk before
    the method returns; after an error, nothing of it is written. Threads, processes and (with PostgreSQL) machines may share a
    ledger.

    Methods raise `LedgerError` for what the ledger does not allow, `BudgetError` for what a budget does not admit, and
    `LedgerStorageError` if the ledger cannot be opened, read or written.
    """

    def create(self, data_set: str | os.PathLike[str] | Mapping[str, Any] | DataSet) -> None:
        """Enter a data set, given as its document (`kind: data-set`). The ledger is made if it does not exist.

        Raises `DocumentError` for a wrong document, `LedgerError` if the ledger has a data set of this name, and `BudgetError`
        if the filters exceed the budget.
        """
        from pyaccount.ledger.totals import total_of, total_words

        document = load_data_set(data_set)
        kept = KeptDataSet.new(document)
        total = total_of(kept, [])
        if total is not None and not within(document, total):
            message = (
                f"the filters do not fit: their whole budgets together are {total_words(document, total)}, and the budget is "
                f"{document.budget_words()}: set less aside"
            )
            raise BudgetError([Problem("over-budget", message, ("data_sets", document.name, "filters"), self.place)])
        kept = KeptDataSet.new(document, total)
        self._database.create()
        with self._writing() as rows:
            if rows.data_set(document.name) is not None:
                message = (
                    f"the ledger has a data set {document.name} already: change it, or give the new one another name"
                )
                raise refuse("not-allowed-now", message, ("data_sets", document.name), self.place)
            self._add(rows, "data-set-created", kept.to_mapping())

    def change(self, data_set: str | os.PathLike[str] | Mapping[str, Any] | DataSet) -> None:
        """Change the budget of a data set to that of another version of its document.

        Only the numbers of the budget may differ, and new blocks may be listed. Raises `BudgetError` if the budget would be
        lower than what is spent, and `LedgerError` for other differences.
        """
        from pyaccount.ledger.changing import changed_budget, check_change

        document = load_data_set(data_set)
        with self._writing() as rows:
            kept = self._kept(rows, document.name)
            check_change(kept, document, self.place)
            blocks = rows.blocks(document.name)
            content = changed_budget(
                document, blocks, lambda name: list(rows.fixed(document.name, name).values()), self.place
            )
            self._add(rows, "budget-changed", content)
            for name in document.blocks:
                if rows.block(document.name, name) is None:
                    self._add(rows, "block-added", {"data_set": document.name, "block": name})

    def add_block(self, name: str, *, data_set: str | None = None) -> None:
        """Add a block of new data to a data set. It has the whole budget, and accounts of its own."""
        with self._writing() as rows:
            kept = self._kept(rows, data_set)
            whole = kept.data_set.name
            if rows.block(whole, name) is not None:
                message = f"{whole} has a block {name} already: give the new one another name"
                raise refuse("not-allowed-now", message, ("data_sets", whole, "blocks", name), self.place)
            if (why := kept.data_set.undivided) is not None:
                raise refuse("no-valid-bound", why, ("data_sets", whole, "blocks", name), self.place)
            self._check_text(name, "the name of a block")
            self._add(rows, "block-added", {"data_set": whole, "block": name})

    def retire_block(self, name: str, *, data_set: str | None = None) -> None:
        """Retire a block, whose data is used no longer: no entry is reserved on it, and none begins."""
        with self._writing() as rows:
            kept = self._kept(rows, data_set)
            block = self._block(rows, kept, name)
            if not block.open:
                message = f"the block {name} was retired before: there is nothing to do"
                raise refuse("not-allowed-now", message, ("data_sets", kept.data_set.name, "blocks", name), self.place)
            self._add(rows, "block-retired", {"data_set": kept.data_set.name, "block": name})

    def reserve(  # noqa: PLR0913 - what is entered, and for whom
        self,
        source: EntrySource,
        *,
        who: str,
        purpose: str,
        data_set: str | None = None,
        blocks: Sequence[str] = (),
        filter: str | None = None,
        id: str | None = None,
    ) -> LedgerEntry:
        """Reserve the budget of a run before it begins, and return the entry.

        Args:
            source: The document that will be run, without blanks, or its certificate.
            who: Who runs it.
            purpose: What for.
            data_set: The name of the data set; it may be left out if the ledger has only one.
            blocks: The blocks whose data it uses. They may be left out if there is only one.
            filter: The filter that an adaptive entry shall enter; by default the first that admits it.
            id: An identifier of your own. If the same reservation was made with it before, that entry is returned, so that a
                job that is started again does not reserve twice.

        Raises `BudgetError` if the budget does not admit it, with what is left and what would fit; `LedgerError`;
        `DocumentError` for a document that cannot be counted.
        """
        from pyaccount.ledger.planning import check_protected, planned
        from pyaccount.ledger.reserving import Deciding, check_name

        asked = _Reservation(who, purpose, tuple(blocks), id)
        found = planned(source)
        self._check_text(who, "who")
        self._check_text(purpose, "purpose")
        if id is not None:
            self._check_text(id, "id")
        deciding: Deciding | None = None
        for attempt in range(TRIES + 1):
            locked = attempt == TRIES
            with self._writing() if locked else self._reading() as rows:
                kept = self._kept(rows, data_set)
                if id is not None and (earlier := rows.entry(id)) is not None:
                    return self._same(earlier, found, kept, asked)
                check_protected(found, kept.data_set, self.place)
                check_name(kept, filter)
                concerned = self._concerned(rows, kept, blocks)
                fixed = {block.name: list(rows.fixed(kept.data_set.name, block.name).values()) for block in concerned}
                if deciding is None or deciding.kept != kept:
                    # The budget may have been changed meanwhile.
                    deciding = Deciding(kept, found, filter, self.place)
                if locked:
                    decision = deciding.decide(concerned, fixed.__getitem__)
                    return self._reserve(rows, kept, found, decision, asked)
            # Totals take seconds, in which others may use the ledger.
            decision = deciding.decide(concerned, fixed.__getitem__)
            with self._writing() as rows:
                if id is not None and (earlier := rows.entry(id)) is not None:
                    return self._same(earlier, found, kept, asked)
                if rows.data_set(kept.data_set.name) == kept and self._still(rows, kept, decision, deciding.admitted):
                    return self._reserve(rows, kept, found, decision, asked)
        raise AssertionError("the last attempt returns")

    def begin(self, entry: LedgerEntry | str, *, run: str | None = None) -> LedgerEntry:
        """Begin a reserved entry, before its first release. From now on, what is reserved on its blocks is adaptive.

        `run` identifies the run that begins it: the hash of the first line of its record. No other run can spend the entry then,
        and the same run may begin it again, when it is continued. Without it, no rounds are credited later.
        """
        with self._writing() as rows:
            found = self._entry(rows, entry)
            if run is not None:
                if found.state == "begun" and found.run == run:
                    return found
                if found.state == "begun":
                    message = (
                        f"{found.id} was begun "
                        + ("by hand" if found.run is None else f"by the run {found.run[:12]}")
                        + f", and this is the run {run[:12]}: an entry is the price of one run, so reserve another one"
                    )
                    raise refuse("not-allowed-now", message, ("entries", found.id), self.place, value=run)
            if found.state != "reserved":
                raise self._wrong_state(found, "begun", "reserve again for another run")
            for place in found.places:
                block = rows.block(found.data_set, place.block)
                if block is not None and not block.open:
                    message = f"{found.id} cannot begin: its block {place.block} is retired: release the entry"
                    raise refuse("not-allowed-now", message, ("entries", found.id), self.place)
            self._add(rows, "begun", {"data_set": found.data_set, "entry": found.id, "run": run})
            return rows.state.entries[found.id]

    def commit(
        self,
        entry: LedgerEntry | str,
        certificate: Certificate | str | os.PathLike[str],
        *,
        record: str | os.PathLike[str] | None = None,
    ) -> LedgerEntry:
        """Commit an entry that has begun: its certificate, and the record of its run, where there is one.

        In a filter that adds the costs of rounds, the rounds of the plan that the record does not contain are credited, if rounds
        are independent of one another, the run began the entry itself, and it was abandoned, so that it cannot be continued. A
        fixed entry keeps its price. Raises `LedgerError` for a certificate or a record of
        another document, one that was committed before, and a record with more rounds than planned.
        """
        from pyaccount.ledger.changing import commitment

        with self._reading() as rows:
            found = self._entry(rows, entry)
            kept = self._kept(rows, found.data_set)
        content = commitment(found, kept, certificate, record, self.place)
        with self._writing() as rows:
            found = self._entry(rows, found.id)
            if found.state != "begun":
                remedy = "begin it before its first release" if found.state == "reserved" else "there is nothing to do"
                raise self._wrong_state(found, "committed", remedy)
            earlier = rows.committed(content["certificate"], content["record"])
            if earlier is not None:
                what = "certificate" if content["record"] is None else "record"
                message = f"this {what} was committed with the entry {earlier.id}, and each run is committed once: " + (
                    "give the record of the run, if there were two"
                    if what == "certificate"
                    else "give that of this entry's run"
                )
                raise refuse("certificate-reused", message, ("entries", found.id), self.place, value=content[what])
            rows.data_set(found.data_set)
            for place in found.places:
                rows.block(found.data_set, place.block)
            self._add(rows, "committed", content)
            return rows.state.entries[found.id]

    def release(self, entry: LedgerEntry | str) -> LedgerEntry:
        """Give back a reservation that was not begun.

        Where nothing on a block has begun, and in filters, it counts no longer. Later a fixed entry keeps its price: its plan
        was fixed, and not to run it may have been decided by looking at results.
        """
        from pyaccount.ledger.changing import refunds

        for attempt in range(TRIES + 1):
            locked = attempt == TRIES
            with self._writing() if locked else self._reading() as rows:
                found, kept, blocks, fixed = self._releasing(rows, entry)
                if locked:
                    return self._release(rows, found, refunds(found, kept, blocks, fixed))
            totals = refunds(found, kept, blocks, fixed)
            with self._writing() as rows:
                now, kept_now, blocks_now, _ = self._releasing(rows, entry)
                unchanged = [block.version for block in blocks] == [block.version for block in blocks_now]
                if now == found and kept_now == kept and unchanged:
                    return self._release(rows, found, totals)
        raise AssertionError("the last attempt returns")

    def amend_clock(self, *, reason: str) -> EventRecord:
        """Set the time of the ledger back to that of this machine, and return the event that says so.

        An event that was written by a clock of the future stops everybody whose clock is right. After this event, the ledger goes
        on from the time of this machine. Nothing else changes: no charge, no entry and no block depends on the time of an event
        (`pyaccount.ledger.events` proves it). Everybody who reads the ledger sees the event with its reason. Raises `LedgerError`
        if the clock of this machine is not behind the last event, so that nothing is to be amended.
        """
        from pyaccount.ledger.history import record_of

        self._check_text(reason, "reason")
        with self._writing() as rows:
            now, last = spelled(self._clock()), rows.head.time
            if not self._is_behind(rows, now):
                message = (
                    f"the clock of this machine says {now}, and the last event of the ledger is of {last or 'no time'}, which "
                    "the next event may follow: there is nothing to amend"
                )
                raise refuse("not-allowed-now", message, (), self.place)
            self._write(rows, "clock-amended", now, {"amended_from": last, "reason": reason})
            return record_of(rows.events("")[-1])

    def admission(self, source: EntrySource, *, data_set: str | None = None, blocks: Sequence[str] = ()) -> Admission:
        """Return whether a certificate or a document is entered already, or would fit if it were reserved now.

        An entry counts if it is on all of `blocks`. Without `blocks`, every entry counts, and what is not entered would have to
        fit into all open blocks that the ledger has. A ledger cannot know whether an entry is that of this run or of an earlier
        run of the same document. Nothing is written. Raises `BudgetError` if it would not fit, and the errors of `reserve`.
        """
        from pyaccount.ledger.planning import check_protected, planned
        from pyaccount.ledger.reserving import Deciding

        found = planned(source)
        with self._reading() as rows:
            kept = self._kept(rows, data_set)
            check_protected(found, kept.data_set, self.place)
            for entry in reversed(rows.entries_of(kept.data_set.name, found.document_sha256)):
                covers = {place.block for place in entry.places} >= set(blocks)
                if entry.state != "released" and covers and entry.phases_sha256 == found.phases_sha256:
                    return Admission(entry, f"{entry.id} {entry.state}")
            if not blocks:
                blocks = [block.name for block in rows.blocks(kept.data_set.name) if block.open]
            concerned = self._concerned(rows, kept, blocks)
            fixed = {block.name: list(rows.fixed(kept.data_set.name, block.name).values()) for block in concerned}
        decision = Deciding(kept, found, None, self.place).decide(concerned, fixed.__getitem__)
        where = [f"{place.block}: {place.filter or 'fixed'}" for place in decision.places]
        return Admission(None, ", ".join(where))

    def data_set(self, name: str | None = None) -> DataSet:
        """Return a data set of the ledger as its document, by default the only one. Raises `LedgerError` if there is none."""
        with self._reading() as rows:
            return self._kept(rows, name).data_set

    def entry(self, id: str) -> LedgerEntry:
        """Return an entry by its identifier. Raises `LedgerError` if there is none."""
        with self._reading() as rows:
            return self._entry(rows, id)

    def entries_of(self, source: EntrySource, *, data_set: str | None = None) -> list[LedgerEntry]:
        """Return the entries of a document or of its certificate, in the order in which they were reserved.

        Raises the errors of `reserve` for a source that cannot be entered, and `LedgerError` for an unknown data set.
        """
        from pyaccount.ledger.planning import planned

        found = planned(source)
        with self._reading() as rows:
            entries = rows.entries_of(self._kept(rows, data_set).data_set.name, found.document_sha256)
        return [entry for entry in entries if entry.phases_sha256 == found.phases_sha256]

    def status(self, data_set: str | None = None) -> LedgerStatus:
        """Return what is spent, by whom, and what is left, for one data set or for all of the ledger."""
        from pyaccount.ledger.status import status_of

        with self._reading() as rows:
            names = rows.data_sets() if data_set is None else [self._kept(rows, data_set).data_set.name]
            return status_of(self.place, rows, names, self._clock())

    def history(self, data_set: str | None = None) -> LedgerHistory:
        """Return all events of one data set or of all of the ledger, in order."""
        from pyaccount.ledger.history import history_of

        with self._reading() as rows:
            name = None if data_set is None else self._kept(rows, data_set).data_set.name
            return history_of(self.place, rows, name)

    def verify(self, *, recompute: bool = False, expected_head: str | None = None) -> LedgerVerification:
        """Check the chain of hashes, apply all events again by the rules, and compare the state.

        `recompute` also computes the total of each block again. `expected_head` is a hash that was noted elsewhere: the ledger
        must contain that event, which shows that its end was not cut off.
        """
        from pyaccount.ledger.verification import verification_of

        with self._reading() as rows:
            return verification_of(self.place, rows, recompute=recompute, expected_head=expected_head)

    # What follows is not called by users.

    def _reserve(
        self, rows: LedgerRows, kept: KeptDataSet, found: PlannedEntry, decision: Decision, asked: _Reservation
    ) -> LedgerEntry:
        name = kept.data_set.name
        for place in decision.places:
            if rows.block(name, place.block) is None:
                self._add(rows, "block-added", {"data_set": name, "block": place.block})
        identity = asked.id or f"e{rows.head.sequence + 1}"
        if rows.entry(identity) is not None:
            identity = f"e{rows.head.sequence + 1}-{hashlib.sha256(rows.head.hash.encode()).hexdigest()[:6]}"
        content = {
            "data_set": name,
            "id": identity,
            "name": found.name,
            "who": asked.who,
            "purpose": asked.purpose,
            "document_sha256": found.document_sha256,
            "phases_sha256": found.phases_sha256,
            "certificate_reserved": found.certificate_sha256,
            "phases": list(found.phases),
            "rounds": found.rounds,
            "places": [place.to_mapping() for place in decision.places],
            "totals": {block: total.to_mapping() for block, total in decision.totals.items()},
        }
        self._add(rows, "reserved", content)
        return rows.state.entries[identity]

    def _still(
        self,
        rows: LedgerRows,
        kept: KeptDataSet,
        decision: Decision,
        admitted: Callable[[EntryPlace, BlockState], bool],
    ) -> bool:
        """Return whether a decision still holds: fixed entries at the version they were decided at, others if still admitted."""
        name = kept.data_set.name
        for place in decision.places:
            block = rows.block(name, place.block) or self._not_yet(kept, place.block)
            if not block.open:
                return False
            if place.filter is None:
                if block.version != decision.versions[place.block]:
                    return False
            elif not admitted(place, block):
                return False
        return True

    def _same(self, earlier: LedgerEntry, found: PlannedEntry, kept: KeptDataSet, asked: _Reservation) -> LedgerEntry:
        """Return the entry with this id if it is the same reservation."""
        stated = (earlier.data_set, earlier.phases_sha256, earlier.who, earlier.purpose)
        same_blocks = not asked.blocks or sorted(asked.blocks) == sorted(place.block for place in earlier.places)
        if stated != (kept.data_set.name, found.phases_sha256, asked.who, asked.purpose) or not same_blocks:
            message = (
                f"the entry {earlier.id} is another reservation ({earlier.name}, by {earlier.who}, for {earlier.purpose}): give "
                f"another id, or go on with this entry, by name: TrainingRun(…, entry={earlier.id!r}) continues its run, also as "
                "another user"
            )
            raise refuse("not-allowed-now", message, ("entries", earlier.id), self.place)
        return earlier

    def _releasing(
        self, rows: LedgerRows, entry: LedgerEntry | str
    ) -> tuple[LedgerEntry, KeptDataSet, list[BlockState], dict[str, dict[str, Any]]]:
        found = self._entry(rows, entry)
        if found.state != "reserved":
            remedy = "commit it" if found.state == "begun" else "there is nothing to do"
            raise self._wrong_state(found, "released", remedy)
        kept = self._kept(rows, found.data_set)
        blocks = [self._block(rows, kept, place.block) for place in found.places]
        return found, kept, blocks, {block.name: dict(rows.fixed(found.data_set, block.name)) for block in blocks}

    def _release(self, rows: LedgerRows, found: LedgerEntry, totals: dict[str, Total]) -> LedgerEntry:
        content = {
            "data_set": found.data_set,
            "entry": found.id,
            "totals": {block: total.to_mapping() for block, total in totals.items()},
        }
        self._add(rows, "released", content)
        return rows.state.entries[found.id]

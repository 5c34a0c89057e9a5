"""The rows of a ledger: loads those that a command concerns into a `State`, and stores its events with what they changed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn, TypeVar

from pyaccount.errors import LedgerError, LedgerStorageError, Path, Problem
from pyaccount.ledger.contents import (
    block_of,
    counts_in,
    entry_of,
    event_of,
    has_shape,
    head_of,
    kept_of,
    parsed,
    phases_of,
)
from pyaccount.ledger.database import FORMAT, LedgerConnection
from pyaccount.ledger.events import Event, Head, canonical, disorder, subject
from pyaccount.ledger.state import (
    UNREADABLE,
    BlockState,
    BrokenRuleError,
    EntryCost,
    KeptDataSet,
    LedgerEntry,
    State,
)

_UPSERTS = {
    "data_sets": "INSERT INTO data_sets (name, content) VALUES (:name, :content) "
    "ON CONFLICT (name) DO UPDATE SET content = excluded.content",
    "blocks": "INSERT INTO blocks (data_set, name, content) VALUES (:data_set, :name, :content) "
    "ON CONFLICT (data_set, name) DO UPDATE SET content = excluded.content",
    "entries": "INSERT INTO entries (id, data_set, sequence, document, certificate, record, content) "
    "VALUES (:id, :data_set, :sequence, :document, :certificate, :record, :content) "
    "ON CONFLICT (id) DO UPDATE SET certificate = excluded.certificate, record = excluded.record, content = excluded.content",
    "places": "INSERT INTO places (entry, data_set, block, filter, counts, sequence) "
    "VALUES (:entry, :data_set, :block, :filter, :counts, :sequence) "
    "ON CONFLICT (entry, block) DO UPDATE SET counts = excluded.counts",
}
_EVENT = (
    "INSERT INTO events (sequence, time, kind, data_set, content, previous, hash) "
    "VALUES (:sequence, :time, :kind, :data_set, :content, :previous, :hash)"
)

Made = TypeVar("Made")


class LedgerRows:
    """The rows of one transaction. A row that was read is in `state`, where events change it.

    What is read is checked: its types, and that it belongs to the row, data set and filters that it names. Methods raise
    `LedgerError` (`ledger-damaged`), with the row as the path, for a row that somebody changed into something else.
    """

    def __init__(self, connection: LedgerConnection, place: str) -> None:
        self.connection = connection
        self.place = place
        self.state = State()
        found = connection.rows("SELECT format, sequence, time, hash FROM head WHERE one = 1")
        if not found:
            raise LedgerStorageError(f"{place}: the ledger has no head, so it is damaged: restore it from a backup")
        (version, sequence, time, hash_), *_ = found
        if version != FORMAT:
            raise LedgerStorageError(
                f"{place}: is a ledger of format {version}, and this version of pyaccount has format {FORMAT}, so that it could "
                "misread it: use the version of pyaccount that made it"
            )
        self._stated_head = partial(head_of, sequence, time, hash_)
        self._head: Head | None = None

    @property
    def head(self) -> Head:
        """The end of the chain. It is checked when it is used first, so that `verify` can report a wrong one."""
        if self._head is None:
            self._head = self.made(self._stated_head, ("head",))
        return self._head

    def data_set(self, name: str) -> KeptDataSet | None:
        """Return a data set; None if there is none of this name."""
        if name not in self.state.data_sets:
            for (content,) in self.connection.rows("SELECT content FROM data_sets WHERE name = :name", {"name": name}):
                self.state.data_sets[name] = self._read(partial(kept_of, name), content, ("data_sets", name))
        return self.state.data_sets.get(name)

    def data_sets(self) -> list[str]:
        """Return the names of all data sets, in order."""
        return self._names("SELECT name FROM data_sets ORDER BY name", {}, ("data_sets",))

    def block(self, data_set: str, name: str) -> BlockState | None:
        """Return a block of a data set; None if there is none of this name."""
        if (data_set, name) not in self.state.blocks:
            values = {"data_set": data_set, "name": name}
            query = "SELECT content FROM blocks WHERE data_set = :data_set AND name = :name"
            for (content,) in self.connection.rows(query, values):
                path = ("data_sets", data_set, "blocks", name)
                made = partial(block_of, data_set, name, self._filters(data_set, path))
                self.state.blocks[data_set, name] = self._read(made, content, path)
        return self.state.blocks.get((data_set, name))

    def blocks(self, data_set: str) -> list[BlockState]:
        """Return the blocks of a data set, in the order of their names."""
        query = "SELECT name FROM blocks WHERE data_set = :data_set ORDER BY name"
        names = self._names(query, {"data_set": data_set}, ("data_sets", data_set, "blocks"))
        return [block for name in names if (block := self.block(data_set, name)) is not None]

    def entry(self, identity: str) -> LedgerEntry | None:
        """Return an entry; None if there is none with this id."""
        if identity not in self.state.entries:
            query = "SELECT id, content FROM entries WHERE id = :id"
            for entry in self._entries(query, {"id": identity}):
                self.state.entries[identity] = entry
        return self.state.entries.get(identity)

    def entries(self, data_set: str) -> list[LedgerEntry]:
        """Return the entries of a data set, in the order in which they were reserved."""
        query = "SELECT id, content FROM entries WHERE data_set = :data_set ORDER BY sequence"
        return self._entries(query, {"data_set": data_set})

    def entries_of(self, data_set: str, document: str) -> list[LedgerEntry]:
        """Return the entries of a data set that are about a document, by its hash."""
        query = "SELECT id, content FROM entries WHERE data_set = :data_set AND document = :document ORDER BY sequence"
        return self._entries(query, {"data_set": data_set, "document": document})

    def committed(self, certificate: str, record: str | None) -> LedgerEntry | None:
        """Return the entry of an earlier commit of this record, or, without a record, of this certificate; None if none is."""
        column, value = ("certificate", certificate) if record is None else ("record", record)
        for earlier in self._entries(f"SELECT id, content FROM entries WHERE {column} = :value", {"value": value}):
            if earlier.certificate is not None:
                self.state.certificates.add(earlier.certificate)
            if earlier.record is not None:
                self.state.records.add(earlier.record)
            return earlier
        return None

    def keys(self) -> set[tuple[str, str, str, str | None, str | None]]:
        """Return the columns by which entries are looked up."""
        return {
            tuple(row)
            for row in self.connection.rows("SELECT id, data_set, document, certificate, record FROM entries")
        }

    def places(self) -> set[tuple[str, str, str, str | None, int]]:
        """Return the columns by which the fixed entries of a block are found: entry, data set, block, filter, and what counts."""
        query = "SELECT entry, data_set, block, filter, counts FROM places"
        return {tuple(row) for row in self.connection.rows(query)}

    def phases(self) -> set[str]:
        """Return which entries have phases. Raises `LedgerError` if those of one are not what was reserved."""
        rows = self.connection.rows("SELECT entry, content FROM phases ORDER BY entry")
        return {identity for identity, content in rows if self._phases_of(identity, content)}

    def fixed(self, data_set: str, block: str) -> dict[str, list[dict[str, Any]]]:
        """Return the phases of the fixed entries of a block that count, by entry, in the order of their reservation.

        They are as many as the block says, and those that were reserved: what is left out here would be left out of the total.
        """
        query = (
            "SELECT places.entry, phases.content FROM places JOIN phases ON phases.entry = places.entry "
            "WHERE places.data_set = :data_set AND places.block = :block AND places.filter IS NULL AND places.counts = 1 "
            "ORDER BY places.sequence"
        )
        found: dict[str, list[dict[str, Any]]] = {}
        for identity, content in self.connection.rows(query, {"data_set": data_set, "block": block}):
            found[identity] = self._phases_of(identity, content)
        stated = self.block(data_set, block)
        if len(found) != (0 if stated is None else stated.fixed):
            count = 0 if stated is None else stated.fixed
            message = f"{len(found)} fixed entries of this block are found, and {count} were counted"
            self._damaged(("data_sets", data_set, "blocks", block), message)
        return found

    def _phases_of(self, identity: Any, content: object) -> list[dict[str, Any]]:
        path = ("entries", identity if isinstance(identity, str) else repr(identity), "phases")
        entry = self.entry(identity)
        if entry is None:
            self._damaged(path, "the row of this entry is missing")
        return self._read(partial(phases_of, entry), content, path)

    def events(self, data_set: str | None = None) -> list[Event]:
        """Return all events, in order; or those of a data set, with those that are about the whole ledger."""
        where = "" if data_set is None else " WHERE data_set = :data_set OR data_set = ''"
        query = f"SELECT sequence, time, kind, data_set, content, previous, hash FROM events{where} ORDER BY sequence"
        values = {} if data_set is None else {"data_set": data_set}
        events = []
        for sequence, time, kind, of, content, previous, hash_ in self.connection.rows(query, values):
            path = ("events", sequence if isinstance(sequence, int) else repr(sequence))
            made = partial(event_of, Event(sequence, time, kind, {}, previous, hash_), of)
            events.append(self._read(made, content, path))
        return events

    def amendments(self) -> list[Event]:
        """Return the events that set the clock back, in order."""
        return [event for event in self.events("") if event.kind == "clock-amended"]

    def _entries(self, query: str, values: dict[str, object]) -> list[LedgerEntry]:
        """Return the entries that a query of their identifiers and contents finds."""
        found = []
        for identity, content in self.connection.rows(query, values):
            path = ("entries", identity if isinstance(identity, str) else repr(identity))
            entry = self._read(partial(entry_of, identity), content, path)
            filters = self._filters(entry.data_set, path)
            if not all(counts_in(place, filters) for place in entry.places):
                self._damaged(path, "this entry counts in a filter that its data set does not have")
            found.append(entry)
        return found

    def _filters(self, data_set: str, path: Path) -> dict[str, EntryCost]:
        """Return the filters of the data set of a row, each with the cost of nothing."""
        kept = self.data_set(data_set)
        if kept is None:
            self._damaged(path, "the data set of this row is missing")
        return {name: rule.nothing for name, rule in kept.filters.items()}

    def _names(self, query: str, values: dict[str, object], path: Path) -> list[str]:
        names = [name for (name,) in self.connection.rows(query, values)]
        if not has_shape(tuple(names), tuple[str, ...]):
            self._damaged(path, "the name of a row is not a text")
        return names

    def _read(self, made: Callable[[Any], Made], content: object, path: Path) -> Made:
        """Return an object from the text of a row. Raises `LedgerError` if the row cannot be read."""
        return self.made(lambda: made(parsed(content)), path)

    def made(self, made: Callable[[], Made], path: Path) -> Made:
        """Return what is made of a row. Raises `LedgerError` with its path for any of `UNREADABLE`."""
        try:
            return made()
        except UNREADABLE as error:
            self._damaged(path, f"this row was changed, and cannot be read ({type(error).__name__})", error)

    def _damaged(self, path: Path, what: str, error: Exception | None = None) -> NoReturn:
        problem = Problem("ledger-damaged", f"{what}: restore the ledger from a backup", path, self.place)
        raise LedgerError([problem]) from error

    def add(self, kind: str, time: str, content: dict[str, Any]) -> Event:
        """Add an event to the chain, and store what it changes. Raises `BrokenRuleError` if the rules do not allow it."""
        if (wrong := disorder(self.head, time, kind, content)) is not None:
            raise BrokenRuleError(wrong)
        event = Event.after(self.head, time, kind, content)
        before = (dict(self.state.data_sets), dict(self.state.blocks), dict(self.state.entries))
        self.state.apply(event)
        self._head = Head.of(event)
        self.connection.run(_EVENT, event._asdict() | {"content": canonical(content), "data_set": subject(content)})
        self.connection.run(
            "UPDATE head SET sequence = :sequence, time = :time, hash = :hash WHERE one = 1",
            {"sequence": event.sequence, "time": event.time, "hash": event.hash},
        )
        self._store(event, *before)
        return event

    def _store(
        self,
        event: Event,
        data_sets: dict[str, KeptDataSet],
        blocks: dict[tuple[str, str], BlockState],
        entries: dict[str, LedgerEntry],
    ) -> None:
        for name, kept in self.state.data_sets.items():
            if kept is not data_sets.get(name):
                self.connection.run(_UPSERTS["data_sets"], {"name": name, "content": canonical(kept.to_mapping())})
        for (data_set, name), block in self.state.blocks.items():
            if block is not blocks.get((data_set, name)):
                values = {"data_set": data_set, "name": name, "content": canonical(block.to_mapping())}
                self.connection.run(_UPSERTS["blocks"], values)
        for identity, entry in self.state.entries.items():
            if entry is not (before := entries.get(identity)):
                self._store_entry(event, entry, before)

    def _store_entry(self, event: Event, entry: LedgerEntry, before: LedgerEntry | None) -> None:
        values: dict[str, object] = {
            "id": entry.id,
            "data_set": entry.data_set,
            "sequence": event.sequence,
            "document": entry.document_sha256,
            "certificate": entry.certificate,
            "record": entry.record,
            "content": canonical(entry.to_mapping()),
        }
        self.connection.run(_UPSERTS["entries"], values)
        if before is None:
            phases = {"entry": entry.id, "content": canonical(event.content["phases"])}
            self.connection.run("INSERT INTO phases (entry, content) VALUES (:entry, :content)", phases)
        for place in entry.places:
            if before is not None and place in before.places:
                continue
            values = {
                "entry": entry.id,
                "data_set": entry.data_set,
                "block": place.block,
                "filter": place.filter,
                "counts": int(place.counts),
                "sequence": event.sequence,
            }
            self.connection.run(_UPSERTS["places"], values)

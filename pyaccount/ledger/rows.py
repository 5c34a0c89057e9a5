"""The rows of a ledger: loads those that a command concerns into a `State`, and stores its events with what they changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

from pyaccount.errors import DocumentError, LedgerError, LedgerStorageError, Path, Problem
from pyaccount.ledger.database import FORMAT, LedgerConnection
from pyaccount.ledger.events import Event, Head, canonical
from pyaccount.ledger.state import BlockState, KeptDataSet, LedgerEntry, State

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
    """The rows of one transaction. A row that was read is in `state`, where events change it."""

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
        self.head = Head(sequence, time, hash_)

    def data_set(self, name: str) -> KeptDataSet | None:
        """Return a data set; None if there is none of this name."""
        if name not in self.state.data_sets:
            for (content,) in self.connection.rows("SELECT content FROM data_sets WHERE name = :name", {"name": name}):
                self.state.data_sets[name] = self._read(KeptDataSet.of, content, ("data_sets", name))
        return self.state.data_sets.get(name)

    def data_sets(self) -> list[str]:
        """Return the names of all data sets, in order."""
        return [name for (name,) in self.connection.rows("SELECT name FROM data_sets ORDER BY name")]

    def block(self, data_set: str, name: str) -> BlockState | None:
        """Return a block of a data set; None if there is none of this name."""
        if (data_set, name) not in self.state.blocks:
            values = {"data_set": data_set, "name": name}
            query = "SELECT content FROM blocks WHERE data_set = :data_set AND name = :name"
            for (content,) in self.connection.rows(query, values):
                self.state.blocks[data_set, name] = self._read(
                    BlockState.of, content, ("data_sets", data_set, "blocks", name)
                )
        return self.state.blocks.get((data_set, name))

    def blocks(self, data_set: str) -> list[BlockState]:
        """Return the blocks of a data set, in the order of their names."""
        query = "SELECT name FROM blocks WHERE data_set = :data_set ORDER BY name"
        names = [name for (name,) in self.connection.rows(query, {"data_set": data_set})]
        return [block for name in names if (block := self.block(data_set, name)) is not None]

    def entry(self, identity: str) -> LedgerEntry | None:
        """Return an entry; None if there is none with this id."""
        if identity not in self.state.entries:
            for (content,) in self.connection.rows("SELECT content FROM entries WHERE id = :id", {"id": identity}):
                self.state.entries[identity] = self._read(LedgerEntry.of, content, ("entries", identity))
        return self.state.entries.get(identity)

    def entries(self, data_set: str) -> list[LedgerEntry]:
        """Return the entries of a data set, in the order in which they were reserved."""
        query = "SELECT id, content FROM entries WHERE data_set = :data_set ORDER BY sequence"
        rows = self.connection.rows(query, {"data_set": data_set})
        return [self._read(LedgerEntry.of, content, ("entries", identity)) for identity, content in rows]

    def entries_of(self, data_set: str, document: str) -> list[LedgerEntry]:
        """Return the entries of a data set that are about a document, by its hash."""
        query = "SELECT id, content FROM entries WHERE data_set = :data_set AND document = :document ORDER BY sequence"
        rows = self.connection.rows(query, {"data_set": data_set, "document": document})
        return [self._read(LedgerEntry.of, content, ("entries", identity)) for identity, content in rows]

    def committed(self, certificate: str, record: str | None) -> LedgerEntry | None:
        """Return the entry of an earlier commit of this record, or, without a record, of this certificate; None if none is."""
        column, value = ("certificate", certificate) if record is None else ("record", record)
        for (content,) in self.connection.rows(
            f"SELECT content FROM entries WHERE {column} = :value", {"value": value}
        ):
            earlier = LedgerEntry.of(json.loads(content))
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

    def fixed(self, data_set: str, block: str) -> dict[str, list[dict[str, Any]]]:
        """Return the phases of the fixed entries of a block that count, by entry, in the order of their reservation."""
        query = (
            "SELECT places.entry, phases.content FROM places JOIN phases ON phases.entry = places.entry "
            "WHERE places.data_set = :data_set AND places.block = :block AND places.filter IS NULL AND places.counts = 1 "
            "ORDER BY places.sequence"
        )
        rows = self.connection.rows(query, {"data_set": data_set, "block": block})
        return {entry: self._read(list, content, ("entries", entry)) for entry, content in rows}

    def events(self, data_set: str | None = None) -> list[Event]:
        """Return all events, or those of a data set, in order."""
        where = "" if data_set is None else " WHERE data_set = :data_set"
        query = f"SELECT sequence, time, kind, content, previous, hash FROM events{where} ORDER BY sequence"
        values = {} if data_set is None else {"data_set": data_set}
        return [
            Event(sequence, time, kind, self._read(dict, content, ("events", sequence)), previous, hash_)
            for sequence, time, kind, content, previous, hash_ in self.connection.rows(query, values)
        ]

    def _read(self, made: Callable[[Any], Made], content: str, path: Path) -> Made:
        """Return an object from the text of a row. Raises `LedgerError` if the row cannot be read."""
        try:
            return made(json.loads(content))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, DocumentError) as error:
            message = (
                f"this row was changed, and cannot be read ({type(error).__name__}): restore the ledger from a backup"
            )
            raise LedgerError([Problem("ledger-damaged", message, path, self.place)]) from error

    def add(self, kind: str, time: str, content: dict[str, Any]) -> Event:
        """Add an event to the chain, and store what it changes. Raises `BrokenRuleError` if the rules do not allow it."""
        event = Event.after(self.head, time, kind, content)
        before = (dict(self.state.data_sets), dict(self.state.blocks), dict(self.state.entries))
        self.state.apply(event)
        self.head = Head.of(event)
        data_set = content.get("data_set") or content["document"]["name"]
        self.connection.run(_EVENT, event._asdict() | {"content": canonical(content), "data_set": data_set})
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

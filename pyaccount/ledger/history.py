"""The events of a ledger as a list that people and programs read, and an entry as commands print it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from pyaccount.ledger.events import subject
from pyaccount.ledger.state import LedgerEntry
from pyaccount.pages.page import Block, Literally, Page, PageSection, PageTable, Paragraph
from pyaccount.pages.readable import Readable
from pyaccount.records.fields import NonNegative, OutputRecord, Probability, Record

if TYPE_CHECKING:
    from pyaccount.ledger.events import Event
    from pyaccount.ledger.rows import LedgerRows


class EventRecord(Record):
    """One event."""

    sequence: int = Field(description="Its number in the ledger, counted from 1.")
    time: str = Field(description="When it was written, in UTC.")
    event: Literal[
        "data-set-created",
        "budget-changed",
        "block-added",
        "block-retired",
        "reserved",
        "begun",
        "committed",
        "released",
        "clock-amended",
    ] = Field(description="What happened.")
    data_set: str | None = Field(description="The data set; null for an event that is about the whole ledger.")
    entry: str | None = Field(description="The identifier of the entry; null if it is not about one.")
    content: dict[str, Any] = Field(description="Everything that the event says, which its hash confirms.")
    previous: str = Field(description="The hash of the event before.")
    hash: str = Field(description="The SHA-256 of the canonical JSON of [sequence, time, event, content, previous].")


class LedgerHistory(OutputRecord, Readable):
    """The events of a ledger, in order."""

    pyaccount: Literal[1] = Field(description="The version of this format.")
    kind: Literal["ledger-history"] = Field(description="The kind of this JSON: the history of a ledger.")
    ledger: str = Field(description="The file or the address of the ledger.")
    events: list[EventRecord] = Field(description="The events.")

    def page(self) -> Page:
        """Return the history as a page."""
        rows = tuple(
            (
                (str(event.sequence),),
                (event.time[:19].replace("T", " "),),
                (event.event,),
                (event.data_set or "",),
                (event.entry or "",),
                (_words(event.event, event.content),),
                (Literally(event.hash[:12]),),
            )
            for event in self.events
        )
        headings = ("no.", "time (UTC)", "event", "data set", "entry", "what", "hash")
        table = PageTable((), headings, rows, words=headings)
        blocks: tuple[Block, ...] = (table,) if rows else (Paragraph(("The ledger has no events.",)),)
        return Page("History of a ledger", self.ledger, (PageSection("events", "Events", blocks),))


def history_of(place: str, rows: LedgerRows, data_set: str | None) -> LedgerHistory:
    """Return the events of a data set, with those that are about the whole ledger; or all events."""
    events = [rows.made(partial(_readable, event), ("events", event.sequence)) for event in rows.events(data_set)]
    return LedgerHistory(pyaccount=1, kind="ledger-history", ledger=place, events=events)


def _readable(event: Event) -> EventRecord:
    """Return an event as data, whose content can be worded."""
    _words(event.kind, event.content)
    return record_of(event)


def record_of(event: Event) -> EventRecord:
    """Return an event as data."""
    content = event.content
    return EventRecord.model_validate(
        {
            "sequence": event.sequence,
            "time": event.time,
            "event": event.kind,
            "data_set": subject(content) or None,
            "entry": content.get("entry") or content.get("id"),
            "content": content,
            "previous": event.previous,
            "hash": event.hash,
        }
    )


def _words(kind: str, content: dict[str, Any]) -> str:
    match kind:
        case "reserved":
            where = ", ".join(f"{place['block']} ({place['filter'] or 'fixed'})" for place in content["places"])
            return f"{content['name']}, by {content['who']} for {content['purpose']}, on {where}"
        case "committed":
            rounds = content["released_rounds"]
            return f"certificate {content['certificate'][:12]}" + (
                "" if rounds is None else f", {rounds} rounds recorded"
            )
        case "block-added" | "block-retired":
            return str(content["block"])
        case "clock-amended":
            return f"the time was set back from {content['amended_from']}: {content['reason']}"
    return ""


class PlaceRecord(Record):
    """A block of an entry."""

    block: str = Field(description="The name of the block.")
    filter: str | None = Field(description="The filter in which the entry counts; null if it is fixed.")
    cost: list[NonNegative] = Field(
        description="What it costs in the terms in which the filter counts, upper bounds (for μ: Σμ²). For a fixed entry: by how "
        "much the total grew when it was reserved, which is no bound."
    )
    counts: bool = Field(description="Whether it counts; false if it was given back.")


class EntryRecord(OutputRecord):
    """An entry of a ledger."""

    pyaccount: Literal[1] = Field(description="The version of this format.")
    kind: Literal["ledger-entry"] = Field(description="The kind of this JSON: an entry of a ledger.")
    id: str = Field(description="Its identifier.")
    data_set: str = Field(description="The data set.")
    name: str = Field(description="The name of its document.")
    who: str = Field(description="Who runs it.")
    purpose: str = Field(description="What for.")
    state: Literal["reserved", "begun", "committed", "released"] = Field(description="Its state.")
    document_sha256: str = Field(description="The hash of its document.")
    rounds: int | None = Field(description="The number of planned rounds; null if its document is not only training.")
    places: list[PlaceRecord] = Field(description="Its blocks.")
    reserved: str = Field(description="When it was reserved.")
    begun: str | None = Field(description="When it began; null if it has not.")
    run: str | None = Field(
        description="The hash of the first line of the record of the run that began it, to which it belongs; null before, and if "
        "it was begun by hand."
    )
    ended: str | None = Field(description="When it was committed or released; null before.")
    certificate: str | None = Field(description="The hash of the committed certificate.")
    epsilon: NonNegative | None = Field(description="The ε of the committed certificate, an upper bound.")
    delta: Probability | None = Field(description="The δ of the committed certificate, an upper bound.")
    record: str | None = Field(description="The hash of the first line of the record, which identifies the run.")
    record_head: str | None = Field(description="The hash of the last line of the record.")
    released_rounds: int | None = Field(description="The number of rounds in the record.")

    @classmethod
    def of(cls, entry: LedgerEntry) -> EntryRecord:
        """Return an entry as data."""
        mapping = entry.to_mapping()
        mapping.pop("phases_sha256")
        return cls.model_validate({"pyaccount": 1, "kind": "ledger-entry", **mapping})

    def text(self) -> str:
        """Return the identifier, and where the entry counts."""
        where = ", ".join(
            f"{place.block}: {place.filter or 'fixed'}{'' if place.counts else ', given back'}" for place in self.places
        )
        return f"{self.id} {self.state} ({where})"

"""The events of a ledger: what happened, in an order that a chain of SHA-256 hashes fixes.

The hash of an event is that of the canonical JSON of its number, time, kind and content and of the hash before it. Whoever
knows the last hash can detect that an earlier event was changed, lost or added.

Times never decrease from one event to the next, with one exception. If a clock was wrong, and wrote an event of the future, no
right clock could write another event. `clock-amended` sets the time back, gives a reason, and changes nothing else.

**No amended clock frees budget.** The rules (`state`) copy the time of an event into the entry that it is about, and read it
nowhere: what an entry costs, what a block has spent, which entries are fixed, and what may still be reserved, begun, committed
or released follow from the order of the events alone. No reservation ends by time. The one thing that depends on a clock is
whether a period is older than the data set keeps it (`LedgerAccess._expired`). This reads the clock of the machine, not of the
ledger; it decides whether more may be charged to the block of a period, and never what was charged to it. ∎
"""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from typing import Any, NamedTuple

#: What the first event has in place of the hash of the event before.
NOTHING_BEFORE = "0" * 64
#: The kinds of events.
KINDS = (
    *("data-set-created", "budget-changed", "block-added", "block-retired"),
    *("reserved", "begun", "committed", "released"),
    "clock-amended",
)


class Event(NamedTuple):
    """One event. `content` is plain data."""

    sequence: int
    time: str
    kind: str
    content: dict[str, Any]
    previous: str
    hash: str

    @classmethod
    def after(cls, head: Head, time: str, kind: str, content: dict[str, Any]) -> Event:
        """Return the event that follows `head`."""
        sequence = head.sequence + 1
        return cls(sequence, time, kind, content, head.hash, _hash(sequence, time, kind, content, head.hash))

    @property
    def intact(self) -> bool:
        """Whether the hash is that of the content."""
        return self.hash == _hash(self.sequence, self.time, self.kind, self.content, self.previous)


class Head(NamedTuple):
    """The end of the chain: the number, the time and the hash of the last event."""

    sequence: int = 0
    time: str = ""
    hash: str = NOTHING_BEFORE

    @classmethod
    def of(cls, event: Event) -> Head:
        """Return the end of a chain whose last event is this one."""
        return cls(event.sequence, event.time, event.hash)


def subject(content: dict[str, Any]) -> str:
    """Return the name of the data set that an event is about; an empty text for one that is about the whole ledger.

    Raises `KeyError` or `TypeError` for a content that no event has.
    """
    name = (
        ""
        if "amended_from" in content
        else content["document"]["name"]
        if "document" in content
        else content["data_set"]
    )
    if not isinstance(name, str):
        raise TypeError("the name of a data set is a text")
    return name


def disorder(head: Head, time: str, kind: str, content: dict[str, Any]) -> str | None:
    """Return why an event of this time may not follow `head`; None if it may."""
    if kind != "clock-amended":
        return "it is earlier than the event before" if time < head.time else None
    if content.get("amended_from") != head.time:
        return "it amends another time than that of the event before"
    return None if time < head.time else "it sets the clock forward, and an amendment sets it back"


def canonical(value: object) -> str:
    """Return plain data as canonical JSON: sorted keys, no spaces. Doubles keep all of their bits."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def spelled(moment: datetime) -> str:
    """Return a time in UTC, to the microsecond, in ISO 8601; two of them are ordered as texts are."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def moment_of(time: str) -> datetime:
    """Return the moment of a time of an event."""
    return datetime.strptime(time, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)


def hash_of(value: object) -> str:
    """Return the SHA-256 of the canonical JSON of plain data."""
    return hashlib.sha256(canonical(value).encode(errors="surrogatepass")).hexdigest()


def _hash(sequence: int, time: str, kind: str, content: dict[str, Any], previous: str) -> str:
    return hash_of([sequence, time, kind, content, previous])

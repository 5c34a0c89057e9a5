"""The events of a ledger: what happened, in an order that a chain of SHA-256 hashes fixes.

The hash of an event is that of the canonical JSON of its number, time, kind and content and of the hash before it. Whoever
knows the last hash can detect that an earlier event was changed, lost or added.
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


def canonical(value: object) -> str:
    """Return plain data as canonical JSON: sorted keys, no spaces. Doubles keep all of their bits."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def spelled(moment: datetime) -> str:
    """Return a time in UTC, to the microsecond, in ISO 8601; two of them are ordered as texts are."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def moment_of(time: str) -> datetime:
    """Return the moment of a time of an event."""
    return datetime.strptime(time, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)


def _hash(sequence: int, time: str, kind: str, content: dict[str, Any], previous: str) -> str:
    text = canonical([sequence, time, kind, content, previous])
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()

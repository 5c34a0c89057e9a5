"""What a ledger asks of a database, in SQL that SQLite and PostgreSQL both understand.

One table is only appended to: that of the events. The others contain the state that follows from the events, and are written in
the same transaction. `head` has one row, the end of the chain.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

from pyaccount.errors import LedgerStorageError

#: The version of the tables and of the events.
FORMAT = 1

TABLES = (
    "CREATE TABLE head (one INTEGER PRIMARY KEY, format INTEGER NOT NULL, sequence BIGINT NOT NULL, time TEXT NOT NULL, "
    "hash TEXT NOT NULL)",
    "CREATE TABLE events (sequence BIGINT PRIMARY KEY, time TEXT NOT NULL, kind TEXT NOT NULL, data_set TEXT NOT NULL, "
    "content TEXT NOT NULL, previous TEXT NOT NULL, hash TEXT NOT NULL)",
    "CREATE TABLE data_sets (name TEXT PRIMARY KEY, content TEXT NOT NULL)",
    "CREATE TABLE blocks (data_set TEXT NOT NULL, name TEXT NOT NULL, content TEXT NOT NULL, PRIMARY KEY (data_set, name))",
    "CREATE TABLE entries (id TEXT PRIMARY KEY, data_set TEXT NOT NULL, sequence BIGINT NOT NULL, document TEXT NOT NULL, "
    "certificate TEXT, record TEXT, content TEXT NOT NULL)",
    "CREATE TABLE places (entry TEXT NOT NULL, data_set TEXT NOT NULL, block TEXT NOT NULL, filter TEXT, "
    "counts INTEGER NOT NULL, sequence BIGINT NOT NULL, PRIMARY KEY (entry, block))",
    "CREATE TABLE phases (entry TEXT PRIMARY KEY, content TEXT NOT NULL)",
    "CREATE INDEX entries_by_data_set ON entries (data_set, sequence)",
    "CREATE INDEX entries_by_document ON entries (document)",
    "CREATE INDEX entries_by_certificate ON entries (certificate)",
    "CREATE INDEX entries_by_record ON entries (record)",
    "CREATE INDEX places_by_block ON places (data_set, block, filter)",
    "CREATE INDEX events_by_data_set ON events (data_set, sequence)",
)

Values = Mapping[str, object]


class LedgerConnection(Protocol):
    """A transaction that is in progress."""

    def rows(self, statement: str, values: Values | None = None) -> list[Any]:
        """Return the rows of a query; its values are named, as in `:name`."""

    def run(self, statement: str, values: Values | None = None) -> None:
        """Run a statement that changes something."""

    def additions(self) -> list[str]:
        """Return what changes or replaces the tables, in words: triggers, rules, views, and tables with other columns."""


class Database(Protocol):
    """A database with a ledger. Its methods raise `LedgerStorageError`, also if there is no ledger (`no_ledger`)."""

    @property
    def place(self) -> str:
        """Where the ledger is, as messages name it: without a password."""

    def create(self) -> None:
        """Make the tables of a ledger, unless they are there."""

    def reading(self) -> AbstractContextManager[LedgerConnection]:
        """Return a transaction in which all queries see one state."""

    def writing(self) -> AbstractContextManager[LedgerConnection]:
        """Return a transaction that no other one is concurrent with. At its end it is on disk, or nothing of it is."""


def no_ledger(place: str) -> LedgerStorageError:
    """Return the error of a place without a ledger."""
    return LedgerStorageError(
        f"{place}: there is no ledger: `pyaccount ledger create` makes one with its first data set"
    )

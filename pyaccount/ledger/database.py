"""What a ledger asks of a database, in SQL that SQLite and PostgreSQL both understand, and a ledger in a file.

One table is only appended to: that of the events. The others contain the state that follows from the events, and are written in
the same transaction. `head` has one row, the end of the chain.

A ledger in a file is SQLite with a rollback journal. A transaction is on disk before it counts as done.

The file is open only during a transaction. So a fork never inherits an open file, whose locks SQLite would then misjudge
(`pyaccount.store` explains this), and between two transactions the file alone is the whole ledger, which can be copied. The
programs that use it must run on one machine: file systems of networks do not lock files dependably. Several machines share a
PostgreSQL server instead.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from pyaccount.errors import LedgerStorageError, printable

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


#: The application id "pyal", which distinguishes a ledger from other databases.
APPLICATION = 0x7079616C

#: Seconds that a process waits for the transaction of another process, and that SQLite waits at a time.
PATIENCE, SPELL = 60.0, 0.5

#: The bits of an SQLite error code that contain its kind.
_PRIMARY = 0xFF

#: What a ledger's file does not contain.
_FOREIGN = ("trigger", "view")

#: The lock is held while a file is open, and while the process forks.
_LOCK = threading.RLock()


def _after_fork() -> None:
    _LOCK.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_LOCK.acquire, after_in_parent=_after_fork, after_in_child=_after_fork)


class SqliteFile:
    """A ledger in one file."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.place = os.fsdecode(path)
        # An absolute path stays right if the working folder changes.
        self._path = Path(path).absolute()

    def create(self) -> None:
        """Make the file, unless it is a ledger already."""
        folder = self._path.parent
        if not folder.is_dir():
            raise LedgerStorageError(
                f"{self.place}: the folder {folder} does not exist, so that no ledger can be made there: make it"
            )
        self._check_file()
        with self._located("cannot be written"), self._connected(create=True) as connection:
            _patiently(connection, "BEGIN IMMEDIATE")
            if not self._prepared(connection):
                for statement in TABLES:
                    _patiently(connection, statement)
                first = {"format": FORMAT, "hash": "0" * 64}
                _patiently(connection, "INSERT INTO head VALUES (1, :format, 0, '', :hash)", first)
                _patiently(connection, f"PRAGMA user_version = {FORMAT}")
                _patiently(connection, f"PRAGMA application_id = {APPLICATION}")
            _patiently(connection, "COMMIT")

    @contextmanager
    def reading(self) -> Iterator[_FileTransaction]:
        """Return a transaction in which all queries see one state."""
        with self._transaction("DEFERRED", "cannot be read") as transaction:
            yield transaction

    @contextmanager
    def writing(self) -> Iterator[_FileTransaction]:
        """Return a transaction that holds the lock of the file from its beginning."""
        with self._transaction("IMMEDIATE", "cannot be written") as transaction:
            yield transaction

    @contextmanager
    def _transaction(self, kind: str, what: str) -> Iterator[_FileTransaction]:
        self._check_file()
        if not self._path.exists():
            raise no_ledger(self.place)
        with self._located(what), self._connected() as connection:
            _patiently(connection, f"BEGIN {kind}")
            # The first query takes the lock, from which on all queries see one state.
            if not self._prepared(connection):
                raise no_ledger(self.place)
            yield _FileTransaction(connection)
            _patiently(connection, "COMMIT")

    def _check_file(self) -> None:
        if self._path.is_dir():
            raise LedgerStorageError(
                f"{self.place}: is a folder, and a ledger is a file: give the name of a file in it"
            )

    @contextmanager
    def _connected(self, *, create: bool = False) -> Iterator[sqlite3.Connection]:
        with _LOCK:
            mode = "rwc" if create else "rw"
            connection = sqlite3.connect(
                f"{self._path.as_uri()}?mode={mode}",
                uri=True,
                timeout=SPELL,
                isolation_level=None,
                check_same_thread=False,
            )
            try:
                # With a rollback journal, FULL leaves open whether a committed transaction survives a loss of power; EXTRA
                # writes the folder too. Like every statement, this one reads the file first, which another process may have
                # locked, or may have to repair after a writer was killed.
                _patiently(connection, "PRAGMA synchronous = EXTRA")
                # A text that is not UTF-8 was damaged; it is read as something else, and found by what checks the rows.
                connection.text_factory = _text
                yield connection
            finally:
                # Closing without a commit rolls back.
                connection.close()

    def _prepared(self, connection: sqlite3.Connection) -> bool:
        """Return whether the file is a ledger that can be used here; False for an empty one. Raises for any other."""
        ((tables,),) = _patiently(connection, "SELECT count(*) FROM sqlite_master")
        ((application,),) = _patiently(connection, "PRAGMA application_id")
        ((version,),) = _patiently(connection, "PRAGMA user_version")
        if application == 0 and tables == 0:
            return False
        if application != APPLICATION:
            raise LedgerStorageError(f"{self.place}: is a database, but not a ledger of pyaccount: name another file")
        if version != FORMAT:
            raise LedgerStorageError(
                f"{self.place}: is a ledger of format {version}, and this version of pyaccount has format {FORMAT}, so that it "
                "could misread it: use the version of pyaccount that made it"
            )
        return True

    @contextmanager
    def _located(self, what: str) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            with suppress(IndexError):
                if "not a database" in str(error.args[0]):
                    raise LedgerStorageError(
                        f"{self.place}: is not a ledger of pyaccount: name another file"
                    ) from error
            raise LedgerStorageError(
                f"{self.place}: the ledger {what}: {error}. Nothing of this command was written; what was committed before is "
                "still there"
            ) from error


def _text(data: bytes) -> str:
    return data.decode(errors="backslashreplace")


class _FileTransaction:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def rows(self, statement: str, values: Values | None = None) -> list[Any]:
        return _patiently(self._connection, statement, values)

    def run(self, statement: str, values: Values | None = None) -> None:
        _patiently(self._connection, statement, values)

    def additions(self) -> list[str]:
        """Return the triggers and views of the file, its tables and indexes that differ from a ledger's, and damaged pages."""
        found = self.rows("SELECT type, name, sql FROM sqlite_master")
        expected = {statement.split()[2]: statement for statement in TABLES}
        stated = {name: sql for _, name, sql in found}
        wrong = [f"the file has the {kind} {name}, which no ledger has" for kind, name, _ in found if kind in _FOREIGN]
        wrong += [
            f"the table or index {name} of the file is not that of a ledger"
            for name, sql in expected.items()
            if stated.get(name) != sql
        ]
        pages = [message for (message,) in self.rows("PRAGMA integrity_check") if message != "ok"]
        return [*wrong, *(f"SQLite finds damage: {printable(str(message))}" for message in pages)]


def _patiently(connection: sqlite3.Connection, statement: str, values: Values | None = None) -> list[Any]:
    """Run a statement, and return its rows. Waits up to `PATIENCE` for other processes; Ctrl-C works every `SPELL`.

    Every statement goes through here. A statement that finds the file locked has done nothing, so it can be repeated.
    """
    began = time.monotonic()
    while True:
        try:
            return connection.execute(statement, dict(values or {})).fetchall()
        except sqlite3.OperationalError as error:
            busy = getattr(error, "sqlite_errorcode", 0) & _PRIMARY == sqlite3.SQLITE_BUSY
            if not busy or time.monotonic() - began > PATIENCE:
                raise
        time.sleep(0.005)

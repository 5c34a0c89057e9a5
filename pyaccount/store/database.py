"""The file of the store: SQLite with a write-ahead log. A transaction is on disk before it counts as done.

A run is identified by a key of everything that its certificate is computed from. Only finished runs are stored.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from pyaccount.certificate.provenance import now
from pyaccount.errors import StoreError

#: The application id "pyac", which distinguishes a store from other databases, and the version of its tables.
APPLICATION, FORMAT = 0x70796163, 1
#: Seconds that a process waits for the transaction of another process.
PATIENCE = 60.0
#: Seconds that SQLite waits at a time; meanwhile Ctrl-C has no effect.
SPELL = 0.5
#: The bits of an SQLite error code that contain its kind.
PRIMARY = 0xFF

TABLE = """
CREATE TABLE runs (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    versions TEXT NOT NULL,
    finished TEXT NOT NULL,
    certificate TEXT NOT NULL,
    checksum TEXT NOT NULL
) STRICT;
"""


@dataclass(frozen=True, slots=True)
class Run:
    """A finished run in the store; `certificate` is the JSON of its certificate."""

    id: str
    name: str
    versions: str
    finished: str
    certificate: str
    #: Whether the content of the file differs from what was written.
    damaged: bool = False


class _Open:
    """The stores of this process that are connected to their files. While the process forks, none is connected.

    SQLite remembers for each process which files it has open and locked. If a file is open during a fork and the child
    opens it too, the child does not get a lock of its own, and what it commits is lost when its parent closes the file.
    So a fork closes all connections, between two transactions, and both processes connect again when they need to.
    """

    def __init__(self) -> None:
        self.stores: weakref.WeakSet[Store] = weakref.WeakSet()
        self.process = os.getpid()
        #: The lock is held while a connection is used, and while the process forks.
        self._lock = threading.RLock()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock on connections. Raises `sqlite3.Error` after a fork that Python did not announce."""
        if os.getpid() != self.process:
            # A library forked the process without calling the handlers below.
            if any(store.connected for store in self.stores):
                raise sqlite3.OperationalError("this process was forked, not by Python, while a store was open")
            self.process, self._lock = os.getpid(), threading.RLock()
        with self._lock:
            yield

    def before(self) -> None:
        """Take the lock and close every connection, before a fork."""
        self._lock.acquire()
        for store in list(self.stores):
            store.disconnect()

    def after(self) -> None:
        """Release the lock after a fork, in the parent and in the child."""
        self.process = os.getpid()
        self._lock.release()


_OPEN = _Open()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_OPEN.before, after_in_parent=_OPEN.after, after_in_child=_OPEN.after)


class Store:
    """A run store in one file. It is opened at once, and closed by `close` or at the end of a `with` block.

    Threads and forked processes may share it. Its methods raise `StoreError` if the file is not a store, is damaged, or
    cannot be read or written. What was stored before such an error is not lost.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if self.path.is_dir():
            raise StoreError(f"{self.path}: is a folder; a store is a file")
        if not self.path.absolute().parent.is_dir():
            raise StoreError(f"{self.path}: the folder {self.path.parent} does not exist")
        #: The absolute path, because the working folder may have changed when the file is opened again.
        self._file = self.path.absolute()
        self._connection: sqlite3.Connection | None = None
        self._closed = False
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise

    def _prepare(self) -> None:
        # One transaction reads all three values, because another process may be creating the store.
        with self._located("cannot be opened"), self._transaction():
            (application,) = self._one("PRAGMA application_id")
            (tables,) = self._one("SELECT count(*) FROM sqlite_master")
            (version,) = self._one("PRAGMA user_version")
        if application != APPLICATION and (application != 0 or tables != 0):
            raise StoreError(f"{self.path}: is a database, but not a store of pyaccount; name another file")
        if application == APPLICATION and version != FORMAT:
            raise StoreError(
                f"{self.path}: is a store of format {version}, and this version of pyaccount has format {FORMAT}; "
                "name another file"
            )
        with self._located("cannot be written"):
            self._rows("PRAGMA journal_mode = WAL")
            with self._transaction() as connection:
                # Another process may have created the store in the meantime.
                (application,) = self._one("PRAGMA application_id")
                if application != APPLICATION:
                    connection.execute(TABLE)
                    connection.execute(f"PRAGMA user_version = {FORMAT}")
                    connection.execute(f"PRAGMA application_id = {APPLICATION}")

    def run(self, run: str) -> Run | None:
        """Return the run of a key, or `None` if it is not stored."""
        matches = self._runs("WHERE id = ?", (run,))
        return matches[0] if matches else None

    def runs(self) -> list[Run]:
        """Return all runs, in the order in which they were finished."""
        return self._runs("ORDER BY rowid", ())

    def _runs(self, which: str, values: tuple[str, ...]) -> list[Run]:
        with self._located("cannot be read"):
            rows = self._rows(f"SELECT id, name, versions, finished, certificate, checksum FROM runs {which}", values)
        return [
            Run(
                key,
                name,
                versions,
                finished,
                certificate,
                _checksum(key, name, versions, finished, certificate) != stated,
            )
            for key, name, versions, finished, certificate, stated in rows
        ]

    def check_writable(self) -> None:
        """Raise `StoreError` if nothing can be written, so that this is known before a long run and not after it."""
        with self._located("cannot be written"), self._transaction() as connection:
            connection.execute(f"PRAGMA user_version = {FORMAT}")

    def keep(self, run: str, *, name: str, versions: str, certificate: str) -> None:
        """Store the certificate of a run, unless another process has stored one meanwhile."""
        texts = (run, name, versions, now(), certificate)
        with self._located("cannot be written"), self._transaction() as connection:
            connection.execute("INSERT OR IGNORE INTO runs VALUES (?, ?, ?, ?, ?, ?)", (*texts, _checksum(*texts)))

    def remove(self, runs: Iterable[str]) -> None:
        """Delete runs."""
        with self._located("cannot be written"), self._transaction() as connection:
            connection.executemany("DELETE FROM runs WHERE id = ?", [(run,) for run in runs])

    def __fspath__(self) -> str:
        """Return the path of the file."""
        return str(self.path)

    def close(self) -> None:
        """Close the store for good."""
        self._closed = True
        if os.getpid() == _OPEN.process:
            with _OPEN.held():
                self.disconnect()

    @property
    def connected(self) -> bool:
        """Whether the file is open."""
        return self._connection is not None

    def disconnect(self) -> None:
        """Close the connection until it is needed again, unless a transaction is in progress."""
        if self._connection is not None and not self._connection.in_transaction:
            self._connection.close()
            self._connection = None

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _connected(self) -> sqlite3.Connection:
        """Return the connection to the file; create it if there is none."""
        if self._closed:
            raise sqlite3.ProgrammingError("Cannot operate on a closed database.")
        if self._connection is None:
            # `isolation_level=None`: only `_transaction` begins transactions. Any thread that forks closes the
            # connection.
            connection = sqlite3.connect(self._file, timeout=SPELL, isolation_level=None, check_same_thread=False)
            try:
                connection.execute("PRAGMA synchronous = FULL")
            except BaseException:
                connection.close()
                raise
            self._connection = connection
            _OPEN.stores.add(self)
        return self._connection

    def _one(self, statement: str, values: tuple[object, ...] = ()) -> tuple[int, ...]:
        row: tuple[int, ...]
        (row,) = self._rows(statement, values)
        return row

    def _rows(self, statement: str, values: tuple[object, ...] = ()) -> list[Any]:
        """Return the rows of a statement. Waits up to `PATIENCE` for other processes; Ctrl-C works every `SPELL`."""
        began = time.monotonic()
        while True:
            try:
                with _OPEN.held():
                    return self._connected().execute(statement, values).fetchall()
            except sqlite3.OperationalError as error:
                if _is_other(error) or time.monotonic() - began > PATIENCE:
                    raise
            # For some locks SQLite itself does not wait, so wait here.
            time.sleep(0.02)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Run a transaction, during which no fork happens. It waits for other processes as `_rows` does."""
        began = time.monotonic()
        while True:
            with _OPEN.held():
                try:
                    connection = self._connected()
                    connection.execute("BEGIN IMMEDIATE")
                except sqlite3.OperationalError as error:
                    if _is_other(error) or time.monotonic() - began > PATIENCE:
                        raise
                else:
                    try:
                        yield connection
                        connection.execute("COMMIT")
                    except BaseException:
                        if connection.in_transaction:
                            connection.execute("ROLLBACK")
                        raise
                    return
            time.sleep(0.02)

    @contextmanager
    def _located(self, what: str) -> Iterator[None]:
        """Turn errors of SQLite into a `StoreError` that names the file and what could not be done."""
        try:
            yield
        except sqlite3.Error as error:
            if error.args and "not a database" in str(error.args[0]):
                raise StoreError(f"{self.path}: is not a store of pyaccount; name another file") from error
            raise StoreError(f"{self.path}: the store {what}: {error}") from error


def _is_other(error: sqlite3.OperationalError) -> bool:
    """Return whether an error has another cause than a lock that another process holds."""
    return getattr(error, "sqlite_errorcode", 0) & PRIMARY != sqlite3.SQLITE_BUSY


def _checksum(*texts: object) -> str:
    """Return the checksum of a stored run: the first 16 hexadecimal digits of a SHA-256 of its texts."""
    return hashlib.sha256(repr(texts).encode()).hexdigest()[:16]

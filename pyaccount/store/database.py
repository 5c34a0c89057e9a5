"""The store's file: SQLite with a write-ahead log, every transaction on the disk before it counts as done.

A run is what a certificate is computed from, by its key; while it is unfinished its waves lie beside it, and go once its
certificate is there. Processes that work on one run share what either has kept: both would have computed the same.
"""

from __future__ import annotations

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
from pyaccount.store.spelling import checksum

#: "pyac": what tells a store from other databases; and the version of its tables.
APPLICATION, FORMAT = 0x70796163, 1
#: Seconds that a process waits for another one's transaction.
PATIENCE = 60.0
#: Seconds that SQLite waits at a time, deaf to Ctrl-C.
SPELL = 0.5
#: The part of SQLite's error codes that tells their kind.
PRIMARY = 0xFF
#: Waves that are read at a time.
READ = 256

TABLES = """
CREATE TABLE runs (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    document TEXT NOT NULL,
    versions TEXT NOT NULL,
    seed TEXT NOT NULL,
    started TEXT NOT NULL,
    finished TEXT,
    certificate TEXT,
    checksum TEXT
) STRICT;
CREATE TABLE waves (
    run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    job TEXT NOT NULL,
    first INTEGER NOT NULL,
    shards INTEGER NOT NULL,
    sums TEXT NOT NULL,
    checksum TEXT NOT NULL,
    PRIMARY KEY (run, job, first)
) STRICT, WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class Run:
    """A run as the store has it; `certificate` is its JSON once it is finished."""

    id: str
    name: str
    document: str
    versions: str
    seed: int
    started: str
    finished: str | None
    certificate: str | None
    #: Whether what stands in the file is not what was written.
    damaged: bool = False


@dataclass(frozen=True, slots=True)
class KeptWave:
    """Consecutive shards of a job, and what they left, as text."""

    job: str
    first: int
    shards: int
    sums: str


class _Open:
    """The stores of this process that are connected to their files, none of them while the process forks.

    SQLite remembers for each process which files it has open and locked. A child that opens a file which was open when it was
    forked takes no lock of its own on it, so that what it commits is lost once its parent closes the file. So a fork closes all
    connections, between two transactions, and both processes connect again when they need to.
    """

    def __init__(self) -> None:
        self.stores: weakref.WeakSet[Store] = weakref.WeakSet()
        self.process = os.getpid()
        #: Held while a connection is used, and while the process forks.
        self._lock = threading.RLock()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Use connections, which no other thread does meanwhile. Raises `sqlite3.Error` where that cannot be in this process."""
        if os.getpid() != self.process:
            # Forked by a library that has not said so.
            if any(store.connected for store in self.stores):
                raise sqlite3.OperationalError("this process was forked, not by Python, while a store was open")
            self.process, self._lock = os.getpid(), threading.RLock()
        with self._lock:
            yield

    def before(self) -> None:
        """Let go of every file."""
        self._lock.acquire()
        for store in list(self.stores):
            store.disconnect()

    def after(self) -> None:
        """Go on, in either process."""
        self.process = os.getpid()
        self._lock.release()


_OPEN = _Open()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_OPEN.before, after_in_parent=_OPEN.after, after_in_child=_OPEN.after)


class Store:
    """One file. It is opened before any work, and closed by `close` or at the end of a `with` block.

    Threads may share it, and so may processes that are forked off. Raises `StoreError` where the file is no store, is damaged,
    or cannot be read or written; of what was reported as kept nothing is lost by that.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if self.path.is_dir():
            raise StoreError(f"{self.path}: is a folder; a store is a file")
        if not self.path.absolute().parent.is_dir():
            raise StoreError(f"{self.path}: the folder {self.path.parent} does not exist")
        #: Where it is, whatever the working folder is by the time that it is opened once more.
        self._file = self.path.absolute()
        self._connection: sqlite3.Connection | None = None
        self._closed = False
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise

    def _prepare(self) -> None:
        # In one transaction: another process may be making the store.
        with self._located("cannot be opened"), self._transaction():
            (application,) = self._one("PRAGMA application_id")
            (tables,) = self._one("SELECT count(*) FROM sqlite_master")
            (version,) = self._one("PRAGMA user_version")
        if application != APPLICATION and (application != 0 or tables != 0):
            raise StoreError(f"{self.path}: is a database, but no store of pyaccount; name another file")
        if application == APPLICATION and version != FORMAT:
            raise StoreError(
                f"{self.path}: is a store of format {version}, and this version of pyaccount has format {FORMAT}; "
                "name another file"
            )
        with self._located("cannot be written"):
            self._rows("PRAGMA journal_mode = WAL")
            with self._transaction() as connection:
                # Another process may have been quicker.
                (application,) = self._one("PRAGMA application_id")
                if application != APPLICATION:
                    for statement in TABLES.split(";\n"):
                        if statement.strip():
                            connection.execute(statement)
                    connection.execute(f"PRAGMA user_version = {FORMAT}")
                    connection.execute(f"PRAGMA application_id = {APPLICATION}")

    def begin(self, run: str, *, name: str, document: str, versions: str, seed: int) -> Run:
        """The run of this key: as it was begun before, with its own seed, or begun now with this one."""
        with self._located("cannot be written"), self._transaction() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO runs (id, name, document, versions, seed, started) VALUES (?, ?, ?, ?, ?, ?)",
                (run, name, document, versions, str(seed), now()),
            )
            (found,) = self._runs("WHERE id = ?", (run,))
        return found

    def run(self, run: str) -> Run | None:
        """The run of a key, if it was ever begun."""
        found = self._runs("WHERE id = ?", (run,))
        return found[0] if found else None

    def runs(self) -> list[Run]:
        """All runs, as they were begun."""
        return self._runs("ORDER BY rowid", ())

    def _runs(self, which: str, values: tuple[str, ...]) -> list[Run]:
        columns = "id, name, document, versions, seed, started, finished, certificate, checksum"
        with self._located("cannot be read"):
            rows = self._rows(f"SELECT {columns} FROM runs {which}", values)
        found = []
        for *rest, certificate, stated in rows:
            identity, name, document, versions, seed, started, finished = rest
            damaged = (certificate is not None and checksum(certificate) != stated) or not str(seed).isdigit()
            number = 0 if damaged else int(seed)
            found.append(Run(identity, name, document, versions, number, started, finished, certificate, damaged))
        return found

    def finish(self, run: str, certificate: str) -> None:
        """Keep the certificate of a run; its waves are of no more use."""
        with self._located("cannot be written"), self._transaction() as connection:
            connection.execute(
                "UPDATE runs SET finished = ?, certificate = ?, checksum = ? WHERE id = ? AND certificate IS NULL",
                (now(), certificate, checksum(certificate), run),
            )
            connection.execute("DELETE FROM waves WHERE run = ?", (run,))

    def remove(self, runs: Iterable[str]) -> None:
        """Forget runs, with all that is kept of them."""
        with self._located("cannot be written"), self._transaction() as connection:
            connection.executemany("DELETE FROM runs WHERE id = ?", [(run,) for run in runs])

    def keep(self, run: str, waves: Iterable[KeptWave]) -> None:
        """Keep waves, all or none of them."""
        rows = [(run, one.job, one.first, one.shards, one.sums, checksum(one.sums)) for one in waves]
        with self._located("cannot be written"), self._transaction() as connection:
            # Whoever removed the run meanwhile wants nothing kept of it.
            connection.executemany(
                "INSERT OR IGNORE INTO waves SELECT ?1, ?2, ?3, ?4, ?5, ?6 WHERE EXISTS (SELECT 1 FROM runs WHERE id = ?1)",
                rows,
            )

    def waves(self, run: str, job: str) -> Iterator[KeptWave]:
        """The waves that are kept of a job, in order from the first shard on, up to the first that is missing."""
        first = 0
        while True:
            with self._located("cannot be read"):
                rows = self._rows(
                    "SELECT first, shards, sums, checksum FROM waves WHERE run = ? AND job = ? AND first >= ? "
                    f"ORDER BY first LIMIT {READ}",
                    (run, job, first),
                )
            for start, shards, sums, stated in rows:
                if start != first:
                    return
                if checksum(sums) != stated:
                    raise StoreError(f"{self.path}: shards {start} … of run {run[:12]} are damaged; remove that run")
                yield KeptWave(job, start, shards, sums)
                first = start + shards
            if len(rows) < READ:
                return

    def shards(self, run: str) -> int:
        """How many shards are kept of a run."""
        with self._located("cannot be read"):
            (count,) = self._one("SELECT coalesce(sum(shards), 0) FROM waves WHERE run = ?", (run,))
        return int(count)

    def __fspath__(self) -> str:
        """The file."""
        return str(self.path)

    def close(self) -> None:
        """Let go of the file."""
        self._closed = True
        if os.getpid() == _OPEN.process:
            with _OPEN.held():
                self.disconnect()

    @property
    def connected(self) -> bool:
        """Whether the file is open."""
        return self._connection is not None

    def disconnect(self) -> None:
        """Let go of the file until it is needed again."""
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
        """The connection to the file, made if there is none."""
        if self._closed:
            raise sqlite3.ProgrammingError("Cannot operate on a closed database.")
        if self._connection is None:
            # Transactions are begun here, and by nobody else. Whichever thread forks closes it.
            connection = sqlite3.connect(self._file, timeout=SPELL, isolation_level=None, check_same_thread=False)
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            self._connection = connection
            _OPEN.stores.add(self)
        return self._connection

    def _one(self, statement: str, values: tuple[object, ...] = ()) -> tuple[int, ...]:
        found: tuple[int, ...]
        (found,) = self._rows(statement, values)
        return found

    def _rows(self, statement: str, values: tuple[object, ...] = ()) -> list[Any]:
        """What a statement gives. It may have to wait for another process, up to `PATIENCE`, heeding Ctrl-C after each spell."""
        began = time.monotonic()
        while True:
            try:
                with _OPEN.held():
                    return self._connected().execute(statement, values).fetchall()
            except sqlite3.OperationalError as error:
                if _is_other(error) or time.monotonic() - began > PATIENCE:
                    raise
            # For some locks SQLite itself does not wait.
            time.sleep(0.02)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """A transaction on the connection, which no fork comes into. It is begun as `_rows` executes."""
        began = time.monotonic()
        while True:
            with _OPEN.held():
                connection = self._connected()
                try:
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
        """Let errors of SQLite name the file and what could not be done."""
        try:
            yield
        except sqlite3.Error as error:
            if error.args and "not a database" in str(error.args[0]):
                raise StoreError(f"{self.path}: is no store of pyaccount; name another file") from error
            raise StoreError(f"{self.path}: the store {what}: {error}") from error


def _is_other(error: sqlite3.OperationalError) -> bool:
    """Whether it is another error than that somebody else has the file locked."""
    return getattr(error, "sqlite_errorcode", 0) & PRIMARY != sqlite3.SQLITE_BUSY

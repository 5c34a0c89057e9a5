"""A ledger in a PostgreSQL database, through SQLAlchemy: for several machines.

**Why writers wait for a row.** Every writing transaction begins by locking the one row of `head` (`SELECT … FOR UPDATE`). The
chain of hashes makes every event depend on the one before, so that writers follow one another in any case. With the isolation
`READ COMMITTED`, each later statement of the transaction sees what was committed before it began, and nobody commits while the
row is locked: so a writer reads the state after the last event, and no transaction fails for serialisation and has to be
repeated, as it would with `SERIALIZABLE`. A row lock ends with the transaction, however the client dies, also behind a pooler
that gives each transaction another connection; an advisory lock of a session would not. A client that is frozen, or whose machine
is gone, keeps its transaction open: the server ends it after `IDLE` seconds without a statement, before those who wait give up.
A client that wakes up after this gets an error, and connects again for its next command.

A transaction that reads is `REPEATABLE READ`, so that all of its queries see one state. `synchronous_commit` is set for each
transaction that writes: it is on disk before `COMMIT` returns, whatever the server's default is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyaccount.errors import LedgerStorageError, MissingExtraError
from pyaccount.ledger.database import FORMAT, TABLES, Values, no_ledger

#: Seconds to wait for the lock of another writer, and for a connection.
PATIENCE, CONNECTING = 60, 10
#: Seconds without a statement after which the server ends a transaction that writes. To compute a total under the lock takes
#: less; those who wait for the lock wait longer.
IDLE = 45
#: The number of the advisory lock under which tables are made: "pyal".
_MAKING = 0x7079616C


class Server:
    """A ledger in one schema of a PostgreSQL database."""

    def __init__(self, url: str) -> None:
        try:
            import sqlalchemy
            from sqlalchemy.pool import NullPool
        except ImportError as error:
            raise MissingExtraError.of("sqlalchemy", "a ledger on a server needs it", "name a file") from error
        self._sql = sqlalchemy
        try:
            parsed = sqlalchemy.make_url(url)
        except sqlalchemy.exc.ArgumentError as error:
            raise LedgerStorageError(
                "the address of the ledger cannot be read: write postgresql://user:password@host:port/database"
            ) from error
        if parsed.drivername in ("postgresql", "postgres"):
            parsed = parsed.set(drivername="postgresql+psycopg")
        #: Without the password, for messages.
        self.place = parsed.set(drivername="postgresql").render_as_string(hide_password=True)
        try:
            # Without a pool no connection is open during a fork, and none is shared by two processes.
            self._engine = sqlalchemy.create_engine(
                parsed,
                poolclass=NullPool,
                connect_args={"connect_timeout": CONNECTING, "application_name": "pyaccount ledger"},
            )
        except ImportError as error:
            raise MissingExtraError.of("psycopg", "a ledger on a PostgreSQL server needs it", "name a file") from error
        except sqlalchemy.exc.SQLAlchemyError as error:
            raise LedgerStorageError(
                f"{self.place}: no database of this kind is supported: use postgresql://…"
            ) from error

    def create(self) -> None:
        """Make the tables, unless they are there. Two processes that do this at once make them once."""
        with self._located("cannot be written"), self._engine.begin() as connection:
            self._limit_waiting(_ServerTransaction(connection, self._sql.text))
            connection.execute(self._sql.text("SELECT pg_advisory_xact_lock(:making)"), {"making": _MAKING})
            (found,) = connection.execute(self._sql.text("SELECT to_regclass('head')")).one()
            if found is not None:
                return
            for statement in TABLES:
                connection.execute(self._sql.text(statement))
            first = "INSERT INTO head VALUES (1, :format, 0, '', :hash)"
            connection.execute(self._sql.text(first), {"format": FORMAT, "hash": "0" * 64})

    @contextmanager
    def reading(self) -> Iterator[_ServerTransaction]:
        """Return a transaction in which all queries see one state."""
        with self._located("cannot be read"):
            connection = self._engine.connect().execution_options(
                isolation_level="REPEATABLE READ", postgresql_readonly=True
            )
            with connection, connection.begin():
                transaction = _ServerTransaction(connection, self._sql.text)
                self._check(transaction)
                yield transaction

    @contextmanager
    def writing(self) -> Iterator[_ServerTransaction]:
        """Return a transaction that holds the lock of all writers from its beginning."""
        with self._located("cannot be written"):
            connection = self._engine.connect().execution_options(isolation_level="READ COMMITTED")
            with connection, connection.begin():
                transaction = _ServerTransaction(connection, self._sql.text)
                self._limit_waiting(transaction)
                self._check(transaction)
                transaction.run("SET LOCAL synchronous_commit = on")
                transaction.rows("SELECT one FROM head WHERE one = 1 FOR UPDATE")
                yield transaction

    @staticmethod
    def _limit_waiting(transaction: _ServerTransaction) -> None:
        """Limit how long the transaction waits for others, and how long they wait for it if this process is frozen."""
        transaction.run(f"SET LOCAL lock_timeout = '{PATIENCE}s'")
        transaction.run(f"SET LOCAL idle_in_transaction_session_timeout = '{IDLE}s'")

    def _check(self, transaction: _ServerTransaction) -> None:
        """Raise `LedgerStorageError` if the database has no ledger."""
        ((found,),) = transaction.rows("SELECT to_regclass('head')")
        if found is None:
            raise no_ledger(self.place)

    @contextmanager
    def _located(self, what: str) -> Iterator[None]:
        try:
            yield
        except self._sql.exc.SQLAlchemyError as error:
            reason = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
            raise LedgerStorageError(
                f"{self.place}: the ledger {what}: {reason}. Unless the connection broke during the commit itself, nothing of "
                "this command was written; `pyaccount ledger history` shows what was. What was committed before is still there"
            ) from error


class _ServerTransaction:
    def __init__(self, connection: Any, text: Any) -> None:
        self._connection = connection
        self._text = text

    def rows(self, statement: str, values: Values | None = None) -> list[Any]:
        return list(self._connection.execute(self._text(statement), dict(values or {})))

    def run(self, statement: str, values: Values | None = None) -> None:
        self._connection.execute(self._text(statement), dict(values or {}))

    def additions(self) -> list[str]:
        """Return the triggers, rules and row policies on the tables, and what is not a table or has other columns."""
        wrong = []
        for statement in TABLES:
            _, kind, name = statement.split()[:3]
            if kind != "TABLE":
                continue
            (relation,) = self.rows(_RELATION, {"name": name}) or [(None, None, 0, 0, False)]
            found, columns, triggers, rules, policies = relation
            if found not in ("r", "p") or columns != _columns(statement):
                wrong.append(f"{name} is not the table of a ledger")
            what = {"a trigger": triggers, "a rule": rules, "policies that hide rows": policies}
            wrong += [f"the table {name} has {word}, which no ledger has" for word, there in what.items() if there]
        return wrong


#: What the server knows of a table, of those that a query finds by its name alone.
_RELATION = """
SELECT c.relkind::text,
    (SELECT string_agg(attname || ' ' || CASE WHEN attnotnull THEN 'NOT NULL' ELSE '' END, ',' ORDER BY attnum)
        FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped),
    (SELECT count(*) FROM pg_trigger WHERE tgrelid = c.oid AND NOT tgisinternal),
    (SELECT count(*) FROM pg_rewrite WHERE ev_class = c.oid AND c.relkind <> 'v'),
    c.relrowsecurity
FROM pg_class AS c WHERE c.oid = to_regclass(:name)
"""


def _columns(statement: str) -> str:
    """Return the columns of a statement that makes a table, in the words of `_RELATION`."""
    inside = statement.partition("(")[2].rpartition(")")[0]
    named, _, key = inside.partition(", PRIMARY KEY ")
    keys = [one.strip() for one in key.strip("()").split(",")]
    words = [column.split() for column in named.split(", ")]
    return ",".join(
        f"{name} {'NOT NULL' if 'KEY' in rest or 'NOT' in rest or name in keys else ''}" for name, *rest in words
    )

"""`LedgerAccess`, what every method of a ledger does: it opens the database, finds what is named, and adds events.

The database of a ledger follows from its place, a file or the address of a server; the blocks of time from the periods that lie
between them and now.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Any

from pyaccount.document.data_set import DataSet, is_period
from pyaccount.errors import LedgerError, Problem, quoted
from pyaccount.ledger.database import Database, LedgerConnection, SqliteFile
from pyaccount.ledger.events import moment_of, spelled
from pyaccount.ledger.rows import LedgerRows
from pyaccount.ledger.state import Account, BlockState, BrokenRuleError, KeptDataSet, LedgerEntry


def _open_database(place: str | os.PathLike[str]) -> Database:
    """Return the database of a ledger: a file, or the address of a PostgreSQL server. Nothing is opened yet."""
    if isinstance(place, str) and place.split(":", 1)[0].split("+", 1)[0] in ("postgresql", "postgres"):
        from pyaccount.ledger.server import Server  # an extra

        return Server(place)
    return SqliteFile(place)


def periods_between(name: str, now: datetime, every: str) -> int:
    """Return how many periods ago a period was: 0 for the current one, less for later ones. Periods are those of UTC."""
    # The first day of a period: `2026`, `2026-03` or `2026-03-31`.
    year, month, day = (*map(int, name.split("-")), 1, 1)[:3]
    current, then = now.astimezone(UTC).date(), date(year, month, day)
    if every == "day":
        return (current - then).days
    months = 12 * (current.year - then.year) + current.month - then.month
    return months if every == "month" else current.year - then.year


#: How far the clock of a machine may be behind the last event.
SKEW = timedelta(minutes=5)

#: The longest text that says who, or what for.
LONGEST = 200


def refuse(  # noqa: PLR0913 - the parts of a problem
    slug: str,
    message: str,
    path: tuple[str | int, ...],
    place: str,
    *,
    value: object = None,
    allowed: str | None = None,
) -> LedgerError:
    """Return the error of what a ledger does not allow; `place` is the ledger."""
    return LedgerError([Problem(slug, message, path, place, value=value, allowed=allowed)])


class LedgerAccess:
    """A ledger without its methods for users."""

    def __init__(self, place: str | os.PathLike[str], *, clock: Callable[[], datetime] | None = None) -> None:
        """Name a ledger. `clock` returns the current time, with its time zone; by default that of this machine."""
        self._database: Database = _open_database(place)
        self._clock = clock or partial(datetime.now, UTC)

    @property
    def place(self) -> str:
        """The file, or the address of the server, without a password."""
        return self._database.place

    def _concerned(self, rows: LedgerRows, kept: KeptDataSet, names: Sequence[str]) -> list[BlockState]:
        """Return the blocks of an entry. A period that nobody has used yet is one too."""
        data_set = kept.data_set
        if not names:
            usable = [block for block in rows.blocks(data_set.name) if block.open]
            if data_set.periods is not None or len(usable) != 1:
                listed = ", ".join(block.name for block in usable[:20]) or "none"
                message = f"name the blocks whose data is used: the open blocks of {data_set.name} are {listed}"
                raise refuse("unknown-name", message, ("data_sets", data_set.name, "blocks"), self.place)
            return usable
        if len(set(names)) < len(names):
            message = f"a block is named twice: {', '.join(names)}"
            raise refuse("not-allowed-now", message, ("data_sets", data_set.name, "blocks"), self.place)
        blocks = []
        for name in names:
            block = self._block(rows, kept, name)
            if not block.open or self._expired(data_set, name):
                message = f"the block {name} is retired, so that it takes no entry: use newer data"
                raise refuse("not-allowed-now", message, ("data_sets", data_set.name, "blocks", name), self.place)
            blocks.append(block)
        return blocks

    def _block(self, rows: LedgerRows, kept: KeptDataSet, name: str) -> BlockState:
        """Return a block of a data set. Raises `LedgerError` if it has none of this name."""
        data_set = kept.data_set
        block = rows.block(data_set.name, name)
        if block is not None:
            return block
        periods = data_set.periods
        if periods is not None and is_period(name, periods.every) and name >= periods.since:
            return self._not_yet(kept, name)
        listed = ", ".join(block.name for block in rows.blocks(data_set.name)[:20]) or "none"
        more = "" if periods is None else f"; and each {periods.every} since {periods.since}"
        message = f"{data_set.name} has no block {quoted(name)}: its blocks are {listed}{more}"
        raise refuse("unknown-name", message, ("data_sets", data_set.name, "blocks"), self.place, value=name)

    @staticmethod
    def _not_yet(kept: KeptDataSet, name: str) -> BlockState:
        """Return the block of a period that nobody has used."""
        accounts = {filter_: Account(rule.nothing) for filter_, rule in kept.filters.items()}
        return BlockState(kept.data_set.name, name, accounts, kept.empty, version=-1)

    def _expired(self, data_set: DataSet, name: str) -> bool:
        """Return whether a block is a period that is kept no longer."""
        periods = data_set.periods
        if periods is None or periods.keep is None or not is_period(name, periods.every):
            return False
        return periods_between(name, self._clock(), periods.every) >= periods.keep

    def _kept(self, rows: LedgerRows, name: str | None) -> KeptDataSet:
        if name is None:
            names = rows.data_sets()
            if len(names) != 1:
                listed = ", ".join(names) or "none"
                message = f"name the data set: the ledger has {listed}"
                raise refuse("unknown-name", message, ("data_sets",), self.place)
            name = names[0]
        kept = rows.data_set(name)
        if kept is None:
            listed = ", ".join(rows.data_sets()) or "none"
            message = f"the ledger has no data set {quoted(name)}: it has {listed}"
            raise refuse("unknown-name", message, ("data_sets",), self.place, value=name)
        return kept

    def _entry(self, rows: LedgerRows, entry: LedgerEntry | str) -> LedgerEntry:
        identity = entry if isinstance(entry, str) else entry.id
        found = rows.entry(identity)
        if found is None:
            message = f"the ledger has no entry {quoted(identity)}: `pyaccount ledger history` lists them"
            raise refuse("unknown-name", message, ("entries",), self.place, value=identity)
        # What its events change.
        kept = rows.data_set(found.data_set)
        assert kept is not None
        for place in found.places:
            rows.block(found.data_set, place.block)
        return found

    def _wrong_state(self, entry: LedgerEntry, wanted: str, remedy: str) -> LedgerError:
        since = {"reserved": entry.reserved, "begun": entry.begun}.get(entry.state, entry.ended)
        message = f"{entry.id} cannot be {wanted}: it is {entry.state} since {since}: {remedy}"
        return refuse("not-allowed-now", message, ("entries", entry.id), self.place, value=entry.state)

    def _check_text(self, text: str, what: str) -> None:
        """Raise `LedgerError` unless a text is one printable line."""
        if not isinstance(text, str) or not text.strip() or len(text) > LONGEST or not text.isprintable():
            message = f"{what} = {quoted(text)}: a text of 1 to {LONGEST} printable characters is expected"
            raise refuse("unknown-name", message, (), self.place, value=text if isinstance(text, str) else None)

    def _add(self, rows: LedgerRows, kind: str, content: dict[str, Any]) -> None:
        """Add an event at the current time. Raises `LedgerError` if the clock is too far behind the last event."""
        now = spelled(self._clock())
        if self._is_behind(rows, now):
            message = (
                f"the clock of this machine says {now}, and the last event of the ledger is of {rows.head.time}: a clock that "
                "goes back would put the order of events in doubt. Set the clock; or, if it is right, and that event was written "
                "by a wrong clock, set the ledger back with `pyaccount ledger amend-clock`"
            )
            raise refuse("clock-behind", message, (), self.place)
        self._write(rows, kind, max(now, rows.head.time), content)

    @staticmethod
    def _is_behind(rows: LedgerRows, now: str) -> bool:
        """Return whether the current time is so far before the last event that no event may follow it."""
        return bool(rows.head.time) and moment_of(now) < moment_of(rows.head.time) - SKEW

    def _write(self, rows: LedgerRows, kind: str, time: str, content: dict[str, Any]) -> None:
        try:
            rows.add(kind, time, content)
        except BrokenRuleError as error:
            message = f"the tables of the ledger contradict this entry ({error}): run `pyaccount ledger verify`"
            raise refuse("ledger-damaged", message, (), self.place) from error

    @contextmanager
    def _reading(self) -> Iterator[LedgerRows]:
        with self._database.reading() as connection:
            yield self._rows(connection)

    @contextmanager
    def _writing(self) -> Iterator[LedgerRows]:
        with self._database.writing() as connection:
            yield self._rows(connection)

    def _rows(self, connection: LedgerConnection) -> LedgerRows:
        return LedgerRows(connection, self.place)

"""Rows that somebody damaged: every command works, or says which ledger is damaged; `verify` says where."""

import contextlib
import json
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ledger_samples import Clock, data_set, gaussian
from nightly import NIGHTLY
from snapshots import Snapshot

import pyaccount
from pyaccount import BudgetError, Ledger, LedgerError, LedgerStorageError
from pyaccount.ledger.events import canonical

#: How many damages of each column are tried, and four times as many of those with JSON.
CASES = 30 if NIGHTLY else 3
VALUES: list[object] = [
    *(None, "", "x", 0, -1, 2**62, 1.5, float("inf"), b"\x00\xff", b"{}", "2099-13-45T99:00:00.000000Z", "a\nb\x1b[2J"),
    *(
        "null",
        "[]",
        "{}",
        "1",
        '"x"',
        "[1]",
        "[[]]",
        '[{"block": 1}]',
        '{"a": NaN}',
        "[" * 10**5,
        "{" * 9,
        "NaN",
        "1e999",
    ),
]
#: What a key of the content of a row is set to; the last one stands for its loss.
INSIDE: list[object] = [None, "x", -1, True, 1.5, 10**400, [], {}, [1], ["x"], {"x": 1}, [[0.5]], "lost"]
#: Columns that only order rows.
ORDERS = {("entries", "sequence"), ("places", "sequence"), ("head", "one")}
TABLES = ("head", "events", "data_sets", "blocks", "entries", "places", "phases")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with entries in all states, fixed and in filters."""
    place = tmp_path_factory.mktemp("whole") / "budgets.db"
    ledger = Ledger(place, clock=Clock())
    ledger.create(data_set("a", privacy={"mu": 0.6}))
    ledger.create(data_set("b", filters=[{"name": "f", "mu": 0.5}], blocks=[{"name": "old"}]))
    for name, blocks in (("a", ()), ("b", ("old",))):
        entries = [
            ledger.reserve(gaussian(0.1), who="ann", purpose="p", data_set=name, blocks=blocks, id=f"{name}{k}")
            for k in range(4)
        ]
        ledger.release(entries[0])
        ledger.begin(entries[1])
        ledger.begin(entries[2], run="0" * 64)
        if name == "a":
            ledger.commit(entries[1], pyaccount.certify(gaussian(0.1)))
    ledger.reserve(gaussian(0.1), who="bob", purpose="p", data_set="b", blocks=("old",), id="late")
    return place


def damaged(value: object, generator: random.Random) -> Iterator[object]:
    """Other values of a column; of JSON, also with another value at each place in it."""
    yield from VALUES
    if not isinstance(value, str) or value[:1] not in ("{", "["):
        return
    content = json.loads(value)
    for keys in paths(content):
        for new in INSIDE:
            copy = json.loads(value)
            inner = copy
            for key in keys[:-1]:
                inner = inner[key]
            if new == "lost":
                del inner[keys[-1]]
            else:
                inner[keys[-1]] = new
            yield canonical(copy) if new != 10**400 else json.dumps(copy)


def paths(content: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, below in items:
        yield (*above, key)
        yield from paths(below, (*above, key))


def commands(ledger: Ledger) -> dict[str, Callable[[], object]]:
    def reserve(data_set: str, *blocks: str) -> Callable[[], object]:
        return lambda: ledger.reserve(gaussian(0.01), who="w", purpose="p", data_set=data_set, blocks=blocks)

    return {
        "status": lambda: (ledger.status().to_markdown(), ledger.status().to_openmetrics(), ledger.status().to_json()),
        "history": lambda: ledger.history().to_markdown(),
        "history of b": lambda: ledger.history("b").to_json(),
        "entry": lambda: [ledger.entry(one) for one in ("a0", "a1", "b2", "b3", "late")],
        "admission": lambda: ledger.admission(gaussian(0.02), data_set="b", blocks=("old",)),
        "release": lambda: ledger.release("b3"),
        "reserve a": reserve("a"),
        "reserve b": reserve("b", "old"),
        "begin": lambda: ledger.begin("a3"),
        "commit": lambda: ledger.commit("b1", pyaccount.certify(gaussian(0.1))),
        "add": lambda: ledger.add_block("new", data_set="b"),
        "change": lambda: ledger.change(data_set("a", privacy={"mu": 0.7})),
        "retire": lambda: ledger.retire_block("old", data_set="b"),
        "amend": lambda: ledger.amend_clock(reason="p"),
        "data set": lambda: [ledger.data_set(one) for one in "ab"],
    }


def cases(place: Path) -> Iterator[tuple[str, str, int, object]]:
    """Damages: table, column, row and value; a few of each column, and more at night."""
    generator = random.Random(65)
    with contextlib.closing(sqlite3.connect(place)) as connection:
        for table in TABLES:
            columns = [name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")]
            rows = connection.execute(f"SELECT rowid, {', '.join(columns)} FROM {table}").fetchall()
            for index, column in enumerate(columns, 1):
                found = [
                    (table, column, row[0], value)
                    for row in rows
                    for value in damaged(row[index], generator)
                    if value != row[index] or type(value) is not type(row[index])
                ]
                yield from generator.sample(found, min(len(found), CASES * (4 if column == "content" else 1)))


def test_every_command_works_or_says_where_the_damage_is(whole: Path, tmp_path: Path) -> None:
    place, seen = tmp_path / "budgets.db", 0
    with contextlib.closing(sqlite3.connect(whole)) as connection:
        before = {table: connection.execute(f"SELECT * FROM {table}").fetchall() for table in TABLES}
    for number, (table, column, row, value) in enumerate(cases(whole)):
        shutil.copy(whole, place)
        with contextlib.closing(sqlite3.connect(place)) as connection:
            try:
                connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (value, row))
            except sqlite3.IntegrityError:
                continue
            connection.commit()
            changed = connection.execute(f"SELECT * FROM {table}").fetchall() != before[table]
        ledger = Ledger(place, clock=Clock("2026-03-16T12:00:00+00:00"))
        what = f"{table}.{column} of the row {row} = {str(value)[:200]!r}"
        if changed and (table, column) not in ORDERS:
            try:
                intact = ledger.verify(recompute=True).intact
            except LedgerStorageError:
                # A ledger of another format, or without a head, is not read at all.
                intact = table != "head"
            assert not intact, what
            seen += 1
        every = list(commands(ledger).items())
        for name, command in every if CASES > 10 else every[number % 3 :: 3]:
            said = str(place)
            try:
                command()
            except (LedgerError, BudgetError, LedgerStorageError) as error:
                said = str(error)
            except Exception as error:
                pytest.fail(f"{what}: {name}: {error!r}")
            assert str(place) in said, f"{what}: {name}"
    assert seen > 60


def test_an_event_that_cannot_be_worded_is_damage(whole: Path, tmp_path: Path, snapshot: Snapshot) -> None:
    place = tmp_path / "budgets.db"
    shutil.copy(whole, place)
    with contextlib.closing(sqlite3.connect(place)) as connection:
        connection.execute("UPDATE events SET content = json_remove(content, '$.purpose') WHERE sequence = 3")
        connection.commit()
    snapshot.raised(lambda: Ledger(place).history())


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER t AFTER INSERT ON entries BEGIN UPDATE blocks SET content = '{}'; END",
        "ALTER TABLE places RENAME TO other; CREATE VIEW places AS SELECT * FROM other WHERE counts = 0",
        "CREATE VIEW innocent AS SELECT 1",
        "DROP INDEX places_by_block",
        "ALTER TABLE events ADD COLUMN more TEXT",
    ],
    ids=range(5),
)
def test_what_was_added_to_a_file_is_seen(whole: Path, tmp_path: Path, statement: str, snapshot: Snapshot) -> None:
    place = tmp_path / "budgets.db"
    shutil.copy(whole, place)
    assert Ledger(place).verify().intact
    with contextlib.closing(sqlite3.connect(place)) as connection:
        connection.executescript(statement)
    snapshot([damage.message for damage in Ledger(place).verify().damage])


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; "
            "CREATE TRIGGER t BEFORE INSERT ON entries FOR EACH ROW EXECUTE FUNCTION f()",
            "the table entries has a trigger",
        ),
        (
            "ALTER TABLE places RENAME TO other; CREATE VIEW places AS SELECT * FROM other WHERE counts = 0",
            "places is not the table of a ledger",
        ),
        ("CREATE RULE r AS ON DELETE TO events DO INSTEAD NOTHING", "the table events has a rule"),
        ("ALTER TABLE entries ENABLE ROW LEVEL SECURITY", "the table entries has policies that hide rows"),
        ("ALTER TABLE head ADD COLUMN more TEXT", "head is not the table of a ledger"),
    ],
)
def test_what_was_added_to_a_server_is_seen(statement: str, message: str) -> None:
    from postgres import UnavailableError, new_database

    try:
        place = new_database()
    except UnavailableError as error:
        pytest.skip(str(error))
    import sqlalchemy

    ledger = Ledger(place)
    ledger.create(data_set())
    assert ledger.verify().intact
    engine = sqlalchemy.create_engine(place.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        connection.exec_driver_sql(statement)
    engine.dispose()
    assert any(message in damage.message for damage in ledger.verify().damage)

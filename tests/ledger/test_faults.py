"""Writers that die, get in each other's way, run out of disk, or find a ledger that somebody changed."""

import contextlib
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from faulty_ledger import Faulty, Killed, Simulation
from ledger_samples import Clock, data_set, gaussian
from places import ROOT
from postgres import UnavailableError, new_database
from snapshots import Snapshot

import pyaccount
from pyaccount import Ledger, LedgerStorageError
from pyaccount.ledger import database

MUS = (0.05, 0.1, 0.2)
DOCUMENTS = [gaussian(mu, f"m{mu}") for mu in MUS]
SQUARES = [(1 / Fraction(repr(1.0 / mu))) ** 2 for mu in MUS]


def test_two_writers_who_die_at_any_statement(place: str) -> None:
    """A smaller one of `benchmarks/ledger.py`: nothing is overspent, nothing that was accepted is lost, the chain is whole."""
    ledger = Ledger(place)
    ledger.create(data_set("a", privacy={"mu": 0.6}))
    ledger.create(data_set("b", filters=[{"name": "f", "mu": 0.5}], privacy={"epsilon": 2.5, "delta": 1e-6}))
    certificates = [pyaccount.certify(document) for document in DOCUMENTS]
    simulation = Simulation(place, 3, DOCUMENTS, certificates)
    simulation.run(150, ["a", "b"])
    simulation.check(SQUARES, {"a": 0.6, "b": -2.5})
    assert min(simulation.kills, simulation.refusals, len(simulation.accepted)) > 5


def test_a_death_at_every_statement_leaves_all_or_nothing(place: str) -> None:
    """At each statement in turn, of each command: the command is not done, except if its writer died after the commit."""
    ledger, document = Ledger(place), gaussian(0.01)
    ledger.create(data_set(filters=[{"name": "f", "mu": 0.5}]))
    certificate = pyaccount.certify(document)
    fault = Faulty(ledger._database)
    done = []
    entry: Any = None
    for command in ("reserve", "begin", "commit"):
        for fuse in range(40):
            before = len(ledger.history().events)
            dying = Ledger(place)
            dying._database = fault
            fault.fuse = fuse
            try:
                if command == "reserve":
                    dying.reserve(document, who="w", purpose="p", id="one")
                elif command == "begin":
                    dying.begin("one")
                else:
                    dying.commit("one", certificate)
            except Killed:
                pass
            after = len(ledger.history().events)
            assert after - before in (0, 1)
            assert ledger.verify().intact
            if after > before:
                done.append((command, fuse))
                break
    assert [command for command, _ in done] == ["reserve", "begin", "commit"]
    assert all(fuse > 3 for _, fuse in done)
    assert ledger.entry("one").state == "committed"
    assert entry is None


def test_another_writer_comes_between_the_decision_and_the_transaction(place: str, snapshot: Snapshot) -> None:
    """What was decided as fixed is decided again if an entry has begun meanwhile, and a filter that filled up refuses."""
    first, second = Ledger(place), Ledger(place)
    first.create(data_set(filters=[{"name": "f", "mu": 0.5}], privacy={"epsilon": 5, "delta": 1e-6}))
    waiting = first.reserve(gaussian(0.1), who="w", purpose="p")
    fault = Faulty(first._database)
    first._database = fault

    def begins() -> None:
        fault.before = lambda: None
        second.begin(waiting)

    fault.before = begins
    assert first.reserve(gaussian(0.4), who="w", purpose="p").places[0].filter == "f"

    def spends() -> None:
        fault.before = lambda: None
        second.reserve(gaussian(0.3), who="w", purpose="p")

    fault.before = spends
    snapshot.raised(lambda: first.reserve(gaussian(0.1), who="w", purpose="p"))
    assert second.verify().intact


def test_a_writer_who_is_always_interrupted_decides_under_the_lock(place: str) -> None:
    first, second = Ledger(place), Ledger(place)
    first.create(data_set())
    fault = Faulty(first._database)
    first._database = fault
    fault.before = lambda: (second.reserve(gaussian(0.01), who="x", purpose="p"), None)[1]
    first.reserve(gaussian(0.1), who="w", purpose="p")
    events = [event.content["who"] for event in second.history().events if event.event == "reserved"]
    assert events[-1] == "w"
    assert events.count("w") == 1


PROGRAM = """
import sys
sys.path.insert(0, sys.argv[3])
from ledger_samples import gaussian
import pyaccount
ledger, name = pyaccount.Ledger(sys.argv[1]), sys.argv[2]
document = gaussian(0.05, "m")
for k in range(1000):
    try:
        entry = ledger.reserve(document, who=name, purpose="p", id=f"{name}-{k}")
        print("reserved", entry.id, flush=True)
        ledger.begin(entry)
        print("begun", entry.id, flush=True)
    except pyaccount.BudgetError:
        print("full", flush=True)
        break
"""


def test_processes_that_are_killed(place: str, tmp_path: Path) -> None:
    """SIGKILL at random times: everything that a process said was done is in the ledger, and the budget holds."""
    ledger = Ledger(place)
    ledger.create(data_set(privacy={"mu": 0.5}))
    generator, said = random.Random(5), []
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    for turn in range(3):
        running = []
        for writer in range(2):
            command = [sys.executable, "-c", PROGRAM, place, f"{turn}{writer}", str(ROOT / "tests" / "helpers")]
            output = (tmp_path / f"{turn}{writer}").open("w+")
            running.append((subprocess.Popen(command, stdout=output, env=environment, cwd=tmp_path), output))
        for process, output in running:
            # It is killed at some time after it has said a few lines, on any machine.
            deadline, lines = time.monotonic() + 60.0, generator.randrange(1, 8)
            while Path(output.name).read_text().count("\n") < lines and time.monotonic() < deadline:
                time.sleep(0.002)
            time.sleep(generator.uniform(0.0, 0.03))
            process.send_signal(signal.SIGKILL)
            process.wait()
            output.close()
            said += [line.split() for line in Path(output.name).read_text().splitlines() if " " in line]
    assert ledger.verify().intact
    events = {(event.event, event.entry) for event in ledger.history().events}
    assert {(word, entry) for word, entry in said} <= events
    assert sum(word == "reserved" for word, _ in events) * SQUARES[0] <= Fraction(1, 4)
    assert said


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
def test_a_disk_that_is_full_in_the_middle_of_a_commit(tmp_path: Path) -> None:
    """The file may not grow: SQLite reports a full disk, and nothing is half-written."""
    place = tmp_path / "budgets.db"
    ledger = Ledger(place)
    ledger.create(data_set(privacy={"mu": 5}))
    for _ in range(3):
        ledger.reserve(gaussian(0.1), who="w", purpose="p")
    before = ledger.history()
    program = (
        "import resource, sys, signal; sys.path.insert(0, sys.argv[2]); signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "import pyaccount, pathlib; from ledger_samples import gaussian\n"
        "ledger, document = pyaccount.Ledger(sys.argv[1]), gaussian(0.1)\n"
        "ledger.status()\n"
        "size = pathlib.Path(sys.argv[1]).stat().st_size; resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))\n"
        "try:\n"
        "    for k in range(1000): ledger.reserve(document, who='w' * 150, purpose='p' * 150)\n"
        "except pyaccount.LedgerStorageError as error:\n"
        "    print(k, error)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program, str(place), str(ROOT / "tests" / "helpers")],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    written, _, message = done.stdout.partition(" ")
    assert f"{place}: the ledger cannot be written" in message
    assert "Nothing of this command was written" in message
    assert ledger.verify().intact
    assert len(ledger.history().events) == len(before.events) + int(written)
    ledger.reserve(gaussian(0.1), who="w", purpose="p")


def changed(place: str, statement: str) -> None:
    """Change the ledger behind its back."""
    if place.startswith("postgresql"):
        import sqlalchemy

        engine = sqlalchemy.create_engine(place.replace("postgresql:", "postgresql+psycopg:"))
        with engine.begin() as connection:
            connection.exec_driver_sql(statement.replace("%", "%%"))
        engine.dispose()
        return
    with contextlib.closing(sqlite3.connect(place)) as connection:
        connection.execute(statement)
        connection.commit()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET content = replace(content, 'ann', 'bob') WHERE sequence = 2",
        "DELETE FROM events WHERE sequence = 2",
        "DELETE FROM events WHERE sequence = 3",
        "UPDATE head SET hash = previous FROM events WHERE events.sequence = 2",
        "UPDATE blocks SET content = replace(content, '\"open\":true', '\"open\":false')",
        "UPDATE entries SET content = replace(content, '\"begun\"', '\"released\"')",
        "UPDATE phases SET content = '[]'",
        "UPDATE places SET counts = 0",
        "DELETE FROM entries",
        "UPDATE entries SET document = 'x'",
        "UPDATE data_sets SET content = replace(content, '\"epsilon\":3', '\"epsilon\":4')",
    ],
)
def test_a_ledger_that_somebody_changed(place: str, statement: str, snapshot: Snapshot) -> None:
    ledger = Ledger(place, clock=Clock())
    ledger.create(data_set())
    ledger.begin(ledger.reserve(gaussian(0.1), who="ann", purpose="p"))
    assert ledger.verify().intact
    changed(place, statement)
    snapshot([f"{one.sequence}: {one.message}" for one in ledger.verify().damage])


def test_a_chain_that_was_made_anew_breaks_a_rule_or_lacks_a_hash_that_was_noted(place: str, tmp_path: Path) -> None:
    """Whoever recomputes all hashes is found by the rules, or by a hash that was noted elsewhere."""
    from pyaccount.ledger.events import Event, Head
    from pyaccount.ledger.state import BrokenRuleError, State

    ledger = Ledger(place)
    ledger.create(data_set(privacy={"mu": 0.5}))
    ledger.reserve(gaussian(0.4), who="ann", purpose="p")
    noted = ledger.verify().head
    first, second = ledger.history().events
    state, head = State(), Head()
    event = Event.after(head, first.time, first.event, first.content)
    assert event.hash == first.hash
    state.apply(event)
    second.content["places"][0]["cost"] = [0.3]
    with pytest.raises(BrokenRuleError, match="does not admit"):
        state.apply(Event.after(Head.of(event), second.time, second.event, second.content))
    other = Ledger(tmp_path / "other.db")
    other.create(data_set(privacy={"mu": 0.5}))
    assert ledger.verify(expected_head=noted).intact
    found = other.verify(expected_head=noted)
    assert "its end was cut off" in found.damage[0].message.replace("the end of the ledger", "its end")


def test_a_total_that_is_too_small_is_found_by_computing_it_again(place: str) -> None:
    """Somebody who writes both the events and the tables can understate a total; nobody can hide it from the arithmetic."""
    from pyaccount.ledger.rows import LedgerRows

    ledger = Ledger(place)
    ledger.create(data_set())
    entry = ledger.reserve(gaussian(0.5), who="ann", purpose="p")
    content = ledger.history().events[-1].content
    forged = Ledger(place)
    with forged._database.writing() as connection:
        rows = LedgerRows(connection, place)
        rows.data_set("customers")
        rows.block("customers", "all")
        again = {**content, "id": "forged", "totals": {"all": {"value": 0.1, "epsilon": 0.1, "delta": 1e-6}}}
        rows.add("reserved", entry.reserved, again)
    assert ledger.verify().intact
    found = ledger.verify(recompute=True)
    assert "the total of the block all of customers is" in found.damage[0].message


def test_a_ledger_of_another_version(place: str, snapshot: Snapshot) -> None:
    ledger = Ledger(place)
    ledger.create(data_set())
    changed(place, "PRAGMA user_version = 2" if not place.startswith("postgresql") else "UPDATE head SET format = 2")
    for refused in (
        ledger.status,
        lambda: ledger.reserve(gaussian(), who="w", purpose="p"),
        lambda: ledger.create(data_set("x")),
    ):
        snapshot.raised(refused)


def test_files_that_are_no_ledger(tmp_path: Path, snapshot: Snapshot) -> None:
    text, other = tmp_path / "notes.txt", tmp_path / "other.db"
    text.write_text("This is not a database, although it is long enough to be one." * 9)
    changed(str(other), "CREATE TABLE mine (x)")
    store = tmp_path / "runs.db"
    pyaccount.Store(store).close()
    for path in (
        text,
        other,
        store,
        tmp_path,
    ):
        for refused in (Ledger(path).status, lambda path=path: Ledger(path).create(data_set())):
            snapshot.raised(refused)
    snapshot.raised(lambda: Ledger(tmp_path / "none" / "x.db").create(data_set()))
    assert text.read_text().startswith("This is not")


def test_a_copy_of_the_file_is_the_whole_ledger(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "budgets.db")
    ledger.create(data_set())
    entry = ledger.reserve(gaussian(0.1), who="ann", purpose="p")
    assert [path.name for path in tmp_path.iterdir()] == ["budgets.db"]
    shutil.copy(tmp_path / "budgets.db", tmp_path / "copy.db")
    assert Ledger(tmp_path / "copy.db").entry(entry.id) == entry


def test_a_writer_waits_for_another_one_and_gives_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot
) -> None:
    ledger = Ledger(tmp_path / "budgets.db")
    ledger.create(data_set())
    monkeypatch.setattr(database, "PATIENCE", 0.1)
    monkeypatch.setattr(database, "SPELL", 0.05)
    with contextlib.closing(sqlite3.connect(tmp_path / "budgets.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        snapshot.raised(ledger.add_block, "new")
        other.execute("ROLLBACK")
    ledger.add_block("new")


HOLDER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute(sys.argv[2])
connection.execute("SELECT * FROM head").fetchall()
print("locked", flush=True)
sys.stdin.readline()
connection.execute("ROLLBACK")
"""


@pytest.mark.parametrize(
    ("lock", "commands"),
    [
        ("BEGIN EXCLUSIVE", ("create", "status", "verify", "reserve")),
        # Others may read, and nobody may write.
        ("BEGIN IMMEDIATE", ("create", "reserve")),
        # A reader, for whom a commit has to wait.
        ("BEGIN", ("create", "reserve")),
    ],
)
def test_every_statement_waits_for_the_lock_of_another_process(
    lock: str, commands: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other process lets go only after the command has found the file locked three times."""
    place = tmp_path / "budgets.db"
    ledger = Ledger(place)
    ledger.create(data_set(privacy={"mu": 5}))
    monkeypatch.setattr(database, "SPELL", 0.01)
    work = {
        "create": lambda: ledger.create(data_set("other")),
        "status": ledger.status,
        "verify": ledger.verify,
        "reserve": lambda: ledger.reserve(gaussian(0.1), who="w", purpose="p", data_set="customers"),
    }
    for command in commands:
        with subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(place), lock], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as holder:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "locked\n"
            found = []

            def count(_: float, holder: subprocess.Popen[str] = holder, found: list[int] = found) -> None:
                found.append(1)
                if len(found) == 3:
                    holder.communicate("\n")

            monkeypatch.setattr(database.time, "sleep", count)
            work[command]()
            monkeypatch.undo()
            monkeypatch.setattr(database, "SPELL", 0.01)
            assert len(found) >= 3, command
    assert ledger.verify().intact


FROZEN = """
import sys
from pyaccount import Ledger, LedgerStorageError
from pyaccount.ledger import server
server.IDLE = 1
ledger = Ledger(sys.argv[1])
try:
    with ledger._writing() as rows:
        print("locked", flush=True)
        sys.stdin.readline()
        rows.data_sets()
except LedgerStorageError as error:
    print(error, flush=True)
ledger.add_block("mine")
"""


def test_a_frozen_client_of_a_server_loses_its_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others write after the server has ended its transaction, of which nothing stays; it connects again for its next command."""
    try:
        place = new_database()
    except UnavailableError as error:
        pytest.skip(str(error))
    from pyaccount.ledger import server

    ledger = Ledger(place)
    ledger.create(data_set(blocks=[{"name": "old"}]))
    # Long enough for the server to end the other transaction on a slow machine.
    monkeypatch.setattr(server, "PATIENCE", 20)
    command = [sys.executable, "-c", FROZEN, place]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as frozen:
        assert frozen.stdout is not None
        assert frozen.stdout.readline() == "locked\n"
        frozen.send_signal(signal.SIGSTOP)
        try:
            ledger.add_block("new")
        finally:
            frozen.send_signal(signal.SIGCONT)
        said, _ = frozen.communicate("\n")
    assert "cannot be written" in said
    assert "idle-in-transaction timeout" in said
    assert frozen.returncode == 0
    assert [event.content["block"] for event in ledger.history().events[1:]] == ["new", "mine"]
    assert ledger.verify().intact


def test_a_password_is_not_shown() -> None:
    ledger = Ledger("postgresql://me:secret@nowhere.invalid:5432/budgets")
    assert "secret" not in ledger.place
    with pytest.raises(LedgerStorageError) as caught:
        ledger.status()
    assert "secret" not in str(caught.value)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_forked_processes_use_the_ledger_at_once(place: str, tmp_path: Path) -> None:
    """In a program of its own, since the workers of the tests have threads."""
    Ledger(place).create(data_set(privacy={"mu": 5}))
    program = (
        "import os, sys; sys.path.insert(0, sys.argv[2])\n"
        "import pyaccount; from ledger_samples import gaussian\n"
        "ledger = pyaccount.Ledger(sys.argv[1]); ledger.status()\n"
        "children = [os.fork() for _ in range(2)]\n"
        "for k in range(8): ledger.reserve(gaussian(0.1), who=str(children), purpose='p')\n"
        "if 0 not in children: sys.exit(sum(os.waitpid(child, 0)[1] for child in children))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", program, place, str(ROOT / "tests" / "helpers")]
    subprocess.run(command, check=True, env=environment, cwd=tmp_path)
    assert len(Ledger(place).history().events) == 1 + 4 * 8
    assert Ledger(place).verify().intact


def test_nothing_is_written_after_a_refusal(place: str, snapshot: Snapshot) -> None:
    ledger = Ledger(place)
    ledger.create(data_set(privacy={"mu": 0.2}))
    before = ledger.history()
    for refused in (
        lambda: ledger.reserve(gaussian(0.3), who="w", purpose="p"),
        lambda: ledger.reserve(gaussian(0.1), who="", purpose="p"),
        lambda: ledger.begin("e9"),
        lambda: ledger.create(data_set()),
        lambda: ledger.retire_block("none"),
    ):
        snapshot.raised(refused)
    assert ledger.history() == before

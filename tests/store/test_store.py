"""The run store: what was finished is not computed twice, and no certificate is another one for it."""

import json
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from click.testing import CliRunner
from plain_documents import document, one_step, sectioned
from snapshots import Snapshot

import pyaccount
from pyaccount import cli
from pyaccount.errors import LimitError, StoreError
from pyaccount.store import Store, database, running


def sampled_document(**changes: Any) -> dict[str, Any]:
    base = sectioned(
        "adjacency=zero-out epsilon=1.5 delta=1e-3 dataset_size=1000 expected_batch_size=20 iterations=48",
        "sampler=b-min-sep min_separation=4 matrix=banded-square-root bands=4 multiplier=solve tolerance=0.05",
    )
    return document(**{**base, **changes})


def keep(store: Store, run: str) -> None:
    store.keep(run, name="test", versions="{}", certificate="{}")


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with Store(tmp_path / "runs.db") as opened:
        keep(opened, "run")
        yield opened


def test_a_finished_run_is_not_run_again(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    plain, seeded = document(privacy__epsilon="solve"), sampled_document(accounting={"tolerance": 0.1, "profile": []})
    for one in (plain, seeded):
        first = pyaccount.certify(one, store=store)
        assert pyaccount.certify(one, store=store).to_json() == first.to_json()
    with Store(store) as opened:
        assert [json.loads(run.certificate)["holds"] for run in opened.runs()] == [True, True]
    # What is asked differently is another run.
    other = pyaccount.certify(plain, store=store, overrides=["noise.multiplier=2"])
    assert other.data.noise_multiplier == 2.0
    with Store(store) as opened:
        assert len(opened.runs()) == 3


def test_an_interrupted_run_leaves_nothing_and_begins_anew(tmp_path: Path) -> None:
    one = sampled_document(accounting={"tolerance": 0.1, "profile": [], "seed": 3})
    with pytest.raises(LimitError, match=r"the time limit was reached: 0\.01 s, set by time_limit="):
        pyaccount.certify(one, store=tmp_path / "runs.db", time_limit=0.01)
    with Store(tmp_path / "runs.db") as opened:
        assert opened.runs() == []
    found = pyaccount.certify(one, store=tmp_path / "runs.db")
    assert found.data.guarantee == pyaccount.certify(one).data.guarantee


def test_the_seed_of_a_request_is_part_of_what_was_asked(tmp_path: Path) -> None:
    plan = pyaccount.compile(one_step(1.0))
    for seed in (None, 1, 2, 1):
        plan.run(seed=seed, store=tmp_path / "runs.db")
    with Store(tmp_path / "runs.db") as opened:
        assert len(opened.runs()) == 3


def test_what_is_finished_first_is_kept(store: Store) -> None:
    (first,) = store.runs()
    store.keep("run", name="test", versions="{}", certificate='{"other": 1}')
    assert store.runs() == [first]


def test_a_certificate_that_cannot_be_stored_is_returned_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise StoreError("runs.db: the store cannot be written: database or disk is full")

    monkeypatch.setattr(Store, "keep", full)
    with pytest.warns(UserWarning, match="disk is full; the run goes on without it"):
        assert pyaccount.certify(document(privacy__epsilon="solve"), store=tmp_path / "runs.db").holds


def test_what_a_time_limit_left_out_is_computed_next_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyaccount.certificate import issue

    store, one = tmp_path / "runs.db", document(privacy__epsilon="solve")
    with monkeypatch.context() as patch:
        complete = issue.issue
        patch.setattr(
            issue,
            "issue",
            lambda plan, evidence: type(found := complete(plan, evidence))(
                found.data.model_copy(update={"not_computed": ["curve"]})
            ),
        )
        assert pyaccount.certify(one, store=store).data.not_computed == ["curve"]
    assert pyaccount.certify(one, store=store).data.not_computed == []


def test_a_changed_file_is_another_run(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    one = sectioned(
        "adjacency=zero-out epsilon=solve delta=1e-5 iterations=3 sampler=none max_participations=1",
        "matrix=dense file=matrix.npy multiplier=1.0",
    )
    (tmp_path / "document.yaml").write_text(yaml.safe_dump(document(**one)), encoding="utf-8")
    found = []
    for size in (1.0, 0.5):
        np.save(tmp_path / "matrix.npy", np.tril(np.full((3, 3), size)))
        found.append(pyaccount.certify(tmp_path / "document.yaml", store=store).data.noise_multiplier)
    with Store(store) as opened:
        assert len(opened.runs()) == 2


def test_what_is_no_store_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot) -> None:
    text, other, later = tmp_path / "text.db", tmp_path / "other.db", tmp_path / "later.db"
    text.write_text("no database, but a text that is long enough to be one" * 20, encoding="utf-8")
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE mine (a)")
    Store(later).close()
    with sqlite3.connect(later) as connection:
        connection.execute("PRAGMA user_version = 2")
    one = document(privacy__epsilon="solve")
    for path in (text, other, later, tmp_path, tmp_path / "nowhere" / "runs.db"):
        snapshot.raised(pyaccount.certify, one, store=path)
        with pytest.warns(UserWarning, match="goes on without it"):
            assert pyaccount.certify(one, store=path, store_errors="continue").holds
    assert text.read_text(encoding="utf-8").startswith("no database")
    # One that may only be read.
    path, connect = tmp_path / "runs.db", sqlite3.connect
    Store(path).close()
    monkeypatch.setattr(
        sqlite3, "connect", lambda name, **options: connect(f"file:{name}?mode=ro", uri=True, **options)
    )
    snapshot.raised(pyaccount.certify, one, store=path)


def test_what_was_changed_is_not_believed(tmp_path: Path, snapshot: Snapshot) -> None:
    path, one = tmp_path / "other.db", document(privacy__epsilon="solve")
    pyaccount.certify(one, store=path)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE runs SET certificate = replace(certificate, '\"holds\": true', '\"holds\": false')")
    snapshot.raised(pyaccount.certify, one, store=path)


def test_what_another_core_would_draw_is_not_mixed_with_this_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two builds of one version, of which one gives other samples: each has its own run."""
    one = one_step(1.0)
    pyaccount.certify(one, store=tmp_path / "runs.db")
    mine = running.identity()
    monkeypatch.setattr(running, "identity", lambda: (*mine[:-2], ("samples", "other"), mine[-1]))
    pyaccount.certify(one, store=tmp_path / "runs.db")
    with Store(tmp_path / "runs.db") as opened:
        assert len(opened.runs()) == 2
        assert len({run.versions for run in opened.runs()}) == 1


def test_another_processs_lock_is_waited_for_and_no_longer(
    store: Store, monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot
) -> None:
    monkeypatch.setattr(database, "PATIENCE", 0.1)
    other = sqlite3.connect(store.path, timeout=0, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    snapshot.raised(store.remove, ["run"])
    # Reading waits for nobody.
    assert [run.id for run in store.runs()] == ["run"]
    monkeypatch.setattr(database, "PATIENCE", 60.0)
    # It lets go while this one waits.
    monkeypatch.setattr(database.time, "sleep", lambda _: other.execute("COMMIT"))
    store.remove(["run"])
    assert store.runs() == []
    other.close()


def test_a_store_that_another_process_writes_is_opened_once_it_lets_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where SQLite asks for the lock before a transaction begins, as in a file that is being created."""
    monkeypatch.setattr(database, "SPELL", 0.0)
    Store(tmp_path / "runs.db").close()
    other = sqlite3.connect(tmp_path / "runs.db", timeout=0, isolation_level=None)
    other.execute("PRAGMA journal_mode = DELETE")
    other.execute("BEGIN EXCLUSIVE")
    monkeypatch.setattr(database.time, "sleep", lambda _: other.in_transaction and other.execute("COMMIT"))
    with Store(tmp_path / "runs.db") as opened:
        assert opened.runs() == []
    assert not other.in_transaction
    other.close()


# ---- what lists it


def runs(*words: str) -> Any:
    return CliRunner().invoke(cli.commands, ["runs", *words], standalone_mode=False)


def test_the_command_lists_shows_and_removes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYACCOUNT_STORE", "runs.db")
    certificates = [pyaccount.certify(one_step(sigma), store="runs.db") for sigma in (1.0, 2.0)]
    listed = json.loads(runs("--format", "json").stdout)["runs"]
    assert [one["delta"] for one in listed] == [one.delta for one in certificates]
    shown = runs(listed[1]["id"][:12], "--format", "json")
    assert json.loads(shown.stdout)["document_sha256"] == certificates[1].data.document_sha256
    assert runs(listed[0]["id"][:12], "--remove").return_value == 0
    assert [one["id"] for one in json.loads(runs("--format", "json").stdout)["runs"]] == [listed[1]["id"]]
    both = [one["id"] for one in listed]
    for words in (("nothing",), ("",), ("--remove",), ("--store", "elsewhere.db"), (*both, "--format", "json")):
        assert type(runs(*words).exception).__name__ == "UsageError", words


@pytest.mark.parametrize("column", ["certificate", "versions", "checksum"])
def test_a_damaged_run_is_listed_and_removed_and_harms_no_other(
    column: str, tmp_path: Path, snapshot: Snapshot
) -> None:
    for sigma in (1.0, 2.0):
        pyaccount.certify(one_step(sigma), store=tmp_path / "runs.db")
    connection = sqlite3.connect(tmp_path / "runs.db")
    connection.execute(f"UPDATE runs SET {column} = 'x' WHERE rowid = 1")
    connection.commit()
    connection.close()
    store = ("--store", str(tmp_path / "runs.db"))
    listed = json.loads(runs(*store, "--format", "json").stdout)["runs"]
    assert sorted(one["damaged"] for one in listed) == [False, True]
    bad, good = sorted(listed, key=lambda one: not one["damaged"])
    assert runs(good["id"], *store, "--format", "json").return_value == 0
    assert isinstance(runs(bad["id"], *store).exception, StoreError)
    snapshot.raised(lambda: pyaccount.certify(one_step(1.0), store=tmp_path / "runs.db"))
    assert runs(bad["id"], "--remove", *store).return_value == 0
    assert pyaccount.certify(one_step(1.0), store=tmp_path / "runs.db").holds


def test_processes_may_make_one_store_together(tmp_path: Path) -> None:
    """Each opens twenty stores, as the others do."""
    program = (
        "import sys; from pyaccount.store import Store\n"
        "for k in range(20):\n"
        "    with Store(f'{sys.argv[1]}/{k}.db') as store:\n"
        "        store.keep('run', name='x', versions='{}', certificate='{}')\n"
    )
    opening = [
        subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    for one in opening:
        _, err = one.communicate()
        assert one.returncode == 0, err


def test_a_store_is_a_file_whatever_it_is_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pyaccount.certify(one_step(1.0), store=":memory:")
    assert (tmp_path / ":memory:").exists()

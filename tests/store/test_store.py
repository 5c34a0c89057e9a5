"""The run store: nothing is lost that was kept, nothing is computed twice, and no certificate is another one for it."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from click.testing import CliRunner
from made import sampled
from nightly import NIGHTLY
from places import ROOT
from plain_documents import document, one_step

import pyaccount
from pyaccount import _core, cli
from pyaccount.errors import StoreError
from pyaccount.execute.sampling.jobs import (
    SHARD,
    WAVE,
    BalancedJob,
    Bet,
    BetTable,
    Component,
    Job,
    Local,
    Proposal,
    Sums,
    Wave,
)
from pyaccount.plan.recipe import Recipe, fingerprint
from pyaccount.store import Store, database, kept, running
from pyaccount.store.kept import Kept
from pyaccount.store.spelling import as_json, balanced_of, wave_of


def sampled_document(**changes: Any) -> dict[str, Any]:
    base = {
        "privacy": {"adjacency": "zero-out", "epsilon": 1.5, "delta": 1e-3},
        "training": {"dataset_size": 1000, "expected_batch_size": 20, "iterations": 48},
        "sampler": {"kind": "b-min-sep", "min_separation": 4},
        "matrix": {"kind": "banded-square-root", "bands": 4},
        "noise": {"multiplier": "solve"},
        "accounting": {"tolerance": 0.05},
    }
    return document(**{**base, **changes})


def same(one: str, other: str) -> bool:
    """Whether certificates are equal, dates aside."""
    dateless = [
        {name: value for name, value in json.loads(text).items() if name not in ("created", "content_sha256")}
        for text in (one, other)
    ]
    return dateless[0] == dateless[1]


def test_killed_runs_go_on_as_if_nothing_had_been(tmp_path: Path) -> None:
    """Ten kills, at night twenty, two processes at once, and a disk that is full."""
    (tmp_path / "document.yaml").write_text(yaml.safe_dump(sampled_document()), encoding="utf-8")
    program = [sys.executable, str(ROOT / "tests" / "helpers" / "killed_runs.py"), "document.yaml", "."]
    program.append("20" if NIGHTLY else "10")
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert all(found["intact"])
    # What is kept is never less than before, until the run is finished.
    growing = list(takewhile(lambda kept: kept is not None, found["kept"]))
    assert growing == sorted(growing)
    assert max(growing) > 0
    assert not any(found["kept"][len(growing) :])
    assert -9 in found["codes"]
    whole = (tmp_path / "whole" / "first.json").read_text(encoding="utf-8")
    for name in ("killed/last", "full/later", "fuller/on"):
        assert same((tmp_path / f"{name}.json").read_text(encoding="utf-8"), whole), name
    # Both chose one seed, whoever was first.
    assert found["together"] == [0, 0]
    one, other = ((tmp_path / "twice" / f"{name}.json").read_text(encoding="utf-8") for name in ("one", "other"))
    assert same(one, other)
    # On a full disk a run stops, or goes on, as it was asked.
    assert found["stopped"] == 1
    assert "StoreError" in done.stderr
    assert "runs.db" in done.stderr
    assert found["went_on"] == 0
    assert "goes on without it" in (tmp_path / "fuller" / "on.warnings").read_text(encoding="utf-8")


class Counting(Local):
    """Counts what is run."""

    def __init__(self) -> None:
        super().__init__(1)
        object.__setattr__(self, "ran", [])

    def waves(self, job: Any, count: int, remaining: Any, first: int = 0) -> Any:
        for place, wave in enumerate(super().waves(job, count, remaining, first)):
            self.ran.append(first + place * WAVE)  # type: ignore[attr-defined]
            yield wave


def job(**changes: Any) -> Job:
    facts: dict[str, Any] = {
        "recipe": sampled("renewal", [0.8, 0.4], 9, 3, 0.2, True),
        "curve": None,
        "direction": "remove",
        "proposal": Proposal(0.3, 1.5),
        "tables": (BetTable(0.5, 50.0, (Bet(0.1, 0.01),)),),
        "key": (7, 2, 1, 0),
        **changes,
    }
    return Job(**facts)


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with Store(tmp_path / "runs.db") as opened:
        opened.begin("run", name="test", document="{}", versions="{}", seed=7)
        yield opened


def test_what_is_kept_is_not_run_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "INTERVAL", 0.0)
    count, one = 3 * WAVE + 5, job()
    whole = list(Local(1).waves(one, count, lambda: None))
    first = Counting()
    waves = Kept(store, "run", first, "stop").waves(one, count, lambda: None)
    begun = [next(waves), next(waves)]
    waves.close()
    assert first.ran == [0, WAVE]  # type: ignore[attr-defined]
    second = Counting()
    found = list(Kept(store, "run", second, "stop").waves(one, count, lambda: None))
    assert second.ran == [2 * WAVE, 3 * WAVE]  # type: ignore[attr-defined]
    assert begun + found[2:] == whole
    third = Counting()
    assert list(Kept(store, "run", third, "stop").waves(one, count, lambda: None)) == whole
    assert list(Kept(store, "run", third, "stop").waves(one, count, lambda: None, first=WAVE)) == whole[1:]
    assert third.ran == []  # type: ignore[attr-defined]
    # Of another job, and of another run, nothing is kept.
    list(Kept(store, "run", third, "stop").waves(job(key=(8, 2, 1, 0)), 1, lambda: None))
    assert third.ran == [0]  # type: ignore[attr-defined]


def test_sums_are_kept_to_the_last_bit() -> None:
    extreme = Wave([[Sums((-0.1, 1e-310), 0.1 + 0.2, float("inf"))]], None)
    assert wave_of(as_json(extreme)) == extreme
    counted = job(tables=(), edges=(-2.0, 0.01)).run(0, 3, 1, None)
    again = wave_of(as_json(counted))
    assert again.histogram is not None
    assert counted.histogram is not None
    assert again.histogram.state() == counted.histogram.state()
    assert again.histogram.samples == 3 * SHARD
    assert _core.Inspection.bins(again.histogram) == _core.Inspection.bins(counted.histogram)
    components = (Component(64, (), 0.0), Component(64, (0.3,), 1.5))
    balanced = BalancedJob(job().recipe, None, "remove", components, (0.5, 1.0), (1, 1, 1, 0)).run(2, 1, None)
    assert balanced_of(as_json(balanced)) == balanced


def test_fingerprints_tell_jobs_apart() -> None:
    """By every coordinate, to the last bit; and they are the same in another process."""
    changes: list[dict[str, Any]] = [
        {},
        {"recipe": sampled("renewal", [0.8, np.nextafter(0.4, 1.0).item()], 9, 3, 0.2, True)},
        {"recipe": sampled("renewal", [0.8, 0.4], 9, 3, 0.2, False)},
        {"recipe": sampled("users", [0.8, 0.4], 9, 3, 0.2, 1, True)},
        {"curve": Recipe("ComposedCurve", (0.0, 1.0, (0.5, 0.1), ((0.4, 0.5), (0.0, 0.1))))},
        {"direction": "add"},
        {"proposal": Proposal(0.3, 1.5000000001)},
        {"proposal": Proposal(0.3, 1.5, (), (Component(128, (), 0.0),))},
        {"tables": (BetTable(0.5, 50.0, (Bet(0.1, 0.02),)),)},
        {"tables": (BetTable(0.5, 50.0),)},
        {"key": (7, 2, 2, 0)},
        {"edges": (0.0, 1.0)},
    ]
    found = [job(**one).fingerprint for one in changes]
    assert len(set(found)) == len(found)
    assert fingerprint((1, 2), 3) != fingerprint((1,), (2, 3))
    assert fingerprint("ab", "c") != fingerprint("a", "bc")
    program = (
        "from pyaccount.plan.recipe import Recipe, fingerprint\n"
        "print(fingerprint(Recipe('Sampled.bins', ((0.1, 0.2), 3)), 'x', None, True, -0.0))"
    )
    elsewhere = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()
    assert elsewhere == fingerprint(Recipe("Sampled.bins", ((0.1, 0.2), 3)), "x", None, True, -0.0)
    with pytest.raises(TypeError, match="no fingerprint"):
        fingerprint(object())


def test_a_finished_run_is_not_run_again(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    plain, seeded = document(privacy__epsilon="solve"), sampled_document(accounting={"tolerance": 0.1, "profile": []})
    for one in (plain, seeded):
        first = pyaccount.certify(one, store=store)
        assert pyaccount.certify(one, store=store).to_json() == first.to_json()
    with Store(store) as opened:
        assert [run.finished is not None for run in opened.runs()] == [True, True]
        assert [opened.shards(run.id) for run in opened.runs()] == [0, 0]
    # What is asked differently is another run.
    other = pyaccount.certify(plain, store=store, overrides=["noise.multiplier=2"])
    assert other.data.noise_multiplier == 2.0
    with Store(store) as opened:
        assert len(opened.runs()) == 3


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
    one = {
        "privacy": {"adjacency": "zero-out", "epsilon": "solve", "delta": 1e-5},
        "training": {"iterations": 3},
        "sampler": {"kind": "none", "max_participations": 1},
        "matrix": {"kind": "dense", "file": "matrix.npy"},
        "noise": {"multiplier": 1.0},
    }
    (tmp_path / "document.yaml").write_text(yaml.safe_dump(document(**one)), encoding="utf-8")
    found = []
    for size in (1.0, 0.5):
        np.save(tmp_path / "matrix.npy", np.tril(np.full((3, 3), size)))
        found.append(pyaccount.certify(tmp_path / "document.yaml", store=store).data.noise_multiplier)
    with Store(store) as opened:
        assert len(opened.runs()) == 2


def test_what_is_no_store_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text, other, later = tmp_path / "text.db", tmp_path / "other.db", tmp_path / "later.db"
    text.write_text("no database, but a text that is long enough to be one" * 20, encoding="utf-8")
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE mine (a)")
    Store(later).close()
    with sqlite3.connect(later) as connection:
        connection.execute("PRAGMA user_version = 2")
    one = document(privacy__epsilon="solve")
    for path, message in (
        (text, "is not a store of pyaccount"),
        (other, "not a store of pyaccount"),
        (later, "format 2"),
        (tmp_path, "is a folder"),
        (tmp_path / "nowhere" / "runs.db", "does not exist"),
    ):
        with pytest.raises(StoreError, match=message) as caught:
            pyaccount.certify(one, store=path)
        assert str(path) in str(caught.value)
        with pytest.warns(UserWarning, match="goes on without it"):
            assert pyaccount.certify(one, store=path, store_errors="continue").holds
    assert text.read_text(encoding="utf-8").startswith("no database")
    # One that may only be read.
    path, connect = tmp_path / "runs.db", sqlite3.connect
    Store(path).close()
    monkeypatch.setattr(
        sqlite3, "connect", lambda name, **options: connect(f"file:{name}?mode=ro", uri=True, **options)
    )
    with pytest.raises(StoreError, match=r"cannot be written: .*readonly"):
        pyaccount.certify(one, store=path)


def test_what_was_changed_is_not_believed(tmp_path: Path, store: Store) -> None:
    list(Kept(store, "run", Local(1), "stop").waves(job(), 4, lambda: None))
    with sqlite3.connect(store.path) as connection:
        assert connection.execute("UPDATE waves SET sums = replace(sums, '1', '2')").rowcount == 1
    with pytest.raises(StoreError, match="are damaged; remove that run"):
        list(Kept(store, "run", Local(1), "stop").waves(job(), 4, lambda: None))
    with pytest.warns(UserWarning, match="goes on without it"):
        found = list(Kept(store, "run", Local(1), "continue").waves(job(), 4, lambda: None))
    assert found == list(Local(1).waves(job(), 4, lambda: None))
    path, one = tmp_path / "other.db", document(privacy__epsilon="solve")
    pyaccount.certify(one, store=path)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE runs SET certificate = replace(certificate, '\"holds\": true', '\"holds\": false')")
    with pytest.raises(StoreError, match="is damaged"):
        pyaccount.certify(one, store=path)


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


def test_another_processs_lock_is_waited_for_and_no_longer(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "PATIENCE", 0.1)
    other = sqlite3.connect(store.path, timeout=0, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="locked"):
        store.remove(["run"])
    # Reading waits for nobody.
    assert [run.id for run in store.runs()] == ["run"]
    monkeypatch.setattr(database, "PATIENCE", 60.0)
    # It lets go while this one waits.
    monkeypatch.setattr(database.time, "sleep", lambda _: other.execute("COMMIT"))
    store.remove(["run"])
    assert store.runs() == []
    other.close()


def test_a_run_that_is_removed_meanwhile_keeps_nothing(store: Store) -> None:
    waves = Kept(store, "run", Local(1), "stop").waves(job(), 2 * WAVE, lambda: None)
    next(waves)
    store.remove(["run"])
    list(waves)
    assert store.runs() == []
    assert store.shards("run") == 0


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


@pytest.mark.parametrize("column", ["certificate", "seed"])
def test_a_damaged_run_is_listed_and_removed_and_harms_no_other(column: str, tmp_path: Path) -> None:
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
    with pytest.raises(StoreError, match="damaged"):
        pyaccount.certify(one_step(1.0), store=tmp_path / "runs.db")
    assert runs(bad["id"], "--remove", *store).return_value == 0
    assert pyaccount.certify(one_step(1.0), store=tmp_path / "runs.db").holds


def test_processes_may_make_one_store_together(tmp_path: Path) -> None:
    """Each opens twenty stores, as the others do."""
    program = (
        "import sys; from pyaccount.store import Store\n"
        "for k in range(20):\n"
        "    with Store(f'{sys.argv[1]}/{k}.db') as store:\n"
        "        store.begin('run', name='x', document='{}', versions='{}', seed=1)\n"
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

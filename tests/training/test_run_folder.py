"""The folder of a run: its key and its record belong to one run, even after crashes, forks and copies."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from snapshots import Snapshot
from training_runs import go, same, started, sums

from pyaccount import _core
from pyaccount.errors import RunError


@pytest.mark.entropy
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a process of its own that is killed")
def test_killed_while_it_begins_a_run_can_still_begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process is killed at every call that changes a file. Afterwards the folder has a run, and no key served two runs."""
    points = 0
    while True:
        folder = tmp_path / str(points)
        child = os.fork()
        if child == 0:
            try:
                die_at(points, monkeypatch)
                started(folder).close()
            finally:
                os._exit(0)
        if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0:
            break
        with started(folder) as run:
            assert run.round == 0
            go(run, 1)
        with started(folder) as run:
            assert run.round == 1
        kept = [path.read_text() for path in folder.iterdir() if "run.key" in path.name]
        assert len(set(kept)) == len(kept)
        points += 1
    # These calls write, sync and rename folders, the record and the key.
    assert points > 8


def die_at(point: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """End the process before its `point`-th change of a file, or in the middle of it if it is a line of the record."""
    left = [point]

    def wrapped(name: str) -> None:
        usual = getattr(os, name)

        def call(*arguments: Any, **options: Any) -> Any:
            if left[0] == 0:
                if name == "write":
                    usual(arguments[0], arguments[1][: len(arguments[1]) // 2])
                os._exit(9)
            left[0] -= 1
            return usual(*arguments, **options)

        monkeypatch.setattr(os, name, call)

    for name in ("mkdir", "open", "write", "fsync", "link", "unlink"):
        wrapped(name)


def test_without_links_a_key_gets_its_name_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*arguments: Any, **options: Any) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "link", none)
    started(tmp_path).close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["record.jsonl", "run.key"]
    started(tmp_path).close()


def test_a_file_that_is_no_record_stays_as_it_is(tmp_path: Path, snapshot: Snapshot) -> None:
    (tmp_path / "record.jsonl").write_text("my notes")
    snapshot.raised(started, tmp_path)
    assert (tmp_path / "record.jsonl").read_text() == "my notes"


def test_a_key_that_is_there_is_never_replaced(tmp_path: Path, snapshot: Snapshot) -> None:
    """If two folders begin with one key file, the second gets no key and releases nothing."""
    started(tmp_path / "one", key=tmp_path / "shared.key").close()
    kept = (tmp_path / "shared.key").read_text()
    snapshot.raised(lambda: started(tmp_path / "two", key=tmp_path / "shared.key"))
    assert (tmp_path / "shared.key").read_text() == kept


@pytest.mark.parametrize("where", ["BatchStreams", "NoiseRows"])
def test_no_traceback_shows_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    """Tools that write the variables of tracebacks to logs find no secret bytes in ours."""
    run = started(tmp_path)
    keys = [run._folder.key, run._root, run._root.derive("batches", 0), run._root.derive("noise", 0, 0, "weight", 0)]

    def broken(*arguments: Any, **options: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(_core, where, broken)

    def drawn() -> None:
        run.batch(0)
        go(run, 1)

    with pytest.raises(ZeroDivisionError) as caught:
        drawn()
    text, trace = "", caught.value.__traceback__
    while trace is not None:
        if trace.tb_frame.f_globals["__name__"].startswith("pyaccount"):
            text += "".join(map(repr, trace.tb_frame.f_locals.values()))
        trace = trace.tb_next
    assert "RunKey(commitment=" in text
    for key in keys:
        assert key.reveal().hex() not in text
        assert repr(key.reveal())[2:-1] not in text


def test_ranks_are_held_against_one_another(tmp_path: Path, snapshot: Snapshot) -> None:
    runs = [started(tmp_path, rank=rank, world=3) for rank in range(3)]
    states = [run.rank_state for run in runs]
    assert states == [(0, 0, 0, 0), (1, 0, 0, 0), (2, 0, 0, 0)]
    for run in runs:
        run.check_ranks(states)
        # Frameworks gather numbers in this form.
        run.check_ranks(np.array(states))
    snapshot.raised(lambda: runs[0].check_ranks([states[0], states[1], states[1]]))
    snapshot.raised(lambda: runs[0].check_ranks(states[:2]))
    go(runs[0], 1)
    snapshot.raised(lambda: runs[0].check_ranks([run.rank_state for run in runs]))


def test_a_key_and_a_record_belong_together(tmp_path: Path, snapshot: Snapshot) -> None:
    started(tmp_path / "one").close()
    started(tmp_path / "two").close()
    (tmp_path / "one" / "run.key").replace(tmp_path / "kept.key")
    snapshot.raised(lambda: started(tmp_path / "one"))
    snapshot.raised(lambda: started(tmp_path / "one", key=tmp_path / "two" / "run.key"))
    started(tmp_path / "one", key=tmp_path / "kept.key").close()
    (tmp_path / "one" / "record.jsonl").unlink()
    snapshot.raised(lambda: started(tmp_path / "one", key=tmp_path / "kept.key"))


def test_the_record_tells_of_nothing_secret(tmp_path: Path) -> None:
    run = started(tmp_path)
    go(run, 12)
    lines = [json.loads(line) for line in (tmp_path / "record.jsonl").read_text().splitlines()]
    assert [line["event"] for line in lines] == ["run", "layout", *["release"] * 12]
    assert set(lines[5]) == {"event", "round", "attempt", "standard_deviations", "sum", "nonce", "previous"}
    assert len({line["nonce"] for line in lines[2:]}) == 12
    # Tags do not even show which rounds had the same sum, as empty batches do.
    other = started(tmp_path / "other")
    go(other, 5, lambda _: np.zeros(3))
    equal = [json.loads(line) for line in (tmp_path / "other" / "record.jsonl").read_text().splitlines()[2:]]
    assert len({line["sum"] for line in equal}) == 5
    key = (tmp_path / "run.key").read_text().strip()
    assert key not in (tmp_path / "record.jsonl").read_text()
    assert key not in repr(run)


@pytest.mark.parametrize("world", [2, 3])
def test_ranks_share_one_run(tmp_path: Path, world: int) -> None:
    runs = [started(tmp_path, rank=rank, world=world) for rank in range(world)]
    for number in range(4):
        parts = [run.batch(number).shard(rank, world).indices for rank, run in enumerate(runs)]
        assert np.array_equal(np.sort(np.concatenate(parts)), runs[0].batch(number).indices)
        released = [go(run, 1) for run in runs]
        assert all(same(released[0], one) for one in released[1:])
    assert [run.released for run in runs] == [4] * world
    go(runs[0], 1)
    with pytest.raises(RunError, match="add up the sums of all ranks"), runs[1].step() as step:
        step.release(sums(3))


def test_a_copy_of_a_run_does_not_go_on(tmp_path: Path, snapshot: Snapshot) -> None:
    """A copy would release other sums with the noise of the original."""
    run = started(tmp_path / "one")
    go(run, 1)
    run.close()
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    snapshot.raised(lambda: started(tmp_path / "two"))
    shutil.rmtree(tmp_path / "one")
    started(tmp_path / "two", moved=True).close()
    with started(tmp_path / "two") as again:
        assert again.round == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that share an open file")
def test_a_forked_process_releases_nothing(tmp_path: Path) -> None:
    run = started(tmp_path)
    child = os.fork()
    if child == 0:
        try:
            go(run, 1)
        except RunError as error:
            os._exit(0 if "another process opened this run" in str(error) else 2)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    go(run, 1)


def test_a_record_that_somebody_else_changes_ends_the_run(tmp_path: Path) -> None:
    run = started(tmp_path)
    go(run, 1)
    with (tmp_path / "record.jsonl").open("ab") as file:
        file.write(b"{}")
    with pytest.raises(RunError, match="changed by somebody else"), run.step() as step:
        step.release(sums(1))
    run.close()
    with pytest.raises(RunError, match="was closed"), run.step() as step:
        step.release(sums(1))

"""Despite interruptions, threads, ranks and files that change at a bad moment, no noise has two sums, and no round two noises."""

import contextlib
import json
import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from snapshots import Snapshot
from training_runs import CORRELATED, failing, fixed_draws, go, same, started, sums

from pyaccount.errors import RunError
from pyaccount.training import TrainingRun
from pyaccount.training import run as run_module
from pyaccount.training.folder import RunFolder
from pyaccount.training.mark import CallableMark
from pyaccount.training.record import Recorded, event_line, hash_of


def test_what_is_released_is_what_was_recorded_whoever_writes_to_the_sum(tmp_path: Path) -> None:
    """Here the callable that keeps the mark writes to the sum after it was recorded; in practice a thread or device may do so."""
    given = np.zeros(3)

    def keep(text: str | None = None) -> str | None:
        if text is not None:
            given[:] = [1.0, 2.0, 3.0]
        return None

    with started(tmp_path, mark=keep) as run:
        state = run.state_dict()
        given[:] = 0.0
        with run.step() as step:
            first = step.release(given)
        run.load_state_dict(state)
        with run.step() as step:
            assert np.array_equal(step.release(np.zeros(3)), first)


def test_an_interrupted_line_ends_the_run_and_counts(tmp_path: Path, snapshot: Snapshot) -> None:
    """The line is on the disk, but this process may not know, so it must not add a second one."""
    run = started(tmp_path)
    go(run, 1)
    with failing(Recorded, "take", KeyboardInterrupt()):
        go(run, 1)
    snapshot.raised(go, run, 1)
    run.close()
    with started(tmp_path) as again:
        assert again.released == 2
        again.load_state_dict(again.state_dict() | {"rounds": 1})
        go(again, 1)
        assert again.released == 2


@pytest.mark.parametrize("moment", ["_append", "keep_mark"])
def test_an_interrupted_release_is_repeated_or_done_anew(tmp_path: Path, moment: str) -> None:
    run = started(tmp_path)
    go(run, 1)
    with failing(RunFolder, moment, KeyboardInterrupt()):
        go(run, 1)
    assert (run.round, run.released) == (1, 1 if moment == "_append" else 2)
    go(run, 11)
    assert Recorded.read(tmp_path / "record.jsonl").rounds == 12


@pytest.mark.parametrize("changes", [{}, CORRELATED], ids=["independent", "correlated"])
def test_a_tag_beside_the_noise_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any]
) -> None:
    """Large sums are tagged while the noise is drawn. The lines and the means are those of a tag that is computed before."""
    found, lines, key = [], [], None
    for place, large in (("before", 1 << 62), ("beside", 0)):
        monkeypatch.setattr(run_module, "LARGE", large)
        fixed_draws(monkeypatch)
        with started(tmp_path / place, changes) as run:
            key = key or run._root
            run._root = run._noise._root = key
            state = run.state_dict()
            found.append(go(run, 4))
            run.load_state_dict(state)
            assert same(go(run, 4), found[-1])
            run.load_state_dict(state)
            with pytest.raises(RunError, match="another sum or noise"), run.step() as step:
                step.release(sums(7))
        lines.append([one.sum for one in Recorded.read(tmp_path / place / "record.jsonl").releases])
    assert same(*found)
    assert lines[0] == lines[1]


def test_an_interruption_while_a_large_sum_is_drawn_or_tagged_counts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_module, "LARGE", 0)
    run = started(tmp_path)
    go(run, 1)
    for owner, name in ((run._noise, "rows"), (run_module, "tag")):
        with failing(owner, name, KeyboardInterrupt()):
            go(run, 1)
        assert (run.round, run.released) == (1, 1)
    go(run, 11)
    assert Recorded.read(tmp_path / "record.jsonl").rounds == 12


@pytest.mark.parametrize("changes", [{}, CORRELATED], ids=["independent", "correlated"])
def test_a_round_that_failed_after_it_was_recorded_is_the_next_one_still(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    run = started(tmp_path, changes)
    go(run, 1)
    with failing(run_module, "noisy", MemoryError()):
        go(run, 1)
    assert (run.round, run.released) == (1, 2)
    with pytest.raises(RunError, match="another sum or noise"), run.step() as step:
        step.release(sums(7))
    (again,) = go(run, 1)
    state = {**run.state_dict(), "rounds": 1}
    run.load_state_dict(state)
    assert same([again], go(run, 1))
    assert (run.round, run.released) == (2, 2)


def test_a_line_that_a_killed_process_wrote_is_forced_to_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with started(tmp_path) as run:
        go(run, 1)
    forced: list[str] = []
    usual = os.fsync

    def noted(handle: int) -> None:
        forced.append(os.path.realpath(f"/proc/self/fd/{handle}"))
        usual(handle)

    monkeypatch.setattr(os, "fsync", noted)
    with started(tmp_path):
        assert str(tmp_path.resolve() / "record.jsonl") in forced


def test_a_rank_that_follows_does_not_take_up_another_branch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot
) -> None:
    """With a matrix, the rank's next row would contain noise of its old branch."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder, changes = tmp_path / "run", CORRELATED
    first, second = (started(folder, changes, rank=rank, world=2) for rank in (0, 1))
    for run in (first, second):
        go(run, 2)
    saved = (folder / "record.jsonl").read_bytes()
    for run in (first, second):
        go(run, 1)
    first.close()
    # The record is restored to the same file, and the mark is lost.
    (folder / "record.jsonl").write_bytes(saved)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "other state"))
    first = started(folder, changes, rank=0, world=2)
    with first.step() as step:
        step.release({name: 2.0 * array for name, array in sums(2).items()})
    assert first.rank_state[1:3] == second.rank_state[1:3]
    snapshot.raised(first.check_ranks, [first.rank_state, second.rank_state])
    go(first, 1)
    snapshot.raised(go, second, 1)


def test_lines_of_two_branches_do_not_make_one_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot
) -> None:
    """Anybody can recompute the chain of hashes, but a seed depends on all earlier lines, so no later round is repeated."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder = tmp_path / "run"
    record = folder / "record.jsonl"
    started(folder, CORRELATED).close()
    begun = record.read_bytes()

    def branch(factor: float, name: str) -> list[bytes]:
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / name))
        record.write_bytes(begun)
        with started(folder, CORRELATED) as run:
            with run.step() as step:
                step.release({key: factor * array for key, array in sums(0).items()})
            go(run, 1)
        return record.read_bytes().splitlines(keepends=True)

    one, two = branch(1.0, "a"), branch(2.0, "b")
    joined, previous = b"", "0" * 64
    # The forged record has the first round of one branch, and the second round of the other.
    starts = [line for line in two if b'"event":"layout"' in line or b'"event":"run"' in line]
    rounds = [[line for line in lines if b'"event":"release"' in line] for lines in (one, two)]
    for line in (*starts, rounds[1][0], rounds[0][1]):
        chained = event_line({**json.loads(line), "previous": previous})
        previous, joined = hash_of(chained), joined + chained
    record.write_bytes(joined)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "c"))
    with started(folder, CORRELATED) as run:
        run.load_state_dict(run.state_dict() | {"rounds": 1})
        assert run.released == 2
        snapshot.raised(go, run, 1)


def test_threads_that_close_a_run_leave_its_record_whole(tmp_path: Path) -> None:
    for attempt in range(20):
        run = started(tmp_path / str(attempt))
        closer = threading.Thread(target=run.close)

        def release(run: TrainingRun = run) -> None:
            with contextlib.suppress(RunError):
                go(run, 12)

        worker = threading.Thread(target=release)
        worker.start()
        closer.start()
        worker.join()
        closer.join()
        run.close()
        recorded = Recorded.read(tmp_path / str(attempt) / "record.jsonl")
        with started(tmp_path / str(attempt)) as again:
            assert again.round == recorded.rounds


def test_a_mark_that_fails_keeps_no_run_from_being_opened_or_closed(tmp_path: Path, snapshot: Snapshot) -> None:
    def broken(text: str | None = None) -> str | None:
        if text is not None:
            raise ValueError("away")
        return None

    snapshot.raised(started, tmp_path, mark=broken)

    def fails(run: TrainingRun) -> None:
        with run:
            run._folder.mark = CallableMark(broken)
            raise ZeroDivisionError

    run = started(tmp_path)
    go(run, 1)
    with pytest.raises(ZeroDivisionError):
        fails(run)
    run = started(tmp_path)
    run._folder.mark = CallableMark(broken)
    snapshot.raised(run.abandon)
    assert Recorded.read(tmp_path / "record.jsonl").ending == "abandoned"


def test_no_traceback_shows_noise_that_was_released(tmp_path: Path) -> None:
    """A refused repetition draws nothing before it compares, and the repr of rows is empty."""
    run = started(tmp_path)
    state = run.state_dict()
    go(run, 1)
    run.load_state_dict(state)
    with pytest.raises(RunError, match="another sum or noise") as caught, run.step() as step:
        step.release(sums(7))
    trace = caught.value.__traceback__
    while trace is not None:
        assert not any(type(value).__name__ == "Rows" for value in trace.tb_frame.f_locals.values())
        trace = trace.tb_next
    noise = run._noise.rows(run._run.body_run(0), 0, [sums(0)], bytes(32), [])
    assert repr(noise) == "Rows(…)"


def test_arrays_that_were_refused_are_forgotten(tmp_path: Path, snapshot: Snapshot) -> None:
    """A layout that is too long for a line fixes no shapes, neither in the noise nor in the record."""
    run = started(tmp_path)
    with run.step() as step:
        snapshot.raised(lambda: step.release({"x" * (1 << 20): np.zeros(2)}))
        step.release({"y": np.zeros(3)})
    go_on = started(tmp_path / "other")
    with failing(go_on._noise, "rows", ZeroDivisionError()), go_on.step() as step:
        step.release({"a": np.zeros(2)})
    with go_on.step() as step:
        step.release({"b": np.zeros(4)})
    assert Recorded.read(tmp_path / "other" / "record.jsonl").layouts == {0: ({"b": ("float64", (4,))},)}
    with pytest.raises(RunError, match="a is new"), go_on.step() as step:
        step.release({"a": np.zeros(2)})


def test_small_misuses_are_told(tmp_path: Path, snapshot: Snapshot) -> None:
    runs = [started(tmp_path / "ranks", rank=rank, world=2) for rank in (0, 1)]
    snapshot.raised(runs[1].abandon)
    huge = started(tmp_path / "huge", clip_norm=1e200)
    with huge.step() as step:
        step.release(np.zeros(2))
    mark = tmp_path / "mark"
    mark.write_bytes(bytes(100))
    started(tmp_path / "marked", mark=mark).close()

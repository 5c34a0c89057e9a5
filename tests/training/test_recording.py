"""A large round is recorded in a thread while its noise is added: nothing is given out before, whatever happens in between."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from noise_samples import SECTIONS
from training_runs import CORRELATED, failing, go, same, started, sums

from pyaccount.errors import RunError
from pyaccount.training import run as run_module
from pyaccount.training.folder import RunFolder
from pyaccount.training.record import Recorded
from pyaccount.training.sums import noisy


@pytest.fixture(autouse=True)
def every_sum_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "LARGE", 0)


@pytest.mark.parametrize("moment", ["release", "keep_mark"])
def test_nothing_is_given_out_before_it_is_recorded_and_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    run = started(tmp_path / "run", mark=tmp_path / "mark")
    go(run, 1)
    usual, begun, allowed, given = getattr(RunFolder, moment), threading.Event(), threading.Event(), list[Any]()

    def waits(folder: RunFolder, *arguments: Any) -> None:
        begun.set()
        assert allowed.wait(60.0)
        usual(folder, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, moment, waits)
        thread = threading.Thread(target=lambda: given.extend(go(run, 1)))
        thread.start()
        assert begun.wait(60.0)
        time.sleep(0.05)
        assert not given
        allowed.set()
        thread.join()
    assert len(given) == 1
    assert Recorded.read(tmp_path / "run" / "record.jsonl").rounds == 2


@pytest.mark.parametrize("changes", [{}, CORRELATED], ids=["independent", "correlated"])
def test_what_fails_while_it_is_recorded_is_raised_and_nothing_is_given_out(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    run = started(tmp_path, changes)
    first = go(run, 1)
    with failing(os, "fsync", OSError(5, "the disk is away")):
        go(run, 1)
    assert run.round == 1
    # The line may be on the disk: the run has to be opened again.
    with pytest.raises(RunError, match="may not be on the disk"):
        go(run, 1)
    run.close()
    with started(tmp_path, changes) as again:
        assert again.released == 2
        again.load_state_dict(again.state_dict() | {"rounds": 0})
        assert same(go(again, 1), first)
        go(again, 1)
        assert again.released == 2


@pytest.mark.parametrize("what", ["state_dict", "close", "head", "released", "rank_state"])
def test_a_caller_that_leaves_while_it_is_recorded_sees_the_whole_record_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """An interruption while the noise is added does not wait for the thread; whatever is asked or written next does."""
    run = started(tmp_path)
    go(run, 1)
    usual = RunFolder.release
    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "release", lambda *arguments: (time.sleep(0.1), usual(*arguments)))
        with failing(run_module, "noisy", KeyboardInterrupt()):
            go(run, 1)
        found = getattr(run, what)
        found = found() if callable(found) else found
    recorded = Recorded.read(tmp_path / "record.jsonl")
    assert recorded.rounds == 2
    assert recorded.last_event == ("closed" if what == "close" else "release")
    if what == "head":
        assert found == recorded.last
    if what == "released":
        assert found == 2
    if what != "close":
        (again,) = go(run, 1)
        assert run.released == 2
        run.load_state_dict(run.state_dict() | {"rounds": 1})
        assert same(go(run, 1), [again])


def test_a_callable_that_keeps_the_mark_is_called_in_the_thread_of_the_caller(tmp_path: Path) -> None:
    """Many clients, such as SQLite's, can be used in one thread only."""
    threads = set()

    def keep(text: str | None = None) -> str | None:
        threads.add(threading.current_thread())
        return None

    with started(tmp_path, mark=keep) as run:
        go(run, 2)
    assert threads == {threading.current_thread()}


@pytest.mark.parametrize("name", ["identity", "toeplitz", "blt"])
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_noise_that_is_added_in_the_core_has_the_bits_of_noise_that_is_shown(
    name: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oracle adds and rounds with numpy, after `NoiseStream.next`."""
    monkeypatch.setattr("pyaccount.training.noise.noise.TOGETHER", 7)
    shapes: dict[str, tuple[int, ...]] = {"alone": (), "empty": (0, 3), "matrix": (5, 9), "vector": (7,)}
    random = np.random.default_rng(5)
    with started(tmp_path, {"matrix": SECTIONS[name], "sampler": {"kind": "none"}}) as run:
        part = run._run.body_run(0)
        (noise,) = run._noises[part.index]
        shown, kept = (noise.stream(shapes, dtype="float64") for _ in range(2))
        for _ in range(3):
            nonce = random.bytes(32)
            expected, drawn = shown.next(nonce), kept.draw(nonce)
            for array, shape in shapes.items():
                sum = np.asarray(100.0 * random.standard_normal(shape), dtype=kind, order="F")
                found = noisy(sum.copy(order="K"), drawn[array], 0.7, 3.0)
                by_numpy = noisy(sum, expected[array], 0.7, 3.0)
                assert found.dtype == sum.dtype
                assert found.shape == shape
                assert np.array_equal(found, by_numpy)
        old = drawn["vector"]
        kept.draw(random.bytes(32))
        with pytest.raises(RunError, match="the noise of round 2 is gone: the stream has drawn round 3"):
            old.add_to(np.zeros(7), 1.0, 1.0)
    assert "0." not in repr(old)


def test_the_sums_of_the_caller_stay_as_they_are(tmp_path: Path) -> None:
    given = sums(0)
    before = {name: array.copy() for name, array in given.items()}
    with started(tmp_path) as run, run.step() as step:
        means = step.release(given)
    assert isinstance(means, dict)
    assert all(np.array_equal(given[name], before[name]) for name in given)
    assert not any(np.shares_memory(means[name], given[name]) for name in given)

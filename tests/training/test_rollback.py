"""A folder that is put back to an earlier state, in seven ways, is refused if that shows, and no noise is drawn twice."""

import json
import os
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from noise_samples import SECTIONS
from phases import phase
from scipy import linalg  # type: ignore[import-untyped]
from snapshots import Snapshot
from training_runs import CORRELATED, document, go, same, started, sums

import pyaccount
from pyaccount import _core
from pyaccount.plan.matrices import strategy
from pyaccount.training import TrainingRun
from pyaccount.training.mark import mark_at
from pyaccount.training.record import Recorded

#: The number of rounds of the runs, and the round before which their folders are saved.
ROUNDS, SAVED = 12, 5


def tarred(folder: Path, saved: Path) -> Callable[[], None]:
    """Restore with `tar xf` over the folder, which makes new files."""
    with tarfile.open(saved, "w") as archive:
        archive.add(folder, folder.name)

    def back() -> None:
        with tarfile.open(saved) as archive:
            for member in archive.getmembers():
                if member.isfile():
                    (folder.parent / member.name).unlink()
            archive.extractall(folder.parent, filter="data")

    return back


def copied_anew(folder: Path, saved: Path) -> Callable[[], None]:
    """Restore with `rm -r` and `cp -a`."""
    shutil.copytree(folder, saved)

    def back() -> None:
        shutil.rmtree(folder)
        shutil.copytree(saved, folder)

    return back


def copied_over(folder: Path, saved: Path) -> Callable[[], None]:
    """Restore with `cp -a` over the folder, which writes to the same files."""
    shutil.copytree(folder, saved)
    return lambda: shutil.copyfile(saved / "record.jsonl", folder / "record.jsonl") and None


def truncated(folder: Path, saved: Path) -> Callable[[], None]:
    """Cut off the last lines, as an editor or a file system check may do."""
    size = (folder / "record.jsonl").stat().st_size
    return lambda: os.truncate(folder / "record.jsonl", size)


def unzipped(folder: Path, saved: Path) -> Callable[[], None]:
    """Restore with `unzip -o`, which writes to the same files."""
    with zipfile.ZipFile(saved, "w") as archive:
        for path in folder.iterdir():
            archive.write(path, path.name)

    def back() -> None:
        with zipfile.ZipFile(saved) as archive:
            archive.extractall(folder)
        (folder / "run.key").chmod(0o600)

    return back


def replaced(folder: Path, saved: Path) -> Callable[[], None]:
    """Put another folder in its place, as a snapshot of the file system does."""
    shutil.copytree(folder, saved)

    def back() -> None:
        folder.rename(folder.with_name("discarded"))
        saved.rename(folder)

    return back


def written(folder: Path, saved: Path) -> Callable[[], None]:
    """Write the old bytes to the open file."""
    kept = (folder / "record.jsonl").read_bytes()
    return lambda: (folder / "record.jsonl").write_bytes(kept) and None


WAYS = (tarred, copied_anew, copied_over, truncated, unzipped, replaced, written)


@pytest.mark.parametrize("way", WAYS)
def test_a_record_that_was_put_back_is_refused(way: Any, tmp_path: Path, snapshot: Snapshot) -> None:
    folder = tmp_path / "run"
    with started(folder) as run:
        go(run, SAVED)
    back = way(folder, tmp_path / "saved")
    with started(folder) as run:
        go(run, 3)
        head = run.head
    back()
    for moved in (False, True):
        snapshot.raised(started, folder, moved=moved)
    assert not _contains(folder, head)


def _contains(folder: Path, head: str) -> bool:
    return head in (folder / "record.jsonl").read_text()


@pytest.mark.parametrize("way", WAYS)
def test_without_a_mark_a_new_file_shows_and_the_noise_is_new(
    way: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot
) -> None:
    """A record that is restored to the same file cannot be detected without the mark; but then the noise is fresh."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder = tmp_path / "run"
    with started(folder, CORRELATED) as run:
        before = go(run, SAVED)
        state = run.state_dict()
    back = way(folder, tmp_path / "saved")
    with started(folder, CORRELATED) as run:
        first = go(run, 3)
    back()
    shutil.rmtree(tmp_path / "state")
    if way in (tarred, copied_anew, snapshot) and _core.created(folder / "record.jsonl") is not None:
        snapshot.raised(started, folder, CORRELATED)
    with started(folder, CORRELATED, moved=True) as run:
        assert run.round == SAVED
        second = go(run, 3)
        # Rounds that are still in the record are repeated as before.
        run.load_state_dict(state | {"rounds": 0})
        assert same(go(run, SAVED), before)
    assert not any(np.isin(one["bias"], two["bias"]).any() for one, two in zip(first, second, strict=True))
    nonces = [release.nonce for release in Recorded.read(folder / "record.jsonl").releases]
    assert len(set(nonces)) == SAVED + 3


@pytest.mark.parametrize("name", ["identity", "toeplitz", "banded-inverse", "blt", "dense"])
def test_two_branches_share_no_noise_from_where_they_part(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The difference at round t has the variance 2σ²·Σ_{j≤s≤t} (C⁻¹)²_{ts}, and no combination of rows has less noise.

    C times the differences, divided by σ√2, is a matrix of independent standard normal numbers, even if the sums differ.
    """
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    coordinates, sigma = 10_000, 0.5
    direction = np.full(coordinates, coordinates**-0.5)
    matrix = dict(SECTIONS[name])
    if name == "dense":
        np.save(tmp_path / "matrix.npy", np.tril(np.random.default_rng(3).uniform(0.1, 1.0, (ROUNDS, ROUNDS))))
        matrix["file"] = str(tmp_path / "matrix.npy")
    asked = pyaccount.load(document({"matrix": matrix, "sampler": {"kind": "none"}}), folders=[tmp_path])
    c = strategy(phase(asked))
    if c.dense is not None:
        square = np.asarray(c.dense)
    else:
        assert c.coefficients is not None
        column = np.asarray(c.coefficients)
        square = linalg.toeplitz(np.pad(column, (0, ROUNDS - len(column))), np.zeros(ROUNDS))

    def released(rounds: range, level: float) -> Any:
        found = []
        with TrainingRun(asked, tmp_path / "run", records=40, moved=True, uncertified=True) as run:
            assert run.round == rounds.start
            for number in rounds:
                with run.step() as step:
                    mean = step.release(direction * level * number)
                assert isinstance(mean, np.ndarray)
                found.append(mean * run.normaliser(number) - direction * level * number)
        return np.array(found)

    shared = released(range(SAVED), 0.0)
    back = copied_over(tmp_path / "run", tmp_path / "saved")
    first = released(range(SAVED, ROUNDS), 0.0)
    back()
    shutil.rmtree(tmp_path / "state")
    second = released(range(SAVED, ROUNDS), 0.25)
    difference = first - second
    rest = square[SAVED:, SAVED:]
    variances = 2.0 * sigma**2 * np.square(linalg.inv(rest)).sum(axis=1)
    # The tolerances are five standard errors of a variance and of a covariance.
    assert (np.abs(np.mean(np.square(difference), axis=1) / variances - 1.0) < 5.0 * np.sqrt(2.0 / coordinates)).all()
    white = rest @ difference / (sigma * np.sqrt(2.0))
    covariance = white @ white.T / coordinates
    assert np.abs(covariance - np.eye(ROUNDS - SAVED)).max() < 5.0 * np.sqrt(2.0 / coordinates)
    # Each branch, with the rows that both share, is C⁻¹Z for independent rows of Z.
    for branch in (first, second):
        z = square @ np.vstack([shared, branch]) / sigma
        assert np.abs(z @ z.T / coordinates - np.eye(ROUNDS)).max() < 5.0 * np.sqrt(2.0 / coordinates)


# Marks.


def test_a_mark_in_a_file_is_of_one_run(tmp_path: Path, snapshot: Snapshot) -> None:
    mark = tmp_path / "marks" / "one"
    mark.parent.mkdir()
    with started(tmp_path / "one", mark=mark) as run:
        go(run, 2)
        commitment, rounds, head = (mark_at(mark, "").read() or "").split()
        assert (rounds, head) == ("2", run.head)
        assert commitment == Recorded.read(tmp_path / "one" / "record.jsonl").header["key_commitment"]
    snapshot.raised(lambda: started(tmp_path / "two", mark=mark))
    text = mark_at(mark, "").read() or ""
    mark.write_text("18 rounds")
    snapshot.raised(lambda: started(tmp_path / "one", mark=mark))
    # A text alone is a mark too.
    mark.write_text(text)
    started(tmp_path / "one", mark=mark).close()
    # These are texts that a crash of the machine may leave.
    mark.write_text("")
    started(tmp_path / "one", mark=mark).close()
    mark.unlink()
    started(tmp_path / "one", mark=mark).close()


def test_a_mark_is_kept_by_a_callable_before_a_sum_is_given_out(tmp_path: Path, snapshot: Snapshot) -> None:
    kept: list[str] = []

    def keep(text: str | None = None) -> str | None:
        if text is not None:
            kept.append(text)
        return kept[-1] if kept else None

    with started(tmp_path, mark=keep) as run:
        go(run, 2)
        assert [line.split()[1] for line in kept] == ["0", "1", "2"]
        assert kept[-1].split()[2] == run.head
    # Closing also adds a line to the record.
    assert len(kept) == 4
    size = (tmp_path / "record.jsonl").stat().st_size

    def broken(text: str | None = None) -> str | None:
        if text is not None:
            raise ConnectionError("the store is away")
        return keep()

    with started(tmp_path, mark=keep) as run:
        run._folder.mark = mark_at(broken, "")
        with pytest.raises(ConnectionError), run.step() as step:
            step.release(sums(2))
        # The round is counted, but its sum was not given out; it is released once the mark can be kept.
        assert (run.round, run.released) == (2, 3)
        run._folder.mark = mark_at(keep, "")
        go(run, 1)
        assert (run.round, run.released) == (3, 3)
    assert (tmp_path / "record.jsonl").stat().st_size > size
    snapshot.raised(started, tmp_path, mark=lambda text=None: 7)


def test_a_mark_that_cannot_be_kept_by_default_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    with pytest.warns(RuntimeWarning, match="no mark of this run can be kept here"):
        run = started(tmp_path / "run")
    with run:
        go(run, 2)
    monkeypatch.delenv("XDG_STATE_HOME")
    # The same holds for a user without an entry and a home, such as one of a container.
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    monkeypatch.chdir(tmp_path)
    with pytest.warns(RuntimeWarning, match=r"kept here \(there is no home directory\)"):
        started(tmp_path / "homeless").close()
    assert not (tmp_path / "~").exists()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    for place in ("none", "file"):
        with snapshot.raises(OSError):
            started(tmp_path / place[:1], mark=tmp_path / place / "mark")


# Endings of a record.


def test_a_record_says_how_it_ended(tmp_path: Path) -> None:
    def ending() -> tuple[str, int]:
        recorded = Recorded.read(tmp_path / "record.jsonl")
        return recorded.ending, recorded.rounds

    run = started(tmp_path)
    go(run, 2)
    assert ending() == ("open", 2)
    run.close()
    assert ending() == ("closed", 2)
    run = started(tmp_path)
    run.close()
    go(again := started(tmp_path), 1)
    assert ending() == ("open", 3)
    go(again, ROUNDS - 3)
    assert ending() == ("exhausted", ROUNDS)
    again.close()
    assert ending() == ("exhausted", ROUNDS)


def test_an_abandoned_run_never_goes_on(tmp_path: Path, snapshot: Snapshot) -> None:
    run = started(tmp_path)
    go(run, 2)
    run.abandon()
    snapshot.raised(go, run, 1)
    assert Recorded.read(tmp_path / "record.jsonl").ending == "abandoned"
    snapshot.raised(started, tmp_path)
    with (tmp_path / "record.jsonl").open() as file:
        assert [json.loads(line)["event"] for line in file][-2:] == ["abandoned", "closed"]

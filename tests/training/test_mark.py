"""Marks in files: whatever is torn or read meanwhile, a reader gets the last text that was written whole, or the next one."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from training_runs import go, started

from pyaccount.training.mark import SLOT, FileMark, mark_text


def text(rounds: int) -> str:
    return mark_text("c0ffee" * 10, rounds, f"{rounds:064x}")


@pytest.mark.parametrize("written", [1, 2, 3, 10])
@pytest.mark.parametrize("end", [False, True], ids=["the beginning", "the end"])
def test_a_torn_write_leaves_the_text_before_it(written: int, end: bool, tmp_path: Path) -> None:
    """Every part of the new bytes, from the beginning or up to the end, is on the disk, and the rest is as before."""
    path = tmp_path / "mark"
    mark = FileMark(path)
    for rounds in range(written):
        mark.write(text(rounds))
    before = path.read_bytes()
    mark.write(text(written))
    after = path.read_bytes()
    assert len(before) == len(after) == 2 * SLOT
    seen = set()
    for size in range(len(after) + 1):
        torn = before[: len(before) - size] + after[len(after) - size :] if end else after[:size] + before[size:]
        path.write_bytes(torn)
        found = mark.read()
        assert found == (text(written) if torn == after else text(written - 1))
        seen.add(found)
    assert seen == {text(written - 1), text(written)}


def test_after_a_torn_write_the_text_before_it_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "mark"
    mark = FileMark(path)
    for rounds in range(5):
        mark.write(text(rounds))
    before = path.read_bytes()
    mark.write(text(5))
    after = path.read_bytes()
    for size in range(0, len(after) + 1, 7):
        path.write_bytes(after[:size] + before[size:])
        kept = mark.read()
        here = path.read_bytes().find((kept or "?").strip().encode())
        mark.write(text(6))
        assert mark.read() == text(6)
        if kept == text(4):
            assert path.read_bytes().find(text(4).strip().encode()) == here


@pytest.mark.parametrize("flipped", range(0, 2 * SLOT, 3))
def test_a_changed_byte_never_makes_another_text(flipped: int, tmp_path: Path) -> None:
    path = tmp_path / "mark"
    mark = FileMark(path)
    for rounds in (3, 4):
        mark.write(text(rounds))
    content = bytearray(path.read_bytes())
    content[flipped] ^= 1
    path.write_bytes(content)
    # The second slot has the newer text.
    assert mark.read() == (text(4) if flipped < SLOT else text(3))


def test_a_file_in_which_nothing_is_whole_is_no_mark_and_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyaccount.training.mark.PAUSE", 0.0)
    path = tmp_path / "mark"
    mark = FileMark(path)
    assert mark.read() is None
    for content in (b"", bytes(2 * SLOT), b" " * 2 * SLOT, b"x" * 2 * SLOT, b"\xff" * 9, b"1 2 3" * SLOT):
        path.write_bytes(content)
        found = mark.read()
        assert found is not None
        assert len(found) <= 251
        assert found.strip("\0 ") == content[:251].decode(errors="replace").strip("\0 ")
        mark.write(text(1))
        assert mark.read() == text(1)


def test_a_reader_never_sees_less_than_what_was_written_before_it_read(tmp_path: Path) -> None:
    """The writer says which text it has written; what a reader reads afterwards is that one, or one that came after it."""
    mark = FileMark(tmp_path / "mark")
    mark.write(text(0))
    done, stop = [0], threading.Event()

    def write() -> None:
        rounds = 0
        while not stop.is_set():
            rounds += 1
            mark.write(text(rounds))
            done[0] = rounds

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(300):
            least = done[0]
            found = FileMark(tmp_path / "mark").read()
            assert found is not None
            assert int(found.split()[1]) >= least
    finally:
        stop.set()
        writer.join()


def test_the_mark_of_a_run_is_written_in_place_and_continued(tmp_path: Path) -> None:
    path = tmp_path / "mark"
    with started(tmp_path / "run", mark=path) as run:
        go(run, 1)
        file = path.stat().st_ino
        go(run, 2)
        assert (FileMark(path).read() or "").split()[1:] == ["3", run.head]
    with started(tmp_path / "run", mark=path) as run:
        go(run, 1)
        assert path.stat().st_ino == file
        # A mark that was lost is written anew.
        path.unlink()
        go(run, 1)
        assert (FileMark(path).read() or "").split()[1:] == ["5", run.head]
        if os.geteuid():
            path.chmod(0o400)
            go(run, 1)
            assert (FileMark(path).read() or "").split()[1:] == ["6", run.head]

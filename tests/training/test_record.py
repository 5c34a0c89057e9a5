"""The record: its chain of hashes shows whether lines were changed, lost or moved."""

import contextlib
import os
from pathlib import Path

import pytest
from snapshots import Snapshot

from pyaccount.errors import RunError
from pyaccount.training.key import NONCE_BYTES
from pyaccount.training.record import Recorded, RecordedTrainer
from pyaccount.training.writing import RecordWriter

#: The nonce of every release here.
NONCE = "00" * NONCE_BYTES


def written(path: Path, rounds: int = 3) -> list[bytes]:
    writer = RecordWriter(path)
    writer.append("run", record=1, name="test")
    writer.append("layout", body=0, arrays=[{"sum": ["float32", [4]]}], normaliser=8.0)
    for number in range(rounds):
        writer.append("release", round=number, attempt=0, standard_deviations=[1.5], sum=f"{number:032x}", nonce=NONCE)
    writer.close()
    return path.read_bytes().splitlines(keepends=True)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "record.jsonl"
    lines = written(path)
    found = Recorded.read(path)
    assert found.header["name"] == "test"
    assert found.layouts == {0: ({"sum": ("float32", (4,))},)}
    assert [release.round for release in found.releases] == [0, 1, 2]
    assert found.releases[1].standard_deviations == (1.5,)
    assert found.whole == sum(map(len, lines))


@pytest.mark.parametrize(
    "trainer",
    [{"name": "opacus", "version": "1.6"}, {"name": "a", "version": "b", "clipping": "c", "more": ""}, "opacus", 3],
)
def test_a_trainer_has_a_name_a_version_and_a_way_to_clip(tmp_path: Path, trainer: object) -> None:
    for number, value in enumerate(({"name": "opacus", "version": "1.6", "clipping": "hooks"}, trainer)):
        path = tmp_path / f"{number}.jsonl"
        writer = RecordWriter(path)
        writer.append("run", record=1, name="test")
        with contextlib.suppress(RunError):  # what a writer appends it reads
            writer.append("layout", body=0, arrays=[{"sum": ["float32", [4]]}], normaliser=8.0, trainer=value)
        writer.close()
    assert Recorded.read(tmp_path / "0.jsonl").trainers == {0: RecordedTrainer("opacus", "1.6", "hooks")}
    with pytest.raises(RunError, match="line 2: trainer: its name, version and clipping are expected"):
        Recorded.read(tmp_path / "1.jsonl")


def test_a_line_that_was_not_finished_is_taken_back(tmp_path: Path) -> None:
    path = tmp_path / "record.jsonl"
    lines = written(path)
    for cut in (1, 20, len(lines[-1]) - 1):
        path.write_bytes(b"".join(lines[:-1]) + lines[-1][:cut])
        writer = RecordWriter(path)
        assert writer.recorded.rounds == 2
        writer.append("release", round=2, attempt=0, standard_deviations=[1.5], sum=f"{2:032x}", nonce=NONCE)
        writer.close()
        assert path.read_bytes() == b"".join(lines)


def test_a_closed_record_is_free_while_a_forked_process_has_it_open(tmp_path: Path, snapshot: Snapshot) -> None:
    path = tmp_path / "record.jsonl"
    writer = RecordWriter(path)
    snapshot.raised(RecordWriter, path)
    # A forked child process has this copy of the file until it closes it.
    inherited = os.dup(writer._handle)
    try:
        writer.close()
        RecordWriter(path).close()
    finally:
        os.close(inherited)


@pytest.mark.parametrize("place", range(5))
def test_changed_lines_show(tmp_path: Path, place: int, snapshot: Snapshot) -> None:
    path = tmp_path / "record.jsonl"
    lines = written(path)
    damaged = {
        "removed": [*lines[:place], *lines[place + 1 :]],
        "twice": [*lines[: place + 1], *lines[place:]],
        "changed": [*lines[:place], lines[place].replace(b"1", b"2", 1), *lines[place + 1 :]],
        "swapped": [*lines[:place], *lines[place : place + 2][::-1], *lines[place + 2 :]],
    }
    for how, found in damaged.items():
        if found == lines or (place == 4 and how in ("removed", "changed")):
            # A change of the last line shows when the next line is written, or in the comparison with the certificate.
            continue
        path.write_bytes(b"".join(found))
        snapshot.raised(Recorded.read, path)


@pytest.mark.parametrize(
    "line",
    [
        b"[]\n",
        b"{\n",
        b'{"event":"run","event":"run"}\n',
        b'{"event":"run","record":NaN}\n',
        b'{"event":"other"}\n',
        b'{"event":"run","record":3,"previous":"' + b"0" * 64 + b'"}\n',
        b'{"event":"run","record":1,"previous":""}\n',
        b'{"event":"release","previous":"' + b"0" * 64 + b'"}\n',
        b"\xff\n",
        b"",
    ],
)
def test_what_is_no_record_is_refused_at_its_line(tmp_path: Path, line: bytes, snapshot: Snapshot) -> None:
    path = tmp_path / "record.jsonl"
    path.write_bytes(line)
    snapshot.raised(Recorded.read, path)

"""The folder of a run: its key and its record, begun or taken up.

A key without its record may have been used for rounds that nobody knows of, so neither is ever made anew for the other.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyaccount.errors import RunError
from pyaccount.training.key import RunKey
from pyaccount.training.record import VERSION, Layout, Recorded, RecordWriter

#: Names of the files.
KEY, RECORD = "run.key", "record.jsonl"
#: How long the other ranks wait for the first one, in seconds, and how often they look.
PATIENCE, LOOKING = 600.0, 0.02

#: What must be the same when a run is taken up, and how a message calls it.
SAME = {
    "document_sha256": "document",
    "certificate_sha256": "certificate",
    "matrix_sha256": "matrix from a file",
    "rounds": "number of rounds",
    "records": "number of records",
    "clip_norms": "clip norm",
    "normalisers": "normaliser",
    "world": "number of ranks",
}


@dataclass(slots=True)
class RunFolder:
    """A run's key, what is recorded of it, and its end of the record; no writer for ranks that only follow."""

    key: RunKey
    header: Mapping[str, Any]
    path: Path
    writer: RecordWriter | None
    #: What the summed arrays are, once something was released.
    layout: Layout | None = None
    #: Of each round that was released, what tells its sum.
    tags: list[str] = field(default_factory=list)
    rewinds: int = 0

    def update(self, recorded: Recorded) -> None:
        """Take over what is recorded by now."""
        self.layout, self.rewinds = recorded.layout, recorded.rewinds
        self.tags = [release.sum for release in recorded.releases]

    def begin(self, layout: Layout) -> None:
        """Record what the summed arrays are, before the first release."""
        if self.writer is not None:
            self.writer.append("layout", arrays={name: list(said) for name, said in layout.items()})
        self.layout = layout

    def release(self, number: int, deviations: list[float], tag: str) -> str:
        """Record the next round, or see to it that the first rank has; gives the tag of the sum that is recorded.

        Raises `RunError` if the first rank takes too long.
        """
        assert number == len(self.tags)
        if self.writer is not None:
            self.writer.append("release", round=number, attempt=self.rewinds, standard_deviations=deviations, sum=tag)
            self.tags.append(tag)
            return tag
        deadline = time.monotonic() + PATIENCE
        while len(self.tags) <= number:
            if time.monotonic() > deadline:
                raise RunError(f"{self.path}: the first rank did not record round {number} within {PATIENCE:g} s")
            time.sleep(LOOKING)
            self.update(Recorded.read(self.path))
        return self.tags[number]

    def rewind(self, target: int) -> None:
        """Record that an earlier state was taken up, and the rounds since are given up."""
        if self.writer is not None:
            self.writer.append("rewind", to=target)
        self.rewinds += 1

    def close(self) -> None:
        """Let others go on with the run."""
        if self.writer is not None:
            self.writer.close()


def open_folder(folder: Path, key_path: Path | None, facts: Mapping[str, Any], rank: int) -> RunFolder:
    """The folder of a run of which these are the facts: a new one, or one that is taken up.

    Raises `RunError` if what is there is another run's, or a key or a record by itself.
    """
    key_path, path = key_path or folder / KEY, folder / RECORD
    if rank > 0:
        key, recorded = _follow(key_path, path)
        _check(recorded, key, facts, path)
        return _opened(key, recorded, path, None)
    folder.mkdir(parents=True, exist_ok=True)
    begun = path.exists() and path.stat().st_size > 0
    if begun and not key_path.exists():
        raise RunError(
            f"{key_path}: the key of the run in {path} is not here: without it neither batches nor noise can go on"
        )
    if not begun and key_path.exists():
        raise RunError(
            f"{path}: the record of the run whose key is {key_path} is not here: nobody knows which rounds were released with "
            "it. A new run takes a new folder, and a key of its own"
        )
    writer = RecordWriter(path)
    try:
        if writer.before is None:
            key = RunKey.create(key_path)
            writer.append("run", record=VERSION, key_commitment=key.commitment, **facts)
            recorded = Recorded.read(path)
        else:
            key, recorded = RunKey.read(key_path), writer.before
        _check(recorded, key, facts, path)
    except BaseException:
        writer.close()
        raise
    return _opened(key, recorded, path, writer)


def _opened(key: RunKey, recorded: Recorded, path: Path, writer: RecordWriter | None) -> RunFolder:
    found = RunFolder(key, recorded.header, path, writer)
    found.update(recorded)
    return found


def _follow(key_path: Path, path: Path) -> tuple[RunKey, Recorded]:
    """The key and the record that the first rank made."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return RunKey.read(key_path), Recorded.read(path)
        except (FileNotFoundError, RunError):
            # Perhaps not written yet; if it is still wrong at the end, that is what is said.
            if time.monotonic() > deadline:
                raise
            time.sleep(LOOKING)


def _check(recorded: Recorded, key: RunKey, facts: Mapping[str, Any], path: Path) -> None:
    header = recorded.header
    for name, words in SAME.items():
        if header.get(name) != facts[name]:
            raise RunError(
                f"{path}: this is the record of a run with another {words}: {header.get(name)!r}, and not {facts[name]!r}. What "
                "was released went by that; another run takes a folder of its own"
            )
    if header.get("key_commitment") != key.commitment:
        raise RunError(f"{path}: this is the record of a run with another key than the one given")

"""The folder of a run: its key and its record, begun or taken up.

A key without its record may have been used for rounds that nobody knows of, so neither is ever made anew for the other. A new key
waits under a name of its own until the record's first line, with the key's commitment, is on the disk, and gets its place before
anything is released: so a run that was killed while it began is begun, or begun anew, and no key in its place lacks a record.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyaccount.errors import RunError
from pyaccount.files import write_atomically
from pyaccount.training.key import RunKey
from pyaccount.training.mark import Mark, MarkPlace, check_mark, mark_at, text_of
from pyaccount.training.noise.nonces import WITHOUT_NONCE, new_nonce, seed_of
from pyaccount.training.record import STREAMS, VERSION, Layout, Recorded, RecordedRelease, begun
from pyaccount.training.writing import RecordWriter, force

#: Names of the files.
KEY, RECORD, CERTIFICATE = "run.key", "record.jsonl", "certificate.json"
#: How long the other ranks wait for the first one, in seconds, and how often they look.
PATIENCE, LOOKING = 600.0, 0.02

#: In the first line, a tag of the sizes of the data that the document does not state.
SIZES = "records_tag"

#: What must be the same when a run is taken up, and how a message calls it.
SAME = {
    "document_sha256": "document",
    "matrices": "matrix: it was read from a file that has changed, or found by a search that ends in other last digits here",
    "noise_multipliers": "noise multiplier",
    "rounds": "number of rounds",
    "records": "number of records",
    "clip_norms": "clip norm",
    "normalisers": "normaliser",
    "world": "number of ranks",
    "noise_source": "source of noise",
    "statement": "claim",
    "guarantee": "kind of guarantee",
}


@dataclass(slots=True)
class RunFolder:
    """An open run: its key and its record. Ranks that only follow the record have no writer and no mark."""

    key: RunKey
    path: Path
    recorded: Recorded
    writer: RecordWriter | None
    mark: Mark | None
    #: The text that was written as the mark.
    _marked: str = ""

    @property
    def version(self) -> int:
        """The version of the record's form."""
        return self.recorded.version

    @property
    def head(self) -> str:
        """The hash of the record's last line, as far as it is known here."""
        return self.recorded.last

    @property
    def releases(self) -> list[RecordedRelease]:
        """What is recorded of each round that was released."""
        return self.recorded.releases

    def known(self, number: int) -> RecordedRelease | None:
        """Return what is recorded of a round, None of one that is to be recorded here.

        The ranks that follow wait for it. Raises `RunError` if the first rank takes too long, or its record is another one now.
        """
        if self.writer is None:
            self._await(number)
        return self.releases[number] if number < len(self.releases) else None

    def drawn_by(self) -> tuple[bytes, bytes]:
        """Return a new nonce for the next line, and the seed of its round."""
        nonce = WITHOUT_NONCE if self.version == 1 else new_nonce()
        return nonce, seed_of(self.head, nonce)

    def begin(self, body: int, layout: Layout, normaliser: float) -> None:
        """Record what the summed arrays of a body are, and what they are divided by, before its first release."""
        arrays = [{name: [kind, list(shape)] for name, (kind, shape) in one.items()} for one in layout]
        self._append("layout", body=body, arrays=arrays, **({} if self.version == 1 else {"normaliser": normaliser}))

    def release(self, release: RecordedRelease) -> None:
        """Record the next round, whose nonce and seed `drawn_by` has given."""
        assert release.round == len(self.releases)
        self._append(
            "release",
            round=release.round,
            attempt=release.attempt,
            standard_deviations=list(release.standard_deviations),
            sum=release.sum,
            **({} if release.noise is None else {"noise": release.noise}),
            **({} if release.nonce == WITHOUT_NONCE else {"nonce": release.nonce.hex()}),
        )
        assert self.releases[-1] == release

    def rewind(self, target: int) -> None:
        """Record that an earlier state was taken up, and the rounds since are given up."""
        if self.writer is not None:
            self._append("rewind", to=target)

    def abandon(self) -> None:
        """Record that the run will never go on. Raises `RunError` where that cannot be said."""
        if self.writer is None:
            raise RunError("the first rank, which holds the record, abandons a run")
        if self.version == 1:
            raise RunError(
                f"{self.path}: this record began with an earlier version, and cannot say that its run was abandoned"
            )
        if not self.recorded.abandoned:
            self._append("abandoned")

    def keep_mark(self) -> None:
        """Keep the hash of the record's last line outside of the folder."""
        if self.mark is None:
            return
        text = text_of(self.key.commitment, len(self.releases), self.head)
        if text == self._marked:
            return
        # A mark that was lost is kept anew, and one that could not be written may have been written all the same.
        if self._marked and (self.mark.read() or "").strip("\0 \r\n\t") not in ("", self._marked.strip(), text.strip()):
            raise RunError(
                f"{self.mark.place}: the mark of this run was changed while it was open: another copy of its folder goes on, and "
                "nothing more is released here"
            )
        self.mark.write(text)
        self._marked = text

    def close(self) -> None:
        """Record that the run was closed, unless a process that was forked off does it, and let others go on with it."""
        if self.writer is None:
            return
        # Whatever fails here says nothing wrong: without the line the record is that of an open run, and an older mark is no lie.
        with contextlib.suppress(Exception):
            if self.version > 1 and self.recorded.last_event != "closed":
                self._append("closed")
                self.keep_mark()
        self.writer.close()

    def _append(self, event: str, **values: Any) -> None:
        assert self.writer is not None
        self.writer.append(event, **values)

    def _await(self, number: int) -> None:
        """Wait until the first rank has recorded a round. Raises `RunError` if it takes too long."""
        deadline, size = time.monotonic() + PATIENCE, -1
        while len(self.releases) <= number:
            if time.monotonic() > deadline:
                raise RunError(f"{self.path}: the first rank did not record round {number} within {PATIENCE:g} s")
            if self.path.stat().st_size == size:
                time.sleep(LOOKING)
                continue
            size = self.path.stat().st_size
            self.recorded.follow()
            # The first rank may have written a line that is not on the disk yet.
            force(self.path)


def open_folder(  # noqa: PLR0913 - where, what and who
    folder: Path,
    key_path: Path | None,
    facts: Mapping[str, Any],
    rank: int,
    *,
    sizes: Sequence[int] = (),
    moved: bool = False,
    mark: MarkPlace = None,
    certificate: str | None = None,
) -> RunFolder:
    """The folder of a run of which these are the facts: a new one, or one that is taken up.

    `sizes` are those of data of which the document states none, and so perhaps secret: the record has a tag of them.

    A record knows its own file: in a copy, or in what was restored from a backup, rounds that were released since are not
    counted. `moved` says that there is no other one any more that goes on. `mark` says where the hash of its last line is kept: a
    record that does not contain it was put back to an earlier state. `certificate` is that of a document which was certified just
    now: it is kept beside the record.

    Raises `RunError` if what is there is another run's, or a copy, or a key or a record by itself.
    """
    key_path, path = key_path or folder / KEY, folder / RECORD
    if rank > 0:
        key, recorded = _follow(key_path, path)
        _check(recorded, key, facts, sizes, path)
        return RunFolder(key, path, recorded, None, None)
    folder.mkdir(parents=True, exist_ok=True)
    if key_path.exists() and not begun(path):
        raise RunError(
            f"{path}: the record of the run whose key is {key_path} is not here: nobody knows which rounds were released with "
            "it. A new run takes a new folder, and makes a key of its own where key= says"
        )
    writer = RecordWriter(path)
    recorded = writer.recorded
    try:
        if not recorded.header:
            key = RunKey.drawn()
            key.save(_waiting(key_path, key.commitment))
            force(key_path.parent)
            check_mark(mark_at(mark, key.commitment), key.commitment, path, 0)
            if certificate is not None:
                write_atomically(folder / CERTIFICATE, certificate)
            tag = {SIZES: key.tag("records", *sizes)} if sizes else {}
            first = {
                "record": VERSION,
                "streams": STREAMS[VERSION],
                "key_commitment": key.commitment,
                "file": writer.file,
            }
            writer.append("run", **first, **facts, **tag)
            for place in (folder, *folder.absolute().parents):
                # Folders above may be nobody's to list; whoever made them has seen to their names.
                with contextlib.suppress(PermissionError):
                    force(place)
        _put_in_place(key_path, recorded)
        if not key_path.exists():
            raise RunError(
                f"{key_path}: the key of the run in {path} is not here: without it neither batches nor noise can go on"
            )
        key = RunKey.read(key_path)
        _check(recorded, key, facts, sizes, path)
        if recorded.abandoned:
            raise RunError(
                f"{path}: this run was abandoned after {recorded.rounds} rounds. Another run takes a folder of its own, and its "
                "guarantee adds to that of this one"
            )
        kept = mark_at(mark, key.commitment)
        check_mark(kept, key.commitment, path, recorded.rounds)
        if not writer.is_file(recorded.file):
            if not moved:
                raise RunError(
                    f"{path}: this is a copy of a run's record, or was restored. If rounds were released since it was copied, "
                    "or the original goes on, they are not counted here. If neither is so, and never will be, open it with "
                    "moved=True"
                )
            writer.append("moved", file=writer.file)
        found = RunFolder(key, path, recorded, writer, kept)
        # Where no mark can be kept, that shows before anything is released.
        found.keep_mark()
    except BaseException:
        writer.close()
        raise
    return found


def _waiting(key_path: Path, commitment: str) -> Path:
    """Where a key is until its record has begun."""
    return key_path.with_name(f".{key_path.name}.{commitment[:16]}")


def _put_in_place(key_path: Path, recorded: Recorded) -> None:
    """Give the key of a record that has begun its name, unless that was done."""
    commitment = recorded.header.get("key_commitment")
    if not isinstance(commitment, str) or not commitment.isalnum():
        return
    waiting = _waiting(key_path, commitment)
    if not waiting.exists():
        return
    try:
        with contextlib.suppress(FileExistsError):
            os.link(waiting, key_path)
        waiting.unlink()
    except OSError:
        # No links on this file system.
        if not key_path.exists():
            waiting.rename(key_path)
    force(key_path.parent)


def _follow(key_path: Path, path: Path) -> tuple[RunKey, Recorded]:
    """The key and the record that the first rank made."""
    deadline, recorded = time.monotonic() + PATIENCE, Recorded(path)
    while True:
        # What is wrong stays wrong, and is said at once; what is not there may come.
        with contextlib.suppress(FileNotFoundError):
            recorded.follow()
            if recorded.header:
                return RunKey.read(key_path), recorded
        if time.monotonic() > deadline:
            raise RunError(f"{path}: the first rank did not begin the run within {PATIENCE:g} s")
        time.sleep(LOOKING)


def _check(recorded: Recorded, key: RunKey, facts: Mapping[str, Any], sizes: Sequence[int], path: Path) -> None:
    header = recorded.header
    if header.get("streams") != STREAMS[recorded.version]:
        raise RunError(f"{path}: a record of version {recorded.version} with another way to draw batches and noise")
    began_uncertified = recorded.version > 1 and header.get("uncertified") is True
    if began_uncertified is not facts["uncertified"] and recorded.version > 1:
        began, now = ("with", "give it here too") if began_uncertified else ("without", "leave it out")
        raise RunError(
            f"{path}: this run began {began} uncertified=True: {now}, or begin another run in a folder of its own"
        )
    for name, words in SAME.items():
        if header.get(name) != facts[name]:
            raise RunError(
                f"{path}: this is the record of a run with another {words}: {header.get(name)!r}, and not {facts[name]!r}. What "
                "was released went by that; another run takes a folder of its own"
            )
    if header.get("key_commitment") != key.commitment:
        raise RunError(f"{path}: this is the record of a run with another key than the one given")
    if header.get(SIZES) != (key.tag("records", *sizes) if sizes else None):
        raise RunError(
            f"{path}: this is the record of a run with data of another size: what was released went by that, and other records "
            "would be drawn now; another data set takes a run of its own"
        )

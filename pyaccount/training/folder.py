"""The folder of a run, which contains its key and its record: it is created for a new run, or opened to continue one.

A key without its record may have been used for rounds that nobody knows of. So a missing record is never made anew for an
existing key, nor a missing key for an existing record. A new key has a temporary name until the record's first line, which
contains the key's commitment, is on the disk; it gets its final name before anything is released. So a run that was killed while
it began can be opened again, as begun or as new, and a key with its final name always has a record.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pyaccount.errors import RunError
from pyaccount.files import write_atomically
from pyaccount.training.key import RunKey, new_nonce, seed_of
from pyaccount.training.mark import FileMark, Mark, MarkPlace, check_mark, mark_at, mark_text
from pyaccount.training.record import STREAMS, VERSION, Layout, Recorded, RecordedRelease, RecordedTrainer, begun
from pyaccount.training.writing import RecordWriter, force

#: Names of the files.
KEY, RECORD, CERTIFICATE = "run.key", "record.jsonl", "certificate.json"
#: How long the other ranks wait for the first one, and how long they sleep before they look again, in seconds.
PATIENCE, LOOKING = 600.0, 0.02

#: The key in the first line for a tag of the sizes of the data, if the document does not state them.
SIZES = "records_tag"

#: The facts that must be the same when a run is continued, and what messages call them.
SAME = {
    "document_sha256": "document",
    "matrices": "matrix: it was read from a file that has changed, or found by a search that ends in other last digits here",
    "noise_multipliers": "noise multiplier",
    "schedules": "schedule",
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
    """The open folder of a run: its key and its record. Ranks other than the first only read: `writer` and `mark` are None."""

    key: RunKey
    path: Path
    recorded: Recorded
    writer: RecordWriter | None
    mark: Mark | None
    #: The text that was last written as the mark.
    _marked: str = ""
    #: The thread that records a release beside its caller, until it has ended: see `release_aside`.
    _recording: threading.Thread | None = None

    @property
    def head(self) -> str:
        """The hash of the last line of the record that this process has read or written."""
        self._settle()
        return self.recorded.last

    @property
    def releases(self) -> list[RecordedRelease]:
        """The recorded releases, one for each round that was released."""
        self._settle()
        return self.recorded.releases

    def known(self, number: int) -> RecordedRelease | None:
        """Return the recorded release of a round, or None if this process has to record it.

        Ranks other than the first wait for the record. Raises `RunError` if the first rank takes too long, or if the file no
        longer continues what was read.
        """
        self._settle()
        if self.writer is None:
            self._await(number)
        return self.releases[number] if number < len(self.releases) else None

    def drawn_by(self) -> tuple[bytes, bytes]:
        """Return a new nonce for the next line, and the seed of its round."""
        nonce = new_nonce()
        return nonce, seed_of(self.head, nonce)

    def begin(self, body: int, layout: Layout, normaliser: float, trainer: RecordedTrainer | None) -> None:
        """Record the layout of a body's summed arrays, their normaliser, and what trains, before the body's first release."""
        arrays = [{name: [kind, list(shape)] for name, (kind, shape) in release.items()} for release in layout]
        more = {} if trainer is None else {"trainer": asdict(trainer)}
        self._append("layout", body=body, arrays=arrays, normaliser=normaliser, **more)

    def release(self, release: RecordedRelease) -> None:
        """Record the next round, with the nonce and the seed that `drawn_by` has returned."""
        assert release.round == len(self.releases)
        self._append(
            "release",
            round=release.round,
            attempt=release.attempt,
            standard_deviations=list(release.standard_deviations),
            sum=release.sum,
            **({} if release.noise is None else {"noise": release.noise}),
            nonce=release.nonce.hex(),
        )
        assert self.releases[-1] == release

    def release_aside(self, release: RecordedRelease) -> Callable[[], None]:
        """Begin to record the next round and to keep its mark in a thread, and return a function that waits for both.

        That function raises what has failed. A caller that is interrupted need not call it: whatever reads or writes the folder
        next waits for the thread. A callable that keeps the mark is called by the caller's thread, which is the one it knows.
        """
        errors: list[BaseException] = []

        def record() -> None:
            try:
                self.release(release)
                if isinstance(self.mark, FileMark):
                    self.keep_mark()
            except BaseException as error:
                errors.append(error)

        def recorded() -> None:
            self._settle()
            if errors:
                raise errors[0]
            self.keep_mark()

        self._settle()
        self._recording = threading.Thread(target=record, daemon=False)
        self._recording.start()
        return recorded

    def _settle(self) -> None:
        """Wait until a release that is recorded in another thread is recorded."""
        thread = self._recording
        # A thread that was never started, because its start was interrupted, records nothing.
        if thread is None or thread is threading.current_thread() or thread.ident is None:
            return
        thread.join()
        self._recording = None

    def rewind(self, target: int) -> None:
        """Record that the run continues from the state before round `target`, and that the rounds since are given up."""
        self._settle()
        if self.writer is not None:
            self._append("rewind", to=target)

    def abandon(self) -> None:
        """Record that the run has ended for good. Raises `RunError` if this process cannot do that."""
        if self.writer is None:
            raise RunError("only the first rank, which writes the record, can abandon a run")
        if not self.recorded.abandoned:
            self._append("abandoned")

    def keep_mark(self) -> None:
        """Write the hash of the record's last line to the mark outside of the folder, if there is one.

        Raises `RunError` if the mark was changed by somebody else while the run was open.
        """
        self._settle()
        if self.mark is None:
            return
        text = mark_text(self.key.commitment, len(self.releases), self.head)
        if text == self._marked:
            return
        # A lost mark is written anew. The new text may be there already, if an earlier write reported an error but succeeded.
        if self._marked and (self.mark.read() or "").strip("\0 \r\n\t") not in ("", self._marked.strip(), text.strip()):
            raise RunError(
                f"{self.mark.place}: the mark of this run was changed while it was open: another copy of its folder goes on, and "
                "nothing more is released here"
            )
        self.mark.write(text)
        self._marked = text

    def close(self) -> None:
        """Record that the run was closed, and unlock the record. A forked child process only closes its copy of the file."""
        self._settle()
        if self.writer is None:
            return
        # Errors here do no harm: without the line, the record is that of an open run, and an older mark is still correct.
        with contextlib.suppress(Exception):
            if self.recorded.last_event != "closed":
                self._append("closed")
                self.keep_mark()
        self.writer.close()

    def _append(self, event: str, **values: Any) -> None:
        assert self.writer is not None
        self._settle()
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
            # The first rank may have written a line that is not on the disk yet; this rank must not use it before.
            force(self.path)


def open_folder(  # noqa: PLR0913 - the places, the run and its options
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
    """Create the folder of a new run with these facts, or open it to continue the run.

    `sizes` are the sizes of the data that the document does not state. They may be secret, so the record has only a tag of them.

    A record identifies its own file. In a copy, or in a file restored from a backup, rounds that were released since are not
    counted, so it is refused unless `moved` confirms that no other copy continues. `mark` is the place where the hash of the last
    line is kept; a record that does not contain the marked line was put back to an earlier state. `certificate` is the
    certificate of a document that was certified just now; it is stored beside the record.

    Raises `RunError` if the folder belongs to another run or is a copy, or if there is a key without a record or the reverse.
    """
    key_path, path = key_path or folder / KEY, folder / RECORD
    if rank > 0:
        key, recorded = _follow(key_path, path)
        _check(recorded, key, facts, sizes, path)
        return RunFolder(key, path, recorded, None, None)
    folder.mkdir(parents=True, exist_ok=True)
    if key_path.exists() and not begun(path):
        raise RunError(
            f"{path}: the record of the run with the key {key_path} is missing, so nobody knows which rounds were released with "
            "this key. Restore the record, or begin a new run in a new folder, with a new key (key=)"
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
                "streams": STREAMS,
                "key_commitment": key.commitment,
                "file": writer.file,
            }
            writer.append("run", **first, **facts, **tag)
            for place in (folder, *folder.absolute().parents):
                # Parent folders that cannot be read existed before, so their names are on the disk already.
                with contextlib.suppress(PermissionError):
                    force(place)
        _put_in_place(key_path, recorded)
        if not key_path.exists():
            raise RunError(
                f"{key_path}: the key of the run in {path} is missing: without it neither batches nor noise can be drawn. "
                "Restore the key, or begin a new run in a new folder"
            )
        key = RunKey.read(key_path)
        _check(recorded, key, facts, sizes, path)
        if recorded.abandoned:
            raise RunError(
                f"{path}: this run was abandoned after {recorded.rounds} rounds. Begin another run in a folder of its own; its "
                "guarantee adds to that of this one"
            )
        kept = mark_at(mark, key.commitment)
        check_mark(kept, key.commitment, path, recorded.rounds)
        if not writer.is_file(recorded.file):
            if not moved:
                raise RunError(
                    f"{path}: this is a copy of a run's record, or was restored. Rounds that were released after the copy was "
                    "made, or that the original still releases, are not counted here. If there are none and never will be, open "
                    "it with moved=True"
                )
            writer.append("moved", file=writer.file)
        opened = RunFolder(key, path, recorded, writer, kept)
        # The mark is written now, so that an error in writing it is raised before anything is released.
        opened.keep_mark()
    except BaseException:
        writer.close()
        raise
    return opened


def _waiting(key_path: Path, commitment: str) -> Path:
    """Return the temporary path of a key, which it has until its record has begun."""
    return key_path.with_name(f".{key_path.name}.{commitment[:16]}")


def _put_in_place(key_path: Path, recorded: Recorded) -> None:
    """Rename the key of a record that has begun to its final path, unless that was done already."""
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
        # This file system has no hard links.
        if not key_path.exists():
            waiting.rename(key_path)
    force(key_path.parent)


def _follow(key_path: Path, path: Path) -> tuple[RunKey, Recorded]:
    """Wait for the key and the record that the first rank makes, and return them."""
    deadline, recorded = time.monotonic() + PATIENCE, Recorded(path)
    while True:
        # A missing file may still come. Every other error is raised at once, because waiting cannot repair it.
        with contextlib.suppress(FileNotFoundError):
            recorded.follow()
            if recorded.header:
                return RunKey.read(key_path), recorded
        if time.monotonic() > deadline:
            raise RunError(f"{path}: the first rank did not begin the run within {PATIENCE:g} s")
        time.sleep(LOOKING)


def _check(recorded: Recorded, key: RunKey, facts: Mapping[str, Any], sizes: Sequence[int], path: Path) -> None:
    header = recorded.header
    if header.get("streams") != STREAMS:
        raise RunError(
            f"{path}: this record names another method of drawing batches and noise than this pyaccount has: continue the run "
            "with the version that began it"
        )
    began_uncertified = header.get("uncertified") is True
    if began_uncertified is not facts["uncertified"]:
        began, now = ("with", "give it here too") if began_uncertified else ("without", "leave it out")
        raise RunError(
            f"{path}: this run began {began} uncertified=True: {now}, or begin another run in a folder of its own"
        )
    for name, words in SAME.items():
        if header.get(name) != facts.get(name):
            recorded_value, value = header.get(name), facts.get(name)
            raise RunError(
                f"{path}: this is the record of a run with another {words}: {recorded_value!r}, and not {value!r}. Its "
                "rounds were released with that value: use it here too, or begin another run in a folder of its own"
            )
    if header.get("key_commitment") != key.commitment:
        raise RunError(
            f"{path}: this is the record of a run with another key than the one given: give the key of this run"
        )
    if header.get(SIZES) != (key.tag("records", *sizes) if sizes else None):
        raise RunError(
            f"{path}: this is the record of a run with data of another size, and with this size other records would be drawn: "
            "give the same data, or begin another run for another data set"
        )

"""The mark of a run: the hash of the last line of its record, kept outside of its folder.

If a folder is put back to an earlier state, from a backup, an archive or a snapshot, its record is put back too. Then the rounds
since are no longer counted, and would be released a second time, and nothing in the folder shows it. So after each release the
hash of the record's last line is kept elsewhere, and a record that does not contain that line is refused.

A mark in a file is written in place. The file has two slots, each with a text, a counter and a checksum of both, and the older
one is overwritten. If a write is torn, by a crash or while somebody reads, its slot has a wrong checksum, and the other slot
still has the text that was marked before: that of the last release that was given out.

By default marks are files in the user's state directory. A snapshot of the whole machine puts these back too. If you take such
snapshots, give a path on another machine, or a callable that keeps a text in an object store, an experiment tracker or a
transparency log.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from pyaccount.errors import RunError, quoted
from pyaccount.training.record import contains

#: A callable that stores a text: `mark(text)` stores it, and `mark()` returns the last one, or None if there is none.
MarkKeeper = Callable[..., str | None]
#: Where the mark is kept: the user's state directory (None), a file, or a callable.
MarkPlace = str | os.PathLike[str] | MarkKeeper | None

#: The largest number of characters of a mark.
LONGEST = 250

#: The number of bytes of a slot, which is that of a sector of a disk, and the number of slots of a file.
SLOT, SLOTS = 512, 2
#: How often a file without a whole slot is read, and the seconds between: both slots may be written while one reader reads.
READS, PAUSE = 20, 0.005


class Mark(Protocol):
    """A text that is kept outside of a run's folder and contains the hash of the record's last line."""

    @property
    def place(self) -> str:
        """Where the text is kept, for messages."""

    def read(self) -> str | None:
        """Return the text that was written last, or None if there is none."""

    def write(self, text: str) -> None:
        """Replace the text."""


def _slot(count: int, text: str) -> bytes:
    """Return a slot: a checksum, a counter and the text, filled up with spaces to a line of `SLOT` bytes."""
    body = f"{count:020d} {text.strip()}"
    return f"{hashlib.sha256(body.encode()).hexdigest()} {body}".encode().ljust(SLOT - 1) + b"\n"


def _whole(slot: bytes) -> tuple[int, str] | None:
    """Return the counter and the text of a slot, or None if it was not written whole."""
    words = slot.decode("ascii", errors="replace").split(maxsplit=2)
    if len(words) != 3 or not words[1].isdecimal() or slot != _slot(int(words[1]), words[2]):
        return None
    return int(words[1]), words[2].strip() + "\n"


def _slots(content: bytes) -> list[tuple[int, str]]:
    """Return the counters and the texts of the whole slots of a file."""
    if len(content) != SLOTS * SLOT:
        return []
    slots = (_whole(content[start : start + SLOT]) for start in range(0, len(content), SLOT))
    return [slot for slot in slots if slot is not None]


class FileMark:
    """A mark in a file of two slots. Slot k has the texts whose counter is k modulo 2."""

    def __init__(self, path: Path) -> None:
        """Keep the mark in this file, whose folder must exist."""
        self._path = path

    @property
    def place(self) -> str:
        """The name of the file."""
        return str(self._path)

    def read(self) -> str | None:
        """Return the text that was written last, or None if there is no file.

        If no slot is whole, return the beginning of the file, for a message.
        """
        content = before = b""
        for attempt in range(READS):
            if attempt > 1:
                time.sleep(PAUSE)
            try:
                with self._path.open("rb") as file:
                    content = file.read(SLOTS * SLOT + 1)
            except FileNotFoundError:
                return None
            slots = _slots(content)
            # While a slot is written, the other one may have been read before it was: then the file has changed.
            if len(slots) == SLOTS or (slots and content == before):
                return max(slots)[1]
            if len(content) != SLOTS * SLOT or not content.strip(b"\0 \r\n\t"):
                break
            before = content
        return content[: LONGEST + 1].decode(errors="replace")

    def write(self, text: str) -> None:
        """Write the text over the older slot. A file without a whole slot is replaced at once.

        It is not forced to the disk. After a crash of the machine an older mark may be there, which detects less.
        """
        with contextlib.suppress(FileNotFoundError, PermissionError), self._path.open("r+b", buffering=0) as file:
            slots = _slots(file.read(SLOTS * SLOT + 1))
            if slots:
                count = max(slots)[0] + 1
                rest = _slot(count, text)
                file.seek(count % SLOTS * SLOT)
                while rest:
                    rest = rest[file.write(rest) :]
                return
        temporary = self._path.with_name(f".{self._path.name}.new")
        temporary.write_bytes(_slot(0, text).ljust(SLOTS * SLOT))
        temporary.replace(self._path)


class DefaultMark(FileMark):
    """A mark in the user's state directory. If it cannot be written, no mark is kept, and a warning says so."""

    #: Whether the warning was given.
    _warned = False

    def read(self) -> str | None:
        """Return the text of the file, or None if it cannot be read."""
        try:
            return super().read() if self._path.is_absolute() else None
        except OSError:
            return None

    def write(self, text: str) -> None:
        """Replace the file, or warn once that it cannot be written."""
        if self._warned:
            return
        try:
            if not self._path.is_absolute():
                raise OSError(errno.ENOENT, "there is no home directory")
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            super().write(text)
        except OSError as error:
            self._warned = True
            warnings.warn(
                f"{self._path}: no mark of this run can be kept here ({error.strerror}): if its folder is put back to an earlier "
                "state, rounds can be released twice but counted once, and nothing shows it. Give TrainingRun(…, mark=PATH)",
                RuntimeWarning,
                stacklevel=2,
            )


class CallableMark:
    """A mark that a callable keeps."""

    def __init__(self, keeper: MarkKeeper) -> None:
        """Use this callable to keep the mark."""
        self._keeper = keeper

    @property
    def place(self) -> str:
        """The call that returns the text, for messages."""
        return "mark()"

    def read(self) -> str | None:
        """Return the text from the callable. Raises `RunError` if it returns neither a text nor None."""
        kept = self._keeper()
        if kept is not None and not isinstance(kept, str):
            raise RunError(f"mark() returned {quoted(kept)}: the text that was kept last is expected, or None")
        return kept

    def write(self, text: str) -> None:
        """Store the text with the callable."""
        self._keeper(text)


def mark_at(place: MarkPlace, commitment: str) -> Mark:
    """Return the mark at this place, for the run whose key has this commitment."""
    if callable(place):
        return CallableMark(place)
    if place is None:
        return DefaultMark(_state_directory() / "pyaccount" / "runs" / commitment)
    return FileMark(Path(place).absolute())


def _state_directory() -> Path:
    """Return the folder for the state of this user's programs: $XDG_STATE_HOME, or the usual folder of the system."""
    stated = os.environ.get("XDG_STATE_HOME", "")
    if Path(stated).is_absolute():
        return Path(stated)
    if sys.platform == "win32":  # pragma: no cover - only there
        return Path(os.environ.get("LOCALAPPDATA") or "~/AppData/Local").expanduser()
    return Path(os.path.expanduser("~")) / ".local" / "state"  # noqa: PTH111 - pathlib raises if there is no home


def mark_text(commitment: str, rounds: int, head: str) -> str:
    """Return the text of a mark: the commitment of the run's key, the number of rounds, and the hash of the last line."""
    return f"{commitment} {rounds} {head}\n"


def check_mark(mark: Mark, commitment: str, record: Path, rounds: int) -> None:
    """Raise `RunError` if the mark belongs to another run, or if the record does not contain the line that was marked last."""
    kept = mark.read()
    if not kept or not kept.strip("\0 \r\n\t"):
        # A crash of the machine can leave an empty file, or one of zeros.
        return
    words = kept.split()
    if len(kept) > LONGEST or len(words) != 3 or not words[1].isdecimal():
        raise RunError(
            f"{mark.place}: this is not a mark: {quoted(kept)}. A mark has a commitment, a number of rounds and a hash"
        )
    if words[0] != commitment:
        raise RunError(
            f"{mark.place}: this mark belongs to another run, whose key has the commitment {words[0]}: every run needs a mark of "
            "its own, so give another mark="
        )
    if not contains(record, words[2]):
        raise RunError(
            f"{record}: this record has {rounds} rounds, and does not contain the line that was last marked in {mark.place}, "
            f"after {words[1]} rounds. The folder was put back to an earlier state, or another copy of it has continued, and the "
            "rounds since are not counted here. Find the record that contains the line. Without it the run cannot continue: "
            "begin a new run, whose guarantee adds to that of this one"
        )

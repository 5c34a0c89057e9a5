"""The mark of a run: how far its record had got, kept outside of its folder.

Whoever puts a folder back to an earlier state, from a backup, an archive or a snapshot, takes its record back with it: the rounds
since are counted no more, and are released a second time. The folder cannot know. So after each line the hash of the record's
last line is kept elsewhere, and a record that does not contain it is refused.

By default marks are files in the user's state directory. A snapshot of the whole machine puts these back too: whoever takes such
snapshots gives a path on another machine, or a callable that keeps a text in an object store, an experiment tracker or a
transparency log.
"""

from __future__ import annotations

import errno
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from pyaccount.errors import RunError, shown
from pyaccount.training.record import contains

#: `mark()` returns the text that was kept last, None if there is none; `mark(text)` keeps a text.
MarkKeeper = Callable[..., str | None]
#: Where the mark is kept: the user's state directory (None), a file, or a callable.
MarkPlace = str | os.PathLike[str] | MarkKeeper | None

#: No mark has more characters.
LONGEST = 250


class Mark(Protocol):
    """A text outside of a run's folder that has the hash of the record's last line."""

    @property
    def place(self) -> str:
        """Where the text is kept, for messages."""

    def read(self) -> str | None:
        """Return the text that was written last, None if there is none."""

    def write(self, text: str) -> None:
        """Replace the text."""


class FileMark:
    """A mark in a file."""

    def __init__(self, path: Path) -> None:
        """Keep the mark in this file. Its folder must exist."""
        self._path = path

    @property
    def place(self) -> str:
        """The name of the file."""
        return str(self._path)

    def read(self) -> str | None:
        """Return the text of the file."""
        try:
            with self._path.open(encoding="utf-8", errors="replace") as file:
                return file.read(LONGEST + 1)
        except FileNotFoundError:
            return None

    def write(self, text: str) -> None:
        """Replace the file, whole.

        It is not forced onto the disk: after a crash of the machine an older mark may be there, which is as good as none.
        """
        temporary = self._path.with_name(f".{self._path.name}.new")
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(self._path)


class DefaultMark(FileMark):
    """A mark in the user's state directory. If that cannot be written, no mark is kept, and a warning says so."""

    #: Whether the warning was given.
    _warned = False

    def read(self) -> str | None:
        """Return the text of the file, None if it cannot be read."""
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
                "state, rounds can be released twice and are counted once, and nobody notices. Give TrainingRun(…, mark=PATH)",
                RuntimeWarning,
                stacklevel=2,
            )


class CallableMark:
    """A mark that a callable keeps."""

    def __init__(self, keeper: MarkKeeper) -> None:
        """Let this callable keep the mark."""
        self._keeper = keeper

    @property
    def place(self) -> str:
        """What returned the text."""
        return "mark()"

    def read(self) -> str | None:
        """Ask the callable for the text. Raises `RunError` if it returns something else."""
        kept = self._keeper()
        if kept is not None and not isinstance(kept, str):
            raise RunError(f"mark() returned {shown(kept)}, where the text that was kept last is expected, or None")
        return kept

    def write(self, text: str) -> None:
        """Give the text to the callable."""
        self._keeper(text)


def mark_at(place: MarkPlace, commitment: str) -> Mark:
    """Return the mark of the run with this commitment."""
    if callable(place):
        return CallableMark(place)
    if place is None:
        return DefaultMark(state_directory() / "pyaccount" / "runs" / commitment)
    return FileMark(Path(place).absolute())


def state_directory() -> Path:
    """Return the folder in which programs of this user keep their state: $XDG_STATE_HOME, or the system's usual one."""
    stated = os.environ.get("XDG_STATE_HOME", "")
    if Path(stated).is_absolute():
        return Path(stated)
    if sys.platform == "win32":  # pragma: no cover - only there
        return Path(os.environ.get("LOCALAPPDATA") or "~/AppData/Local").expanduser()
    return Path(os.path.expanduser("~")) / ".local" / "state"  # noqa: PTH111 - without a home pathlib raises, and nothing is there


def text_of(commitment: str, rounds: int, head: str) -> str:
    """Return the text of a mark: the run, how many rounds its record has, and the hash of the record's last line."""
    return f"{commitment} {rounds} {head}\n"


def check_mark(mark: Mark, commitment: str, record: Path, rounds: int) -> None:
    """Raise `RunError` if the mark is another run's, or the record does not contain the line that was marked last."""
    kept = mark.read()
    if not kept or not kept.strip("\0 \r\n\t"):
        # A crash of the machine can leave an empty file, or one of zeros.
        return
    words = kept.split()
    if len(kept) > LONGEST or len(words) != 3 or not words[1].isdecimal():
        raise RunError(
            f"{mark.place}: this is not a mark: {shown(kept)}. It has a commitment, a number of rounds and a hash"
        )
    if words[0] != commitment:
        raise RunError(
            f"{mark.place}: this mark belongs to another run, whose key has the commitment {words[0]}: every run has a mark of "
            "its own"
        )
    if not contains(record, words[2]):
        raise RunError(
            f"{record}: this record has {rounds} rounds, and does not contain the line that was last marked in {mark.place}, "
            f"after {words[1]} rounds. The folder was put back to an earlier state, or another copy of it has gone on, and what "
            "was released since is not counted here. Find the record that contains it. Without it the run cannot go on: a new "
            "run's guarantee adds to that of this one"
        )

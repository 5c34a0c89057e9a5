"""`RecordWriter`, which adds lines to a record's file; only one process at a time can do that.

A line is on the disk before the release that it reports can be used. So after a crash the record may count one round too many,
but never too few.
"""

from __future__ import annotations

import contextlib
import os
import weakref
from pathlib import Path
from typing import Any, ClassVar

from pyaccount import _core
from pyaccount.errors import RunError
from pyaccount.training.record import EVENTS, LONGEST_LINE, Recorded, begun, event_line


class RecordWriter:
    """Adds lines to a record's file, which is locked against other processes while this object is open."""

    #: The writers of this process, to find out whether it has a file open already.
    _open: ClassVar[weakref.WeakSet[RecordWriter]] = weakref.WeakSet()

    def __init__(self, path: Path) -> None:
        """Open a record, or begin one. Raises `RunError` if another writer has locked it, or if the record is damaged."""
        #: Whether all lines that were added are known to be on the disk, and are in `recorded`.
        self._sound, self._handle = True, -1
        self._path, self._process = path, os.getpid()
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0), 0o644)
        try:
            self._hold()
            #: The content of the file, updated with every line that is added.
            self.recorded = Recorded.read(path) if begun(path) else Recorded(path)
            # An unfinished line is removed: what it would have reported was never used.
            os.ftruncate(self._handle, self.recorded.whole)
            # Lines that a killed process has written may not be on the disk yet.
            os.fsync(self._handle)
        except BaseException:
            self.close()
            raise
        self._open.add(self)

    def _hold(self) -> None:
        """Lock the file against other writers. Raises `RunError` if another writer has locked it."""
        if _held(self._handle):
            return
        here = os.fstat(self._handle)
        for other in self._open:
            if other._handle >= 0 and other._process == os.getpid() and os.path.samestat(os.fstat(other._handle), here):
                raise RunError(
                    f"{self._path}: this process has this run open already: close() the other TrainingRun first"
                )
        raise RunError(
            f"{self._path}: another process has this run open, and only one at a time can: wait until it ends, or end it"
        )

    def append(self, event: str, **values: Any) -> None:
        """Add a line, which is on the disk when this method returns.

        Raises `OSError` if it may not be on the disk. Then nothing more can be added; the record must be opened again, which
        shows whether it contains the line.
        """
        assert event in EVENTS
        line = event_line({"event": event, **values, "previous": self.recorded.last})
        if len(line) > LONGEST_LINE:
            raise RunError(
                f"a line of the record has at most {LONGEST_LINE:_} bytes, and this one ({event}) has {len(line):_}"
            )
        self._check_alone()
        self._sound = False
        done = 0
        while done < len(line):
            done += os.write(self._handle, line[done:])
        os.fsync(self._handle)
        self.recorded.take(line)
        self._sound = True

    @property
    def file(self) -> list[int | None]:
        """What distinguishes the record's file from a copy: its inode number and its creation time, in nanoseconds since 1970.

        The time is needed because the numbers of deleted files are used again; it is None if the file system does not store it.
        """
        return [os.fstat(self._handle).st_ino, _core.created(self._path)]

    def is_file(self, recorded: object) -> bool:
        """Return whether the open file is the one that the record names."""
        here = self.file
        if not isinstance(recorded, list) or len(recorded) != len(here):
            return False
        # The time may be unknown to the file system, or to a network file system through which the file is seen now.
        return all(old == new or None in (old, new) for old, new in zip(recorded, here, strict=True))

    def __del__(self) -> None:
        """Close and unlock the file if it is still open, so that it can be opened again."""
        self.close()

    def _check_alone(self) -> None:
        """Raise `RunError` if somebody else may write too: locks do not stop forked processes, nor work on every file system."""
        check_process(self._process)
        if self._handle < 0:
            raise RunError("the run was closed: open it once more to continue")
        if not self._sound:
            raise RunError(
                "the record's last line may not be on the disk: close() the run and open it again, which shows whether the "
                "round was counted"
            )
        here, there = os.fstat(self._handle), self._path.stat()
        if (here.st_dev, here.st_ino) != (there.st_dev, there.st_ino) or here.st_size != self.recorded.whole:
            raise RunError(
                f"{self._path}: the record was changed by somebody else while the run was open: nothing more is released here"
            )

    def close(self) -> None:
        """Close and unlock the file. A forked child process only closes its copy of the file."""
        if self._handle >= 0:
            if os.getpid() == self._process:
                # Closing alone would leave the file locked for as long as a forked child process has its copy open.
                _let_go(self._handle)
            os.close(self._handle)
            self._handle = -1


def check_process(opener: int) -> None:
    """Raise `RunError` in every process except for the one that opened the run, such as a forked child process."""
    if os.getpid() != opener:
        raise RunError("another process opened this run, and only that process can continue it")


def _held(handle: int) -> bool:
    """Lock the file for this process. Return False if another writer has locked it."""
    try:
        import fcntl  # not on every system
    except ImportError:  # pragma: no cover - such systems have no lock, and the user must keep other writers away
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _let_go(handle: int) -> None:
    """Unlock the file for other processes, even if another process has a copy of the handle open."""
    try:
        import fcntl  # not on every system
    except ImportError:  # pragma: no cover - nothing was locked
        return
    with contextlib.suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_UN)


def force(path: Path) -> None:
    """Force the content of a file, or the names in a folder, to the disk."""
    if (
        os.name != "posix"
    ):  # pragma: no cover - other systems cannot force folders, nor files that are open for reading only
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

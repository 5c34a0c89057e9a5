"""The end of a record's file: lines are added by one process at a time.

A line is on the disk before what it reports can be used, so that a crash leaves the record too high and never too low.
"""

from __future__ import annotations

import contextlib
import os
import weakref
from pathlib import Path
from typing import Any, ClassVar

from pyaccount import _core
from pyaccount.errors import RunError
from pyaccount.training.record import EVENTS, LONGEST_LINE, VERSION, Recorded, begun, line_of


class RecordWriter:
    """Adds lines to a record's file, which one process at a time can hold."""

    #: The writers of this process.
    _open: ClassVar[weakref.WeakSet[RecordWriter]] = weakref.WeakSet()

    def __init__(self, path: Path) -> None:
        """Open a record, or begin one. Raises `RunError` if somebody else holds it or the record is damaged."""
        #: Whether everything that was added is known to be on the disk, and in `recorded`.
        self._sound, self._handle = True, -1
        self._path, self._process = path, os.getpid()
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0), 0o644)
        try:
            self._hold()
            #: What is in the file, which goes on with every line that is added.
            self.recorded = Recorded.read(path) if begun(path) else Recorded(path)
            # A line that was not finished reported nothing that anybody has seen.
            os.ftruncate(self._handle, self.recorded.whole)
            # What a process that was killed has written may be in no more than the system's memory.
            os.fsync(self._handle)
        except BaseException:
            self.close()
            raise
        self._open.add(self)

    def _hold(self) -> None:
        """Keep others from writing. Raises `RunError` if somebody does."""
        if _held(self._handle):
            return
        here = os.fstat(self._handle)
        for other in self._open:
            if other._handle >= 0 and other._process == os.getpid() and os.path.samestat(os.fstat(other._handle), here):
                raise RunError(
                    f"{self._path}: this process has opened this run already, and goes on with it there: close() that one first"
                )
        raise RunError(
            f"{self._path}: another process goes on with this run, and one at a time can hold its record: wait for it, or end it"
        )

    def append(self, event: str, **values: Any) -> None:
        """Add a line, which is on the disk when this returns.

        Raises `OSError` if it may not be; then nothing can be added any more, and the record has to be taken up again, which
        finds out what is in it.
        """
        assert event in EVENTS
        line = line_of({"event": event, **values, "previous": self.recorded.last})
        if len(line) > LONGEST_LINE:
            raise RunError(
                f"a line of the record has at most {LONGEST_LINE:_} bytes, and this {event} has {len(line):_}"
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
    def version(self) -> int:
        """The version of the lines' form: that of the record, or the newest for a record that begins."""
        return self.recorded.version if self.recorded.header else VERSION

    @property
    def file(self) -> int | list[int | None]:
        """What distinguishes the record's file from a copy: its inode number, and when it was made, in nanoseconds since 1970.

        The time is None where the file system does not keep it. It is needed because numbers of deleted files are given out
        again. In a record of version 1 there is the number alone.
        """
        number = os.fstat(self._handle).st_ino
        return [number, _core.created(self._path)] if self.version > 1 else number

    def is_file(self, recorded: object) -> bool:
        """Return whether the open file is the one that the record names."""
        here = self.file
        if isinstance(here, int):
            return recorded == here
        if not isinstance(recorded, list) or len(recorded) != len(here):
            return False
        # A file system may not know when a file was made, or be asked through one that does not.
        return all(old == new or None in (old, new) for old, new in zip(recorded, here, strict=True))

    def __del__(self) -> None:
        """Release the file if nobody closed it, so that it can be opened again."""
        self.close()

    def _check_alone(self) -> None:
        """Raise `RunError` if somebody else may be writing too: locks do not hold forked processes, nor on every file system."""
        check_process(self._process)
        if self._handle < 0:
            raise RunError("the run was closed: open it once more to go on")
        if not self._sound:
            raise RunError(
                "the record's last line may not be on the disk: take the run up again, by close() and opening it anew, which "
                "finds out whether its round was counted"
            )
        here, there = os.fstat(self._handle), self._path.stat()
        if (here.st_dev, here.st_ino) != (there.st_dev, there.st_ino) or here.st_size != self.recorded.whole:
            raise RunError(
                f"{self._path}: the record was changed by somebody else while the run was open: nothing more is released"
            )

    def close(self) -> None:
        """Let others go on with the record. In a process that was forked off this lets go of its copy of the file alone."""
        if self._handle >= 0:
            if os.getpid() == self._process:
                # Closing alone would leave it held for as long as a process that was forked off has its copy open.
                _let_go(self._handle)
            os.close(self._handle)
            self._handle = -1


def check_process(opener: int) -> None:
    """Raise `RunError` in every process but the one that opened the run, such as one that was forked off it."""
    if os.getpid() != opener:
        raise RunError("another process opened this run: it alone goes on with it")


def _held(handle: int) -> bool:
    """Lock the file for this process. Return False if another writer has it."""
    try:
        import fcntl  # not on every system
    except ImportError:  # pragma: no cover - there, whoever runs it keeps others away
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _let_go(handle: int) -> None:
    """Let other processes write, whoever else has the file open."""
    try:
        import fcntl  # not on every system
    except ImportError:  # pragma: no cover - nothing was held
        return
    with contextlib.suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_UN)


def force(path: Path) -> None:
    """Force the content of a file, or the names in a folder, to the disk."""
    if os.name != "posix":  # pragma: no cover - folders cannot be opened there, nor files that are only read
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

"""Makes sure that standard streams which are closed, full or without a reader change no answer.

A supervisor may start a command without streams, and a reader may close a pipe early. Neither says anything about a
claim, so neither may cause its own exit code. Results that must be kept are different: `heard` says whether stdout is a
place for them.
"""

from __future__ import annotations

import io
import os
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


#: The replacements for standard streams that were closed when the command was started, by their names.
closed: dict[str, TextIO] = {}

#: The file names that mean stdout.
_STDOUT = ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")


class _Stream(io.FileIO):
    """The descriptor of a stream. Some errors are not raised: the output is lost instead."""

    def __init__(self, descriptor: int, lost_by: type[OSError]) -> None:
        super().__init__(descriptor, "wb", closefd=False)
        self.gone = False
        self._lost_by = lost_by

    def write(self, data: ReadableBuffer, /) -> int:
        """Write, or discard what nobody can read any more."""
        while not self.gone:
            try:
                written = super().write(data)
            except self._lost_by:
                self.gone = True
            else:
                # A stream that somebody else made non-blocking returns None if it would have to wait.
                if written is not None:
                    return written
                import select

                select.select((), (self,), ())
        return memoryview(data).nbytes


def fill() -> None:
    """Open the null device in place of each closed standard stream.

    It also takes the stream's descriptor. Otherwise the next opened file would get that descriptor, and other code
    might print into it.
    """
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            try:
                os.fstat(descriptor)
            except OSError:
                os.dup2(nowhere, descriptor)
                os.close(nowhere)
                nowhere = descriptor
            # Like the stream that it replaces, it stays open until the process ends, even if it is wrapped.
            closed[name] = open(nowhere, "w" if descriptor else "r", encoding="utf-8", closefd=False)  # noqa: SIM115
            setattr(sys, name, closed[name])


def prepare() -> None:
    """Set up the streams of a command. Output is UTF-8 in every locale, because results contain ε and δ."""
    fill()
    # On stdout only a reader that has gone is ignored: if the disk is full, a result is lost. An error on stderr cannot
    # be reported anywhere and must not change the exit code.
    for name, lost_by in (("stdout", BrokenPipeError), ("stderr", OSError)):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            stream.flush()
            buffered = io.BufferedWriter(_Stream(stream.fileno(), lost_by))
            # Bytes in file names that are not text are escaped.
            ready = io.TextIOWrapper(
                buffered,
                encoding="utf-8",
                errors="backslashreplace",
                line_buffering=stream.line_buffering,
                write_through=stream.write_through,
            )
            setattr(sys, name, ready)


def is_closed(output: str) -> bool:
    """Return whether a value of `--output` means stdout, which was closed when the command was started."""
    return output in _STDOUT and "stdout" in closed


def stdin_is_closed() -> bool:
    """Return whether there is no stdin. A stream that was put in its place later counts as stdin."""
    return sys.stdin is None or sys.stdin is closed.get("stdin")


def give_up() -> None:
    """Discard all further output to stdout. Otherwise the interpreter would report the error again at exit."""
    raw = _raw()
    if raw is not None:
        raw.gone = True


def heard() -> bool:
    """Return whether stdout goes to somebody: it is open, is not the null device, and its reader exists."""
    raw = _raw()
    if raw is not None and raw.gone:
        return False
    try:
        status, nowhere = os.fstat(sys.stdout.fileno()), Path(os.devnull).stat()
    except (AttributeError, OSError, ValueError):
        # stdout has no descriptor: it is text in memory, for the caller.
        return sys.stdout is not None
    return not (stat.S_ISCHR(status.st_mode) and status.st_rdev == nowhere.st_rdev)


def _raw() -> _Stream | None:
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    return raw if isinstance(raw, _Stream) else None

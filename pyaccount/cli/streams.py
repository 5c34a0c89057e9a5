"""The standard streams as a gate needs them: closed, full or without a reader, they change no answer.

A supervisor may start a command without streams, and a reader may go when it has seen enough. Neither says anything about a
claim, so neither may end in an exit code of its own. What was meant to be kept is another matter: `heard` says whether
stdout is a place for it.
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


#: What stands in for the standard streams that were closed when the command was started, by their names.
closed: dict[str, TextIO] = {}

#: What names stdout among files.
_STDOUT = ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")


class _Stream(io.FileIO):
    """A stream's descriptor, on which some errors lose what is written instead of being raised."""

    def __init__(self, descriptor: int, lost_by: type[OSError]) -> None:
        super().__init__(descriptor, "wb", closefd=False)
        self.gone = False
        self._lost_by = lost_by

    def write(self, data: ReadableBuffer, /) -> int:
        """Write, or lose what nobody can read any more."""
        while not self.gone:
            try:
                written = super().write(data)
            except self._lost_by:
                self.gone = True
            else:
                # A stream that somebody else made non-blocking says None where it would have to wait.
                if written is not None:
                    return written
                import select

                select.select((), (self,), ())
        return memoryview(data).nbytes


def fill() -> None:
    """Open the null device where a standard stream is closed.

    Its descriptor is taken too: else the next file that is opened would get it, and with it what others print there.
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
            # Like the stream that it stands for it stays open until the process ends, whoever wraps it.
            closed[name] = open(nowhere, "w" if descriptor else "r", encoding="utf-8", closefd=False)  # noqa: SIM115
            setattr(sys, name, closed[name])


def prepare() -> None:
    """Make the streams of this process those of a command. Output is UTF-8, for results hold ε and δ whatever the locale."""
    fill()
    # Of stdout only a reader that has gone is forgiven: a disk that is full took a result. What cannot be told on stderr
    # cannot be told anywhere, and must not become an exit code.
    for name, lost_by in (("stdout", BrokenPipeError), ("stderr", OSError)):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            stream.flush()
            buffered = io.BufferedWriter(_Stream(stream.fileno(), lost_by))
            # Names of files that are no text are spelled out.
            ready = io.TextIOWrapper(
                buffered,
                encoding="utf-8",
                errors="backslashreplace",
                line_buffering=stream.line_buffering,
                write_through=stream.write_through,
            )
            setattr(sys, name, ready)


def is_closed(output: str) -> bool:
    """Whether a name of `--output` stands for stdout, which was closed when the command was started."""
    return output in _STDOUT and "stdout" in closed


def stdin_is_closed() -> bool:
    """Whether there is no stdin; what somebody put in its place since is one."""
    return sys.stdin is None or sys.stdin is closed.get("stdin")


def give_up() -> None:
    """Let nothing more be written to stdout, neither now nor by the interpreter at exit, which would tell it once more."""
    raw = _raw()
    if raw is not None:
        raw.gone = True


def heard() -> bool:
    """Whether what is printed on stdout goes to somebody: it is open, is not the null device, and its reader is there."""
    raw = _raw()
    if raw is not None and raw.gone:
        return False
    try:
        status, nowhere = os.fstat(sys.stdout.fileno()), Path(os.devnull).stat()
    except (AttributeError, OSError, ValueError):
        # No descriptor: text in memory, for whoever called.
        return sys.stdout is not None
    return not (stat.S_ISCHR(status.st_mode) and status.st_rdev == nowhere.st_rdev)


def _raw() -> _Stream | None:
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    return raw if isinstance(raw, _Stream) else None

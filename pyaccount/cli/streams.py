"""Makes sure that standard streams which are closed, full or without a reader change no answer.

A supervisor may start a command without streams, and a reader may close a pipe early. Neither says anything about a
claim, so neither may cause its own exit code. Results that must be kept are different: `heard` says whether stdout is a
place for them.

With `--format json` stdout always has one JSON value: the errors of a command too, if it fails. Their text is still printed on
stderr, and the exit code is the same.
"""

from __future__ import annotations

import io
import os
import re
import stat
import sys
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from _typeshed import ReadableBuffer

    from pyaccount.messages import ErrorRecord

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


class UnknownWord(click.UsageError):
    """An unknown word in the command line; `possibilities` are what it may have meant, the most likely first."""

    def __init__(self, message: str, ctx: click.Context, possibilities: Sequence[str] = ()) -> None:
        super().__init__(message, ctx)
        self.possibilities = possibilities


def as_data(arguments: Sequence[str] | None) -> bool:
    """Return whether a command line asks for JSON. The command line need not be valid."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    # Words after `--` are not options.
    words = words[: words.index("--")] if "--" in words else words
    asked = [
        word.removeprefix("--format=")
        for before, word in pairwise(["", *words])
        if before == "--format" or word.startswith("--format=")
    ]
    return asked[-1:] == ["json"]


def in_options(message: str, options: Iterable[click.Parameter]) -> str:
    """Replace the names of arguments in a function's message by the options of the command.

    A message names an argument in backticks, with the wrong value (`confidence = 2`, `runs="many"`), or by a word that
    is not English, such as `trusted_keys`. Document keys with the same name are preceded by their path and are not
    replaced.
    """
    for option in options:
        name, flag = option.name, max(option.opts, key=len)
        if not isinstance(option, click.Option) or name is None or name not in message:
            continue
        message = message.replace(f"`{name}`", flag)
        alone = rf"(?<![\w.`-]){name}"
        message = re.sub(rf'{alone}="(\w+)"', rf"{flag} \1", message)
        message = re.sub(rf"{alone}(?![\w.`-])" if "_" in name else rf"{alone}(?= = )", flag, message)
    return message


def command_of(arguments: Sequence[str] | None, known: Iterable[str]) -> str | None:
    """Return the command that a command line calls; None if there is none."""
    words = sys.argv[1:] if arguments is None else arguments
    first = next((word for word in words if not word.startswith("-")), None)
    return first if first is not None and first in known else None


def tell_errors(command: str | None, code: int, *found: BaseException) -> None:
    """Print errors as one JSON value on stdout. If stdout cannot be written, the exit code is enough."""
    from pyaccount.messages import errors  # needed only after a failure

    records = [record for one in found for record in _records(one)]
    try:
        click.echo(errors(command, code, records).to_json(), nl=False)
        sys.stdout.flush()
    except OSError:
        give_up()


def _records(error: BaseException) -> list[ErrorRecord]:
    from pyaccount.errors import PyaccountError
    from pyaccount.messages import errors_of, failure

    if isinstance(error, PyaccountError):
        return errors_of(error)
    if isinstance(error, click.ClickException):
        like = getattr(error, "possibilities", None)
        return [failure("usage", error.format_message(), suggestion=like[0] if like else None)]
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return [failure("interrupted", "interrupted: there is no result")]
    if isinstance(error, OSError):
        file = error.filename if isinstance(error.filename, str) else None
        return [failure("input-output", error.strerror or str(error), file=file)]
    if isinstance(error, MemoryError):
        return [failure("limit", "there is not enough memory: nothing was certified")]
    return [failure("bug", f"{type(error).__name__}: {error}")]

"""Prints errors of a command as JSON on stdout if `--format json` is given: stdout always has one JSON value.

The text of the error is still printed on stderr, and the exit code is the same.
"""

from __future__ import annotations

import re
import sys
from itertools import pairwise
from typing import TYPE_CHECKING

import click

from pyaccount.cli import streams

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyaccount.messages import ErrorRecord


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
        streams.give_up()


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

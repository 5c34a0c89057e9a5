"""Documents from standard input: `-` means standard input wherever a document is expected."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from pyaccount.cli import streams

if TYPE_CHECKING:
    from pyaccount.reading.sources import Handed

#: The names that mean standard input, and its name in errors.
SPELLINGS = ("-", "/dev/stdin")
NAME = "<stdin>"


def _is_stdin(name: str) -> bool:
    """Return whether an argument means standard input; a file with this name is written ./-."""
    return name in SPELLINGS


def files_of(*names: str | None) -> list[str]:
    """Return the arguments that name files. At most one argument may be standard input, which is read only once."""
    given = [name for name in names if name is not None]
    if sum(map(_is_stdin, given)) > 1:
        raise click.UsageError("- means standard input, which can be read only once: give it only once")
    return [name for name in given if not _is_stdin(name)]


def source_of(name: str, *, largest: int | None = None) -> str | Handed:
    """Return what a document is loaded from: the name of its file, or the contents of standard input.

    `largest` is the size limit if the source may be something larger than a document. Raises `DocumentError`.
    """
    if not _is_stdin(name):
        return name
    from pyaccount.errors import DocumentError, Problem
    from pyaccount.reading.sources import (
        LARGEST_FILE,  # not needed for a file
        Handed,
    )

    # A program that was started without standard input has none.
    if streams.stdin_is_closed():
        raise DocumentError([Problem("unreadable-file", "standard input is closed", file=NAME)])
    if sys.stdin.isatty():
        click.echo("reading the document from the terminal; press Ctrl-D at its end", err=True)
    try:
        return Handed(NAME, sys.stdin.buffer.read((largest or LARGEST_FILE) + 1))
    except OSError as error:
        message = f"standard input cannot be read: {error.strerror or error}"
        raise DocumentError([Problem("unreadable-file", message, file=NAME)]) from error


def argument_name(name: str) -> str:
    """Return the name of an argument in messages."""
    return NAME if _is_stdin(name) else name

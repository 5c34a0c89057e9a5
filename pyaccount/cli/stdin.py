"""Documents from standard input: `-` means standard input wherever a document is expected."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from pyaccount.cli import streams

if TYPE_CHECKING:
    from pyaccount.document.sources import Handed

#: What means standard input, and what errors call it.
SPELLINGS = ("-", "/dev/stdin")
NAME = "<stdin>"


def is_stdin(name: str) -> bool:
    """Whether an argument stands for standard input; a file of this name is written ./-."""
    return name in SPELLINGS


def files_of(*names: str | None) -> list[str]:
    """Those of the arguments that name files. At most one of all may be standard input, which is read only once."""
    given = [name for name in names if name is not None]
    if sum(map(is_stdin, given)) > 1:
        raise click.UsageError("- means standard input, which can be read only once: give it only once")
    return [name for name in given if not is_stdin(name)]


def source_of(name: str, *, largest: int | None = None) -> str | Handed:
    """What a document is loaded from: its file's name, or what standard input holds. Raises `DocumentError`.

    `largest` is for what may be another thing than a document, and larger.
    """
    if not is_stdin(name):
        return name
    from pyaccount.document.files import LARGEST_FILE  # nothing is loaded for a file
    from pyaccount.document.sources import Handed
    from pyaccount.errors import DocumentError, Problem

    # A program that is started without one has none.
    if streams.stdin_is_closed():
        raise DocumentError([Problem("unreadable-file", "standard input is closed", file=NAME)])
    if sys.stdin.isatty():
        click.echo("reading the document from the terminal; press Ctrl-D at its end", err=True)
    try:
        return Handed(NAME, sys.stdin.buffer.read((largest or LARGEST_FILE) + 1))
    except OSError as error:
        message = f"standard input cannot be read: {error.strerror or error}"
        raise DocumentError([Problem("unreadable-file", message, file=NAME)]) from error


def called(name: str) -> str:
    """What messages call an argument."""
    return NAME if is_stdin(name) else name

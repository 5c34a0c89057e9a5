"""Parts that commands share: exit codes, options, where output goes, its width, and documents from standard input (`-`)."""

from __future__ import annotations

import os
import sys
import textwrap
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TextIO

import click

from pyaccount.cli import streams

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from pyaccount.document.document import Document
    from pyaccount.execute.progress import Report
    from pyaccount.pages.page import Page
    from pyaccount.reading.sources import Handed

#: The minimum width of wrapped text, in columns; a narrower terminal breaks the lines.
LEAST = 24

#: The indentation of the message of an error, in columns.
MESSAGE = 4


def room(stream: TextIO) -> int | None:
    """Return the number of columns of a stream: the value of COLUMNS, or the terminal's; None for files and pipes."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isascii() and columns.isdigit() and int(columns) > 0:
        return max(int(columns), LEAST)
    try:
        return max(os.get_terminal_size(stream.fileno()).columns or 80, LEAST) if stream.isatty() else None
    except (OSError, ValueError):
        return None


def fitted(text: str, width: int | None, *, indent: int | None = None) -> str:
    """Return text with its lines wrapped between words, never inside one; continuation lines are indented.

    If `width` is None, the text is returned unchanged.
    """
    if width is None:
        return text
    lines = []
    for line in text.split("\n"):
        before = len(line) - len(line.lstrip())
        # A continuation is indented like its line, or like the message below an error's position.
        further = indent if indent is not None else before if before >= MESSAGE else before + MESSAGE
        lines += textwrap.wrap(
            line,
            max(width, LEAST),
            subsequent_indent=" " * further,
            expand_tabs=False,
            replace_whitespace=False,
            break_long_words=False,
            break_on_hyphens=False,
        ) or [line]
    return "\n".join(lines)


HOLDS, FAILS, WRONG, STOPPED, BUG, INTERRUPTED = 0, 1, 2, 3, 70, 130

#: Every exit code and its meaning, for people.
EXIT_CODES = {
    HOLDS: "Success. The claim holds (certify, compare, sweep), the certificate passes (check) or agrees with what "
    "was recomputed (verify), the audit is consistent (audit), or the command did what it was asked to do.",
    FAILS: "The claim does not hold, the certificate does not meet a limit, no trusted key signed it, it does not "
    "agree with what was recomputed, the audit refutes it, or the probe found something.",
    WRONG: "The document, the certificate or the command line is wrong, or a package that the command needs is not "
    "installed. There is no result for it.",
    STOPPED: "A limit of time or memory was reached, or a number could not be bounded: nothing was certified. Or the "
    "result could not be written where it was asked for: the message says where it is.",
    BUG: "A bug of pyaccount. It says nothing about the document or the certificate. Please report the traceback.",
    INTERRUPTED: "Interrupted. Nothing was written.",
}


def code_of(whys: Collection[str], *, holds: bool) -> int:
    """Return the exit code of several results, given why some of them failed (`wrong`, `stopped`), and whether all hold."""
    if "wrong" in whys or "stopped" in whys:
        return WRONG if "wrong" in whys else STOPPED
    return HOLDS if holds else FAILS


#: The environment variable by which a shell asks for completions.
COMPLETING = "_PYACCOUNT_COMPLETE"

#: The width of pages in files and pipes, and of those with wide tables.
PIPED, WIDE = 110, 180

#: The value of `--output` that means stdout.
STDOUT = "-"


@contextmanager
def printing() -> Iterator[None]:
    """Print a result whose exit code is already known; an error of stdout is raised here and not at exit."""
    yield
    sys.stdout.flush()


def print_page(page: Page | str, *, piped: int | None = PIPED) -> None:
    """Print a page, or a text, on stdout. A page has the width of the terminal or COLUMNS; `piped` is its width otherwise."""
    from pyaccount.pages.terminal import terminal

    text = page if isinstance(page, str) else terminal(page, room(sys.stdout) or piped, color=_colors())
    click.echo(text, nl=False, color=_colors())


class PrintableResult(Protocol):
    """A result that is JSON for programs and a page for people."""

    def to_json(self) -> str:
        """Return the result as JSON."""

    def page(self) -> Page:
        """Return the result as a page."""


def print_result(result: PrintableResult, form: str, *, piped: int | None = PIPED) -> None:
    """Print a result as `json` or as text."""
    if form == "json":
        click.echo(result.to_json(), nl=False)
    else:
        print_page(result.page(), piped=piped)


def _colors() -> bool:
    """Return whether stdout shows colours and the user did not turn them off (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def tell_notes(document: Document) -> None:
    """Print on stderr what is valid in a document but may not be what its author meant."""
    from pyaccount.document.notes import notes

    for note in notes(document):
        tell(note)


def tell(text: str, *, indent: int | None = None) -> None:
    """Print a text on stderr that is not a result; lines that are too long are wrapped and indented."""
    from pyaccount.errors import printable  # imported here so that commands start quickly

    # Everything that is not printable, except line breaks, is escaped: file names may be hostile.
    lines = "\n".join(map(printable, text.split("\n")))
    click.echo(fitted(lines, room(sys.stderr), indent=indent), err=True)


@contextmanager
def telling_warnings() -> Iterator[None]:
    """Print warnings in the same way as other messages."""
    import warnings  # few commands warn

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, *_, **__: tell(str(message))
        yield


def progress(*, quiet: bool) -> AbstractContextManager[Report | None]:
    """Return a progress bar on a terminal, and nothing elsewhere."""
    if quiet or not sys.stderr.isatty():
        return nullcontext()
    from pyaccount.execute.progress import progress_bar

    return progress_bar()


def check_writable(option: str, path: Path, inputs: Iterable[str | Path] = ()) -> None:
    """Check before the work begins that the result can be written, and would not overwrite an input."""
    from pyaccount.files import is_no_file, try_folder

    try:
        with suppress(FileNotFoundError, NotADirectoryError):
            # This raises for a name that is too long, or a folder that may not be searched.
            path.lstat()
    except OSError as error:
        raise click.UsageError(f"{option} {path}: cannot be written: {error.strerror or error}") from error
    if path.is_dir():
        raise click.UsageError(f"{option} {path}: is a folder")
    check_apart(option, path, inputs)
    if is_no_file(path):
        if not os.access(path, os.W_OK):
            raise click.UsageError(f"{option} {path}: may not be written to")
        return
    folder = Path(os.path.realpath(path)).parent if path.is_symlink() else path.parent
    if not folder.is_dir():
        raise click.UsageError(f"{option} {path}: the folder {folder} does not exist")
    if not os.access(folder, os.W_OK):
        raise click.UsageError(f"{option} {path}: the folder {folder} may not be written to")
    try:
        try_folder(folder, path)
    except OSError as error:
        raise click.UsageError(f"{option} {path}: cannot be written: {error.strerror or error}") from error


def check_apart(option: str, path: Path, inputs: Iterable[str | Path]) -> None:
    """Reject an output file that is also an input: naming a file twice is a mistake."""
    for file in inputs:
        try:
            same = path.samefile(file)
        except (OSError, ValueError):
            # One of the files does not exist, which other code reports.
            continue
        if same:
            raise click.UsageError(
                f"{option} {path}: is the input {file}, which would be overwritten; give another name"
            )


def check_output(
    output: str | None,
    inputs: Iterable[str],
    form: str | None = None,
    *,
    only: str | None = None,
    writes_yaml: bool = False,
) -> None:
    """Check `--output` before the work begins. If it is `-`, stdout can take only the form that is written there.

    Only a result that is YAML itself may have the name of a document.
    """
    if output is not None and streams.is_closed(output):
        raise click.UsageError(f"--output {output}: standard output is closed")
    if output == STDOUT:
        if form not in (None, only):
            raise click.UsageError(
                f"--output {STDOUT} writes {only} to stdout, where --format {form} would be "
                "printed too; use only one of the two"
            )
    elif output is not None:
        from pyaccount.errors import DomainError  # needed only if a file is written
        from pyaccount.forms import check_name

        check_writable("--output", Path(output), inputs)
        try:
            if not writes_yaml:
                check_name(Path(output))
        except DomainError as error:
            raise click.UsageError(f"--output {error}") from error


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

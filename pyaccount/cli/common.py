"""What the commands share: exit codes, options, where output goes."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pyaccount.cli import streams
from pyaccount.wrapping import fitted, room

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from rich.console import Console

    from pyaccount.certificate.amplification import AmplificationCertificate
    from pyaccount.certificate.model import CertificateModel
    from pyaccount.certificate.report.page import RunPart
    from pyaccount.document import Document
    from pyaccount.execute.progress import Report

HOLDS, FAILS, WRONG, STOPPED, BUG, INTERRUPTED = 0, 1, 2, 3, 70, 130

#: Every exit code, for people.
EXIT_CODES = {
    HOLDS: "The claim holds (certify, compare), passes (check), agrees (verify), is consistent (audit); the command "
    "did what it was asked.",
    FAILS: "The claim does not hold, a limit is not kept, the certificate does not agree with what was recomputed, or an audit "
    "refutes it.",
    WRONG: "The document, the certificate or the command line is wrong, or asks for a package that is not installed; nothing was "
    "computed.",
    STOPPED: "A limit of time or memory stopped it, or a number could not be bounded: nothing was certified. Or a result could "
    "not be written to where it was asked for: the message says where it is.",
    BUG: "A bug of pyaccount: it says nothing about the document or the certificate. Please report the traceback.",
    INTERRUPTED: "Interrupted; nothing was written.",
}

#: The variable in which a shell says what it wants completed.
COMPLETING = "_PYACCOUNT_COMPLETE"
#: The name by which `--output` means stdout.
STDOUT = "-"


@contextmanager
def printing() -> Iterator[None]:
    """Print a result whose exit code is known; what does not reach stdout is an error here, and not one of the exit."""
    yield
    sys.stdout.flush()


def show(
    data: CertificateModel | AmplificationCertificate,
    form: str,
    inconsistencies: Sequence[str] = (),
    run: RunPart | None = None,
) -> None:
    """Print a certificate on stdout; a report shows the inconsistencies found in it, and what was recorded of its run."""
    from pyaccount.certificate.saving import print_text, written  # noqa: PLC0415

    if form == "text":
        print_text(console(), data, inconsistencies)
    else:
        click.echo(written(data, form, inconsistencies, run), nl=False)


def tell_notes(document: Document) -> None:
    """Say on stderr what a valid document says that its author may not have meant."""
    from pyaccount.document.notes import notes  # noqa: PLC0415

    for note in notes(document):
        tell(note)


def tell(text: str, *, indent: int | None = None) -> None:
    """Say something on stderr that is no result; lines that are too long there go on indented."""
    click.echo(fitted(_printable_lines(text), room(sys.stderr), indent=indent), err=True)


@contextmanager
def telling_warnings() -> Iterator[None]:
    """Let warnings be told as everything else is."""
    import warnings  # noqa: PLC0415 - few commands warn

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, *_, **__: tell(str(message))
        yield


def say(text: str) -> None:
    """Print plain text that is a result and ends its last line."""
    click.echo(fitted(_printable_lines(text), room(sys.stdout)), nl=False)


def _printable_lines(text: str) -> str:
    """The text with its lines as they are, and nothing else in it that is not printed: it may name a stranger's file."""
    from pyaccount.errors import printable  # noqa: PLC0415 - the command line is quick to start

    return "\n".join(map(printable, text.split("\n")))


def progress(*, quiet: bool) -> AbstractContextManager[Report | None]:
    """A progress bar on a terminal, nothing elsewhere."""
    if quiet or not sys.stderr.isatty():
        return nullcontext()
    from pyaccount.execute.bar import progress_bar  # noqa: PLC0415

    return progress_bar()


def console(*, wide: bool = False) -> Console:
    """A console for stdout: as wide as the terminal or COLUMNS says, with a fixed width in files and pipes."""
    from rich.console import Console  # noqa: PLC0415

    return Console(width=room(sys.stdout) or (180 if wide else 110))


def check_writable(option: str, path: Path, inputs: Iterable[str | Path] = ()) -> None:
    """Find out before the work, not after it, that the result has nowhere to go, or would take an input's place."""
    from pyaccount.files import is_no_file, try_folder  # noqa: PLC0415

    try:
        with suppress(FileNotFoundError, NotADirectoryError):
            # A name that is too long, or in a folder that may not be looked into.
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
    """Refuse a file to be written that is also read: whoever names one twice means another."""
    for file in inputs:
        try:
            same = path.samefile(file)
        except (OSError, ValueError):
            # One of them is not there, which is for others to say.
            continue
        if same:
            raise click.UsageError(
                f"{option} {path}: is the input {file}, which would be overwritten; give another name"
            )


def check_output(
    output: str | None, inputs: Iterable[str], form: str | None = None, *, only: str | None = None
) -> None:
    """Check `--output` before the work; `-` is stdout, where nothing else but the form that is written there fits."""
    if output is not None and streams.is_closed(output):
        raise click.UsageError(f"--output {output}: standard output is closed")
    if output == STDOUT:
        if form not in (None, only):
            raise click.UsageError(f"--output {STDOUT} writes {only} to stdout, where --format {form} would follow it")
    elif output is not None:
        check_writable("--output", Path(output), inputs)

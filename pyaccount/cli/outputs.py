"""Saves the result of long work in the requested file, or else in another place that a message names.

A disk may become full, and a folder may disappear, between the start of a command and its result. The result then goes
to stdout if nothing else is printed there and somebody reads it, and otherwise to a file in the working folder or the
temporary folder. The exit code is that of a limit of the machine: the result exists, but not where the next step looks
for it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from pyaccount.cli import streams
from pyaccount.cli.common import HOLDS, PIPED, STDOUT, STOPPED, PrintableResult, print_page, printing, tell
from pyaccount.files import write_atomically

if TYPE_CHECKING:
    from pyaccount.pages.page import Page


class RequestedOutput(NamedTuple):
    """Where a result was asked for, and in which form."""

    #: A file, `-` for stdout, or None.
    output: str | None
    #: The value of `--format`.
    form: str | None
    #: The form of the file.
    written: str = "json"
    #: Whether nothing is printed unless `--format` is given.
    quiet: bool = False

    @classmethod
    def printed(cls, form: str, *, quiet: bool = False) -> RequestedOutput:
        """Return the output of a command that prints its result as `json` or as text."""
        return cls(None, None if form == "text" else form, quiet=quiet)

    @classmethod
    def checked(
        cls, output: str | None, form: str | None, forms: Sequence[str], *, quiet: bool = False, otherwise: str = "json"
    ) -> RequestedOutput:
        """Return the requested output. Raises at once if the ending of the file's name is not one of `forms`."""
        if output in (None, STDOUT):
            return cls(output, form, form or otherwise, quiet)
        from pyaccount.errors import DomainError  # needed only if a file is written
        from pyaccount.forms import form_of

        try:
            written, warning = form_of(Path(output), form, "--format", forms=forms, otherwise=otherwise)
        except DomainError as error:
            raise click.UsageError(f"--output {error}") from error
        if warning is not None:
            tell(f"--output {warning}")
        return cls(output, form, written, quiet)


def hand_over(
    what: str,
    text_of: Callable[[str], str | bytes],
    pages_of: Callable[[], Sequence[Page | str]],
    asked: RequestedOutput,
    *,
    piped: int | None = PIPED,
) -> int:
    """Write a result where it was asked for, and print it. Return the exit code, `HOLDS` if both succeeded.

    `text_of` returns the result in a form, among them json. `pages_of` returns the pages, or texts, that are printed as text, in
    files and pipes with the width `piped`.
    """
    output, form = asked.output, asked.form
    trouble, safe = [], False
    if output not in (None, STDOUT):
        try:
            write_atomically(Path(output), text_of(asked.written))
            safe = True
        except OSError as error:
            trouble.append(f"--output {output}: cannot be written: {_reason(error)}")
    as_json = output == STDOUT or (form is None and bool(trouble))
    try:
        with printing():
            if as_json:
                click.echo(text_of("json"), nl=False)
            elif form not in (None, "text"):
                click.echo(text_of(form), nl=False)
            elif form is not None or not asked.quiet:
                for number, page in enumerate(pages_of()):
                    if number > 0:
                        click.echo()
                    print_page(page, piped=piped)
    except OSError as error:
        trouble.append(f"standard output cannot be written to: {_reason(error)}")
        streams.give_up()
    if not trouble:
        return HOLDS
    if safe:
        place = f"is in {output}"
    elif (as_json or form == "json") and streams.heard():
        place = "is on standard output"
    else:
        place = _kept(str(text_of("json")), output, what, ".json")
    tell("\n".join((*trouble, f"the {what} {place}")))
    return STOPPED


def hand_over_result(
    what: str, result: PrintableResult, form: str, *, piped: int | None = PIPED, quiet: bool = False
) -> int:
    """Print a result as `json` or as text, or save it elsewhere if that fails. Return the exit code."""
    asked = RequestedOutput.printed(form, quiet=quiet)
    return hand_over(what, lambda _: result.to_json(), lambda: [result.page()], asked, piped=piped)


def save(what: str, output: str | None, text: str, *, errors: str = "strict") -> int:
    """Print a text, or save it in a file, or else in another place that is told. Return the exit code."""
    if output is None:
        with printing():
            click.echo(text, nl=False)
        return HOLDS
    try:
        write_atomically(Path(output), text.encode(errors=errors))
    except OSError as error:
        put_elsewhere(what, text, output, error)
        return STOPPED
    return HOLDS


def put_elsewhere(what: str, text: str, output: str, error: OSError) -> None:
    """Save a text that cannot be written to `output`, because of `error`, in another place, and report where it is."""
    place = "is on standard output"
    try:
        with printing():
            click.echo(text, nl=False)
    except OSError:
        streams.give_up()
    if not streams.heard():
        place = _kept(text, output, what, Path(output).suffix)
    tell(f"{output}: cannot be written: {_reason(error)}\nthe {what} {place}")


def _kept(text: str, output: str | None, what: str, ending: str) -> str:
    """Write a text to a new file in the working or the temporary folder; return words that say where it is."""
    import tempfile  # slow to import, and needed only here

    stem = Path(output).stem[:64] if output not in (None, STDOUT) else what
    for folder in (Path.cwd, tempfile.gettempdir):
        # Even one of these folders may have disappeared.
        with suppress(OSError):
            handle, name = tempfile.mkstemp(prefix=f"{stem}.", suffix=ending, dir=folder())
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as stream:
                    stream.write(text)
                    stream.flush()
                    os.fsync(handle)
            except OSError:
                Path(name).unlink(missing_ok=True)
                raise
            return f"was written to {name}"
    sys.stderr.write(text)
    return "is printed above: no other place was left"


def _reason(error: OSError) -> str:
    return error.strerror or str(error)

"""The result of long work is saved in a place that lasts: the file that was asked for, or another place, which is named.

A disk may become full and a folder may vanish in the hour between the command and its result. Then the result goes to stdout,
if nothing else is printed there and somebody reads it, and otherwise to a file in the working folder or the temporary folder.
The exit code is that of a limit of the machine: the result exists, but not where the next step looks for it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import click

from pyaccount.cli import streams
from pyaccount.cli.common import STDOUT, printing, tell
from pyaccount.files import write_atomically


class RequestedOutput(NamedTuple):
    """Where a result was asked for, and in which form."""

    #: A file, `-` for stdout, or none.
    output: str | None
    #: What `--format` says.
    form: str | None
    #: The form of the file.
    written: str = "json"
    #: Whether nothing is printed unless `--format` asks for it.
    quiet: bool = False

    @classmethod
    def checked(
        cls,
        output: str | None,
        form: str | None,
        forms: Sequence[str],
        *,
        quiet: bool = False,
        otherwise: str = "json",
    ) -> RequestedOutput:
        """What was asked for; an ending of the file's name that says none of `forms` is found out here, before the work."""
        if output in (None, STDOUT):
            return cls(output, form, form or otherwise, quiet)
        from pyaccount.errors import DomainError  # only where a file is written
        from pyaccount.forms import form_of

        try:
            written, told = form_of(Path(output), form, "--format", forms=forms, otherwise=otherwise)
        except DomainError as error:
            raise click.UsageError(f"--output {error}") from error
        if told is not None:
            tell(f"--output {told}")
        return cls(output, form, written, quiet)


def hand_over(
    what: str, text_of: Callable[[str], str | bytes], show: Callable[[str], None], asked: RequestedOutput
) -> bool:
    """Write a result to where it was asked for, and print it; whether both could be done.

    `text_of` gives the result in a form, `json` among them, and `show` prints it in one.
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
            elif form is not None or not asked.quiet:
                show(form or "text")
    except OSError as error:
        trouble.append(f"standard output cannot be written to: {_reason(error)}")
        streams.give_up()
    if not trouble:
        return True
    if safe:
        place = f"is in {output}"
    elif (as_json or form == "json") and streams.heard():
        place = "is on standard output"
    else:
        place = _kept(str(text_of("json")), output, what, ".json")
    tell("\n".join((*trouble, f"the {what} {place}")))
    return False


def put_elsewhere(what: str, text: str, output: str, error: OSError) -> None:
    """Put a text that cannot be written to `output`, because of `error`, where it can be found, and say where that is."""
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
    """Write a text to a new file in the working or the temporary folder, and give the words that say where it is."""
    import tempfile  # much for those who write nothing

    stem = Path(output).stem[:64] if output not in (None, STDOUT) else what
    for folder in (Path.cwd, tempfile.gettempdir):
        # Of folders too one may have vanished.
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

"""The command that describes the matrix to train with."""

from __future__ import annotations

from pathlib import Path

import click

from pyaccount.cli.common import (
    HOLDS,
    STDOUT,
    STOPPED,
    check_apart,
    check_output,
    files_of,
    print_result,
    progress,
    source_of,
    tell_notes,
)
from pyaccount.cli.completion import document_argument, folders_option, overrides_option
from pyaccount.cli.options import output_option, threads_option
from pyaccount.cli.outputs import RequestedOutput, hand_over
from pyaccount.document.naming import named_files

#: The formats in which a matrix can be printed.
MATRICES = ["text", "json"]


@click.command(short_help="Print the matrix to train with: its coefficients, its error, how to make the noise.")
@document_argument
@overrides_option
@folders_option
@output_option("matrix")
@click.option("--format", "form", type=click.Choice(MATRICES), help="Format of what is printed [text].")
@threads_option()
def matrix(
    document: str,
    overrides: tuple[str, ...],
    folders: tuple[str, ...],
    output: str | None,
    form: str | None,
    threads: int,
) -> int:
    """Describe the strategy matrix C of DOC: its coefficients, buffers or rows, exactly as they are analysed; the error of
    its prefix sums at σ = 1; and how training makes the noise C⁻¹Z. DOC is a file, or - for standard input.

    Nothing is certified. If the document leaves the matrix to a choice or a search, it is chosen or searched for first.

    \b
    Examples:
      pyaccount matrix bandmf.yaml
      pyaccount matrix bandmf.yaml --set matrix.bands=8 -o coefficients.json
      pyaccount matrix bandmf.yaml --format json
    """
    from pyaccount.document.loading import load
    from pyaccount.running import compile_document

    check_output(output, files_of(document), form, only="json")
    loaded = load(source_of(document), overrides=overrides, folders=folders)
    if output not in (None, STDOUT):
        check_apart("--output", Path(output), named_files(loaded))
    asked = RequestedOutput.checked(output, form, MATRICES)
    plan = compile_document(loaded)
    tell_notes(loaded)
    with progress(quiet=False) as report:
        description = plan.matrix(threads=threads, report=report)

    def show(form: str) -> None:
        print_result(description, form)

    return HOLDS if hand_over("matrix", lambda _: description.to_json(), show, asked) else STOPPED

"""Commands that compute no certificate: they validate, show and describe documents, schemas, and the matrix to train with."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from pyaccount.cli.common import (
    HOLDS,
    STDOUT,
    WRONG,
    argument_name,
    check_apart,
    check_output,
    files_of,
    printing,
    progress,
    source_of,
    tell,
    tell_notes,
)
from pyaccount.cli.completion import Offered, document_argument, documents_argument
from pyaccount.cli.options import format_option, output_option, threads_option
from pyaccount.cli.outputs import RequestedOutput, hand_over
from pyaccount.document.naming import named_files

if TYPE_CHECKING:
    from pyaccount.document.amplification import Amplification
    from pyaccount.document.data_set import DataSet
    from pyaccount.document.document import Document
    from pyaccount.document.policy import Policy
    from pyaccount.document.sweeps import SweepGrid
    from pyaccount.errors import DocumentError
    from pyaccount.messages import ValidatedRecord

    Loaded = Document | Amplification | Policy | DataSet | SweepGrid


@click.command(short_help="Report every error in documents and policies, with line and column.")
@documents_argument
@format_option("what is printed")
def validate(documents: tuple[str, ...], form: str, **given: tuple[str, ...]) -> int:
    """Report every error of each DOC, with file, line and column. Policies, data sets and sweeps are checked too. Nothing
    is computed. A DOC is a file, or - for standard input (once).

    \b
    Examples:
      pyaccount validate training.yaml
      pyaccount validate training.yaml policy.yaml
      pyaccount validate training.yaml --format json
    """
    from pyaccount.errors import DocumentError

    files_of(*documents)
    found, status = [], HOLDS
    for document in documents:
        loaded, wrong = None, None
        try:
            loaded = _checked(document, given)
        except DocumentError as error:
            wrong, status = error, WRONG
        if form == "json":
            found.append(_record(argument_name(document), loaded, wrong))
        elif wrong is not None:
            tell(str(wrong))
        else:
            for note in _notes(loaded):
                tell(note)
            click.echo(f"{argument_name(document)}: valid")
    if form == "json":
        from pyaccount.messages import Validation

        with printing():
            validation = Validation(pyaccount=1, kind="validation", valid=status == HOLDS, documents=found)
            click.echo(validation.to_json(), nl=False)
    return status


def _checked(document: str, given: dict[str, tuple[str, ...]]) -> Loaded:
    """Return a document that can be planned, or a sweep of which some cells can. Raises `DocumentError`."""
    from pyaccount.document.amplification import Amplification
    from pyaccount.document.document import Document
    from pyaccount.document.loading import load_written
    from pyaccount.document.sweeps import PROBES, is_sweep, load_grid
    from pyaccount.plan.amplification import compile_amplification
    from pyaccount.plan.compiling import compile_document

    source = source_of(document)
    if is_sweep(source):
        grid = load_grid(source, **given)
        for cell in islice(grid.probes(), PROBES):
            compile_document(cell.document())
        return grid
    loaded = load_written(source, **given)
    if isinstance(loaded, Document):
        compile_document(loaded)
    elif isinstance(loaded, Amplification):
        compile_amplification(loaded)
    return loaded


def _notes(loaded: Loaded | None) -> list[str]:
    from pyaccount.document.document import Document
    from pyaccount.document.notes import notes

    return list(notes(loaded)) if isinstance(loaded, Document) else []


#: The kinds of documents, by their types, which are loaded only if they are needed.
_KINDS: dict[str, Literal["mechanism", "amplification", "policy", "sweep", "data-set"]] = {
    "Document": "mechanism",
    "Amplification": "amplification",
    "Policy": "policy",
    "DataSet": "data-set",
    "SweepGrid": "sweep",
}


def _record(file: str, loaded: Loaded | None, error: DocumentError | None) -> ValidatedRecord:
    """Return the result of validating a document, as data."""
    from pyaccount.document.sweeps import SweepGrid
    from pyaccount.messages import ValidatedRecord, errors_of

    return ValidatedRecord(
        file=file,
        valid=error is None,
        kind=None if loaded is None else _KINDS[type(loaded).__name__],
        name=None if loaded is None else loaded.name,
        document_sha256=None if loaded is None or isinstance(loaded, SweepGrid) else loaded.sha256,
        notes=_notes(loaded),
        errors=[] if error is None else errors_of(error),
    )


def _schemas() -> dict[str, None]:
    from pyaccount.schemas import SCHEMAS

    return dict.fromkeys(SCHEMAS)


@click.command(short_help="Print the JSON Schema of documents, or of another format.")
@click.argument("which", metavar="[NAME]", default="mechanism", type=Offered("name", _schemas))
def schema(which: str) -> int:
    """Print the JSON Schema of mechanism documents, or of the format NAME.

    \b
    Examples:
      pyaccount schema > mechanism.schema.json
      pyaccount schema certificate
    """
    import json

    from pyaccount.schemas import SCHEMAS

    if which not in SCHEMAS:
        raise click.UsageError(f"there is no schema {which}; the schemas are {', '.join(SCHEMAS)}")
    click.echo(json.dumps(SCHEMAS[which](), indent=2, ensure_ascii=False))
    return HOLDS


#: The formats in which a matrix can be printed.
MATRICES = ["text", "json"]


@click.command(short_help="Print the matrix to train with: its coefficients, its error, how to make the noise.")
@document_argument
@output_option("matrix")
@click.option("--format", "form", type=click.Choice(MATRICES), help="Format of what is printed [text].")
@threads_option()
def matrix(document: str, output: str | None, form: str | None, threads: int, **given: tuple[str, ...]) -> int:
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
    loaded = load(source_of(document), **given)
    if output not in (None, STDOUT):
        check_apart("--output", Path(output), named_files(loaded))
    asked = RequestedOutput.checked(output, form, MATRICES)
    plan = compile_document(loaded)
    tell_notes(loaded)
    with progress(quiet=False) as report:
        description = plan.matrix(threads=threads, report=report)

    return hand_over("matrix", lambda _: description.to_json(), lambda: [description.page()], asked)

"""Commands about documents in which nothing is computed."""

from __future__ import annotations

import click

from pyaccount.cli.common import HOLDS, WRONG, tell_notes
from pyaccount.cli.completion import SchemaName, documents_argument, overrides_option
from pyaccount.cli.stdin import called, files_of, source_of


@click.command(short_help="Every error of documents and policies, with line and column.")
@documents_argument
@overrides_option
def validate(documents: tuple[str, ...], overrides: tuple[str, ...]) -> int:
    """Report every error of each DOC, with file, line and column; policies too. Nothing is computed. DOC is a file, or once -
    for standard input.

    \b
    Examples:
      pyaccount validate training.yaml
      pyaccount validate training.yaml policy.yaml
    """
    from pyaccount.document import Amplification, Document, load_written  # noqa: PLC0415
    from pyaccount.errors import DocumentError  # noqa: PLC0415
    from pyaccount.plan import compile_document  # noqa: PLC0415
    from pyaccount.plan.amplification import compile_amplification  # noqa: PLC0415

    files_of(*documents)
    status = HOLDS
    for document in documents:
        try:
            loaded = load_written(source_of(document), overrides=overrides)
            if isinstance(loaded, Document):
                compile_document(loaded)
                tell_notes(loaded)
            elif isinstance(loaded, Amplification):
                compile_amplification(loaded)
        except DocumentError as error:
            click.echo(str(error), err=True)
            status = WRONG
        else:
            click.echo(f"{called(document)}: valid")
    return status


@click.command(short_help="Print the JSON Schema of documents, or of what else has one.")
@click.argument("which", metavar="[NAME]", default="mechanism", type=SchemaName())
def schema(which: str) -> int:
    """Print the JSON Schema of mechanism documents, or of what else has one.

    \b
    Examples:
      pyaccount schema > mechanism.schema.json
      pyaccount schema certificate
    """
    import json  # noqa: PLC0415

    from pyaccount.schemas import SCHEMAS  # noqa: PLC0415

    if which not in SCHEMAS:
        raise click.UsageError(f"no schema {which}: there are {', '.join(SCHEMAS)}")
    click.echo(json.dumps(SCHEMAS[which](), indent=2, ensure_ascii=False))
    return HOLDS

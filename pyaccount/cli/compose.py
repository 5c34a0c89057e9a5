"""The command that composes certificates of runs on the same data."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from pyaccount.cli.certify import answer_of, certified
from pyaccount.cli.common import HOLDS, check_output, files_of, source_of, tell
from pyaccount.cli.completion import FILE, folders_option, limit_words
from pyaccount.cli.options import (
    full_option,
    options,
    output_format_option,
    output_option,
    running_options,
    threads_option,
)
from pyaccount.cli.streams import in_options
from pyaccount.errors import DocumentError
from pyaccount.forms import FORMS

if TYPE_CHECKING:
    from pyaccount.reading.sources import Handed
    from pyaccount.store import Strictness


@click.command(short_help="Compose the certificates of several runs on the same data into one.")
@click.argument("certificates", metavar="CERT...", nargs=-1, type=FILE)
@options("""
    --part NAME=CERT* as parts | The certificate of a run on one part of the data; parts with different names are disjoint.
        Repeat for each part, and with the same name for several runs on one part.
""")
@folders_option
@options(
    """
    --name NAME | The name of the joint document [made from the names of its documents].
    --epsilon E | The ε of the joint guarantee. Alone: δ is computed. With --delta: this claim is checked [computed].
    --delta D | The δ of the joint guarantee [that of the certificates, if all have the same].
    --adjacency A | The adjacency of the joint guarantee [that of the certificates; replace-one if one of them has it].
    --repeat | Count a certificate once for each time it is listed.
    --points profile|guarantee | The points of certificates from samples that are used: those of the profile too, which fail with
        a probability that is stated, or the guarantee alone, which gives a larger ε [profile].
    --document-only | Print the joint document as YAML, and compute nothing.
    """,
    adjacency=limit_words("adjacency"),
)
@output_option("certificate")
@output_format_option(FORMS)
@threads_option(more=" It does not change the result.")
@click.option("--time-limit", metavar="TIME", help="Maximum time of the computation, e.g. `10 min` [none].")
@running_options
@options("""
    --brief | Print only the statement, ε and δ, one per line, for programs. FILE still gets the whole certificate.
""")
@full_option
@options("""
    --quiet | Do not show progress and the rules that were used. The certificate is printed only if --format or --brief is given.
""")
def compose(
    certificates: tuple[str, ...],
    parts: tuple[str, ...],
    document_only: bool,
    output: str | None,
    form: str | None,
    threads: int,
    time_limit: str | None,
    store: str | None,
    store_errors: Strictness,
    cluster: str | None,
    brief: bool,
    full: bool,
    quiet: bool,
    **stated: Any,
) -> int:
    """Compute the joint guarantee of the runs that each CERT certifies, all on the same data, as a certificate. A CERT is a
    certificate in JSON, a document whose only blank may be ε or δ, or - for standard input (once).

    It holds if all of the documents were fixed before the first release. Certificates without samples are composed exactly;
    those from samples by the proven points of their profiles.

    \b
    Examples:
      pyaccount compose count.cert.json training.cert.json --delta 1e-6
      pyaccount compose count.cert.json training.cert.json --epsilon 9 --delta 1e-5 -o joint.cert.json
      pyaccount compose count.cert.json --part north=north.cert.json --part south=south.cert.json
      pyaccount compose count.cert.json count.cert.json --repeat --brief

    \b
    Exit codes: 0 the guarantee is computed, or the claim holds; 1 the claim does
    not hold; 2 a certificate is wrong, or no bound is implemented for these
    together; 3 a limit was reached.
    """
    from pyaccount.arguments import seconds_of
    from pyaccount.certificate.reading import LARGEST_FILE
    from pyaccount.composing import joint

    since, named = time.monotonic(), [_part(part) for part in parts]
    answer = answer_of(output, form, brief=brief, full=full)
    if not certificates and not named:
        raise click.UsageError("Missing argument 'CERT...'.")
    inputs = files_of(*certificates, *(file for _, file in named))
    check_output(output, inputs, form, only="json")
    grouped: dict[str, list[str | Handed]] = {}
    for part, file in named:
        grouped.setdefault(part, []).append(source_of(file, largest=LARGEST_FILE))
    try:
        made = joint([source_of(file, largest=LARGEST_FILE) for file in certificates], parts=grouped, **stated)
    except DocumentError as error:
        # Functions name their arguments in messages; users of the command know its options.
        options = click.get_current_context().command.params
        raise DocumentError(
            [replace(problem, message=in_options(problem.message, options)) for problem in error.problems]
        ) from error
    if not quiet:
        for rule in made.rules:
            tell(rule)
    if document_only:
        from pyaccount.certificate.report.parts import yaml_text

        click.echo(yaml_text(made.document.to_mapping()), nl=False)
        return HOLDS
    how: dict[str, Any] = {"threads": threads, "store": store, "store_errors": store_errors, "cluster": cluster}
    seconds = seconds_of(time_limit, "--time-limit")
    return certified(made.document, output, form, answer, quiet=quiet, since=since, time_limit=seconds, **how)


def _part(text: str) -> tuple[str, str]:
    """Return the name of a part and its file."""
    name, equals, file = text.partition("=")
    if not equals or not name.strip() or not file:
        raise click.UsageError(f"--part {text}: is NAME=CERT, the name of the part and its certificate")
    return name.strip(), file

"""Commands that compute: certify, plan and compare."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pyaccount.cli.common import (
    FAILS,
    FORMS,
    HOLDS,
    STDOUT,
    WRONG,
    check_apart,
    check_output,
    check_writable,
    console,
    matrix_files,
    printing,
    progress,
    show,
    tell,
    tell_notes,
)
from pyaccount.cli.completion import FileName, document_argument, documents_argument, overrides_option
from pyaccount.cli.failures import tell_errors
from pyaccount.cli.stdin import files_of, source_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyaccount.certificate import Certificate
    from pyaccount.certificate.amplification import AmplificationCertificate
    from pyaccount.document import Amplification
    from pyaccount.errors import DocumentError
    from pyaccount.plan import Plan

Decorated = TypeVar("Decorated", bound="Callable[..., Any]")


def output_option(what: str) -> Callable[[Decorated], Decorated]:
    """The option that writes the result to a file."""
    text = f"Write the {what} as JSON to FILE, whole or not at all, or to stdout if FILE is -."
    return click.option("-o", "--output", metavar="FILE", type=FileName(), help=text)


@click.command(short_help="Fill a document's blank or check its claim: the certificate.")
@document_argument
@overrides_option
@output_option("certificate")
@click.option("--format", "form", type=click.Choice(FORMS), help="What to print on stdout [default: text].")
@click.option(
    "--threads",
    type=click.IntRange(0, 1024),
    default=0,
    help="Worker threads; 0: one for each core. Never changes the answer.",
)
@click.option("--seed", type=click.IntRange(0, 2**64 - 1), help="Fix the seed of sampled methods, as accounting.seed.")
@click.option("--quiet", is_flag=True, help="No progress; print the certificate only if --format is given.")
@click.option(
    "--plot",
    metavar="FILE",
    type=FileName(),
    help="Draw the aligned privacy profile of an amplification (svg, png, pdf).",
)
def certify(
    document: str,
    overrides: tuple[str, ...],
    output: str | None,
    form: str | None,
    threads: int,
    seed: int | None,
    quiet: bool,
    plot: str | None,
) -> int:
    """Certify DOC: fill its blank, check its claim, or tell what one draw does (kind: amplification). DOC is a file, or - for
    standard input.

    \b
    Examples:
      pyaccount certify training.yaml
      pyaccount certify training.yaml --set privacy.epsilon=4 -o training.cert.json
      pyaccount certify - < training.yaml
    """
    from pyaccount.document import Document, load_any  # noqa: PLC0415
    from pyaccount.plan import compile_document  # noqa: PLC0415

    files = files_of(document)
    check_output(output, files, form, only="json")
    if plot is not None:
        from pyaccount.certificate.picture import ENDINGS  # noqa: PLC0415

        if Path(plot).suffix not in ENDINGS:
            raise click.UsageError(f"--plot {plot}: the file's name must end in {', '.join(ENDINGS)}")
        check_writable("--plot", Path(plot), files)
        if output is not None and os.path.realpath(output) == os.path.realpath(plot):
            raise click.UsageError(f"--plot {plot}: is the file of --output; give another name")
    changes = (*overrides, *([f"accounting.seed={seed}"] if seed is not None else []))
    loaded = load_any(source_of(document), overrides=changes)
    if not isinstance(loaded, Document):
        return _amplify(loaded, output=output, form=form, plot=plot, quiet=quiet)
    if plot is not None:
        raise click.UsageError("--plot is for documents of kind amplification")
    if output not in (None, STDOUT):
        check_apart("--output", Path(output), matrix_files(loaded))
    plan = compile_document(loaded)
    if not quiet:
        tell_notes(loaded)
    with progress(quiet=quiet) as report:
        certificate = plan.run(threads=threads, report=report)
    _hand_over(certificate, output, form, quiet=quiet)
    return HOLDS if certificate.holds else FAILS


def _amplify(document: Amplification, *, output: str | None, form: str | None, plot: str | None, quiet: bool) -> int:
    from pyaccount.certificate.amplification import amplify  # noqa: PLC0415

    certificate = amplify(document)
    if plot is not None:
        from pyaccount.certificate.picture import aligned_profile  # noqa: PLC0415

        aligned_profile(certificate, Path(plot))
    _hand_over(certificate, output, form, quiet=quiet)
    return HOLDS


def _hand_over(
    certificate: Certificate | AmplificationCertificate, output: str | None, form: str | None, *, quiet: bool
) -> None:
    """Write a certificate to where it was asked for, and print it."""
    if output is not None and output != STDOUT:
        certificate.save(output)
    with printing():
        if output == STDOUT:
            show(certificate, "json")
        elif form is not None or not quiet:
            show(certificate, form or "text")


@click.command(short_help="Which theorem applies to each part of a document, and the cost.")
@document_argument
@overrides_option
@click.option("--estimate", is_flag=True, help="Ask the pilot for estimates of δ, σ and cost, by sampling a little.")
@click.option(
    "--threads", type=click.IntRange(0, 1024), default=0, help="Worker threads of the pilot; 0: one for each core."
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="What to print [text].")
def plan(document: str, overrides: tuple[str, ...], estimate: bool, threads: int, form: str) -> int:
    """Show how DOC would be analysed: each theorem, the engine, the cost.

    Matrices and sensitivities are computed; ε, δ and σ are not, and are estimated only if --estimate asks. DOC is a file, or -
    for standard input.

    \b
    Examples:
      pyaccount plan training.yaml
      pyaccount plan bandmf.yaml --estimate --set privacy.delta=1e-3
      pyaccount plan training.yaml --format json
    """
    from pyaccount.certificate.plan_text import print_plan  # noqa: PLC0415
    from pyaccount.document import Document, load_any  # noqa: PLC0415
    from pyaccount.plan import compile_document  # noqa: PLC0415

    loaded = load_any(source_of(document), overrides=overrides)
    if not isinstance(loaded, Document):
        from pyaccount.certificate.amplification import print_amplification_plan  # noqa: PLC0415
        from pyaccount.plan.amplification import compile_amplification  # noqa: PLC0415

        amplification = compile_amplification(loaded)
        if form == "json":
            from pyaccount.certificate.plan_record import amplification_plan_record  # noqa: PLC0415

            click.echo(amplification_plan_record(amplification).to_json(), nl=False)
        else:
            print_amplification_plan(console(), amplification)
        return HOLDS
    compiled = compile_document(loaded)
    found = None
    if estimate:
        from pyaccount.execute.forecast import price  # noqa: PLC0415

        with progress(quiet=False) as report:
            found = price(compiled, threads=threads, report=report)
    if form == "json":
        from pyaccount.certificate.plan_record import plan_record  # noqa: PLC0415

        click.echo(plan_record(compiled, found).to_json(), nl=False)
    else:
        print_plan(console(), compiled, found)
    tell_notes(loaded)
    return HOLDS


@click.command(short_help="Certify several documents and lay the results side by side.")
@documents_argument
@overrides_option
@output_option("comparison")
@click.option("--format", "form", type=click.Choice(["text", "markdown", "json"]), help="What to print [text].")
@click.option("--threads", type=click.IntRange(0, 1024), default=0, help="Worker threads; 0: one for each core.")
def compare(
    documents: tuple[str, ...], overrides: tuple[str, ...], output: str | None, form: str | None, threads: int
) -> int:
    """Certify each DOC, a file or once - for standard input, and lay the certificates side by side.

    \b
    Examples:
      pyaccount compare poisson.yaml fixed-size.yaml --set privacy.delta=1e-6
      pyaccount compare poisson.yaml fixed-size.yaml --format markdown >> PULL_REQUEST.md
    """
    from pyaccount.certificate.comparison import compare as compute  # noqa: PLC0415
    from pyaccount.certificate.comparison import print_comparison  # noqa: PLC0415
    from pyaccount.document import load  # noqa: PLC0415
    from pyaccount.errors import DocumentError  # noqa: PLC0415
    from pyaccount.files import write_atomically  # noqa: PLC0415
    from pyaccount.plan import compile_document  # noqa: PLC0415

    check_output(output, files_of(*documents), form, only="json")
    plans: list[Plan] = []
    wrong: list[DocumentError] = []
    for document in documents:
        try:
            loaded = load(source_of(document), overrides=overrides)
            if output not in (None, STDOUT):
                check_apart("--output", Path(output), matrix_files(loaded))
            plans.append(compile_document(loaded))
            tell_notes(loaded)
        except DocumentError as error:
            tell(str(error))
            wrong.append(error)
    if wrong:
        if form == "json":
            tell_errors("compare", WRONG, *wrong)
        return WRONG
    with progress(quiet=False) as report:
        comparison = compute(plans, threads=threads, report=report)
    if output not in (None, STDOUT):
        write_atomically(Path(output), comparison.to_json())
    with printing():
        if form == "json" or output == STDOUT:
            click.echo(comparison.to_json(), nl=False)
        elif form == "markdown":
            click.echo(comparison.to_markdown(), nl=False)
        else:
            print_comparison(console(wide=True), comparison)
    return HOLDS if all(row.holds for row in comparison.rows) else FAILS

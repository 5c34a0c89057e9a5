"""Commands that compute: certify, plan and compare."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from pyaccount.cli.common import (
    FAILS,
    HOLDS,
    STDOUT,
    WIDE,
    WRONG,
    argument_name,
    check_apart,
    check_output,
    check_writable,
    code_of,
    files_of,
    progress,
    source_of,
    tell,
    tell_notes,
    telling_warnings,
)
from pyaccount.cli.completion import document_argument, documents_argument
from pyaccount.cli.options import (
    executor_at,
    format_option,
    full_option,
    options,
    output_format_option,
    output_option,
    running_options,
    threads_option,
)
from pyaccount.cli.outputs import RequestedOutput, hand_over
from pyaccount.cli.streams import tell_errors
from pyaccount.document.naming import named_files
from pyaccount.forms import FORMS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyaccount.certificate.amplification import AmplificationCertificate
    from pyaccount.document.amplification import Amplification
    from pyaccount.document.document import Document
    from pyaccount.errors import CertificateError, DocumentError
    from pyaccount.pages.page import Page
    from pyaccount.records.certificate import CertificateModel
    from pyaccount.running import Plan

#: How much of a certificate is printed: a few lines for programs, what fits a screen, or everything.
Printed = Literal["brief", "screen", "full"]


@click.command(short_help="Compute the blank of a document or check its claim, and write a certificate.")
@document_argument
@output_option("certificate")
@output_format_option(FORMS)
@threads_option(more=" It does not change the result.")
@click.option(
    "--seed", type=click.IntRange(0, 2**64 - 1), help="The seed of sampled methods; replaces accounting.seed."
)
@running_options
@options("""
    --brief | Print only the statement, the solved value, σ, ε and δ, one per line, for programs. FILE still gets the whole
        certificate.
""")
@full_option
@options("""
    --quiet | Do not show progress and notes. The certificate is printed only if --format or --brief is given.
    --plot FILE | Draw the aligned privacy profile, for documents of kind amplification (svg, png or pdf).
""")
def certify(
    document: str,
    overrides: tuple[str, ...],
    folders: tuple[str, ...],
    output: str | None,
    form: str | None,
    seed: int | None,
    brief: bool,
    full: bool,
    quiet: bool,
    plot: str | None,
    **how: Any,
) -> int:
    """Certify DOC: compute its blank, check its claim, or compute the effect of one draw (kind: amplification). DOC is a
    file, or - for standard input.

    \b
    Examples:
      pyaccount certify training.yaml
      pyaccount certify training.yaml --set privacy.epsilon=4 -o training.cert.json
      pyaccount certify training.yaml --brief
      pyaccount certify - < training.yaml
      pyaccount certify bandmf.yaml --store runs.db
    """
    from pyaccount.document.document import Document
    from pyaccount.document.loading import load_any

    since, files, answer = time.monotonic(), files_of(document), answer_of(output, form, brief=brief, full=full)
    check_output(output, files, form, only="json")
    check_plot(plot, output, files)
    if seed is not None:
        from pyaccount.reading.overrides import FromOption  # most commands give no seed

        overrides = (*overrides, FromOption.named(f"accounting.seed={seed}", f"--seed {seed}"))
    loaded = load_any(source_of(document), overrides=overrides, folders=folders)
    if not isinstance(loaded, Document):
        if how["cluster"] is not None:
            raise click.UsageError(
                "--cluster: an amplification is computed at once on this machine; leave the option out"
            )
        return _amplify(loaded, requested(output, form, answer, quiet=quiet), plot, answer)
    if plot is not None:
        raise click.UsageError(
            "--plot is only for documents of kind amplification. For pictures of this certificate use `pyaccount "
            "report CERT -o page.html`; to compare it with others use `pyaccount compare --plot`; for a sweep "
            "use `pyaccount sweep --plot`"
        )
    return certified(loaded, output, form, answer, quiet=quiet, since=since, **how)


def certified(
    document: Document,
    output: str | None,
    form: str | None,
    answer: Printed,
    *,
    quiet: bool,
    since: float,
    cluster: str | None,
    time_limit: float | None = None,
    **how: Any,
) -> int:
    """Certify a document, write the certificate where it was asked for, and print the answer. Return the exit code.

    `since` is when the command began, and `how` are further arguments of `Plan.run`.
    """
    from pyaccount.running import compile_document, compile_within

    if output not in (None, STDOUT):
        check_apart("--output", Path(output), [*named_files(document), *filter(None, [how["store"]])])
    asked = requested(output, form, answer, quiet=quiet)
    plan, since = compile_within(document, compile_document, time_limit=time_limit, since=since)
    if not quiet and not document.composed_from:
        tell_notes(document)
    limit: dict[str, Any] = {"time_limit": time_limit, "limited_by": "--time-limit", "since": since}
    with progress(quiet=quiet) as report, telling_warnings(), executor_at(cluster) as executor:
        certificate = plan.run(report=report, executor=executor, **limit, **how)
    return _hand_over_certificate(certificate.data, asked, answer) or (HOLDS if certificate.holds else FAILS)


def requested(output: str | None, form: str | None, answer: Printed, *, quiet: bool) -> RequestedOutput:
    """Return where a certificate was asked for. The short answer is printed even if the command is quiet."""
    return RequestedOutput.checked(output, form, FORMS, quiet=quiet and answer != "brief")


def answer_of(output: str | None, form: str | None, *, brief: bool, full: bool) -> Printed:
    """Return how much of a certificate is printed. Reject `--brief` if something else is to be printed on stdout."""
    if brief and full:
        raise click.UsageError("--brief and --full: give one of them; without either the answer fits a screen")
    if brief and output == STDOUT:
        raise click.UsageError(
            "--brief: --output - writes the certificate to stdout, where the short answer goes too; give --output "
            "the name of a file"
        )
    if brief and form not in (None, "text"):
        raise click.UsageError(
            f"--brief: the short answer is text, not {form}; leave one of the two options out, or name a file with -o"
        )
    return "brief" if brief else "full" if full else "screen"


def check_plot(plot: str | None, output: str | None, files: Sequence[str]) -> None:
    """Reject a picture that cannot be written, before the work begins."""
    if plot is None:
        return
    from pyaccount.pages.figure import ENDINGS

    if Path(plot).suffix not in ENDINGS:
        raise click.UsageError(f"--plot {plot}: the file's name must end in {', '.join(ENDINGS)}")
    check_writable("--plot", Path(plot), files)
    if output is not None and os.path.realpath(output) == os.path.realpath(plot):
        raise click.UsageError(f"--plot {plot}: is also the file of --output; give another name")


def check_drawing(plot: str | None) -> None:
    """Raise `MissingExtraError` before the work begins if a picture is asked for and matplotlib is not installed."""
    if plot is not None:
        from pyaccount.pages import figure

        figure.check_drawing()


def _amplify(document: Amplification, asked: RequestedOutput, plot: str | None, answer: Printed) -> int:
    from pyaccount.certificate.amplification import amplify

    check_drawing(plot)
    certificate = amplify(document)
    code = _hand_over_certificate(certificate, asked, answer)
    if plot is not None:
        from pyaccount.certificate.report.amplified import aligned_profile
        from pyaccount.pages.figure import figure, save

        save(figure(aligned_profile(certificate)), Path(plot))
    return code


def _hand_over_certificate(
    data: CertificateModel | AmplificationCertificate, asked: RequestedOutput, answer: Printed
) -> int:
    """Write a certificate where it was asked for, and print the answer. Return the exit code, `HOLDS` if all succeeded.

    `--format text` asks for the whole certificate, as `--full` does.
    """
    from pyaccount.certificate.saving import certificate_text

    def pages() -> list[Page | str]:
        from pyaccount.certificate.report import brief_text, page_of

        if answer == "brief":
            return [brief_text(data)]
        if answer == "screen" and asked.form is None:
            from pyaccount.cli.screen import screen_page

            return [screen_page(data, asked.output)]
        return [page_of(data)]

    # The certificate was made here, so it contains no contradictions.
    return hand_over("certificate", lambda form: certificate_text(data, form, ()), pages, asked)


@click.command(short_help="Show which theorem applies to each part of a document, and the cost.")
@document_argument
@options("""
    --estimate | Draw a few samples to estimate δ, the value of the blank, and how many samples the tests will take.
""")
@threads_option(" for --estimate")
@format_option("the plan")
def plan(document: str, estimate: bool, threads: int, form: str, **given: tuple[str, ...]) -> int:
    """Show how DOC would be analysed: the theorems, the engine and the cost.

    Matrices and sensitivities are computed. ε, δ and σ are not computed; they are estimated if you give --estimate. DOC is a
    file, or - for standard input.

    \b
    Examples:
      pyaccount plan training.yaml
      pyaccount plan bandmf.yaml --estimate --set privacy.delta=1e-3
      pyaccount plan training.yaml --format json
    """
    from pyaccount.document.document import Document
    from pyaccount.document.loading import load_any
    from pyaccount.plan.amplification import AmplificationPlan, compile_amplification
    from pyaccount.running import compile_document

    loaded = load_any(source_of(document), **given)
    compiled = compile_document(loaded) if isinstance(loaded, Document) else compile_amplification(loaded)
    estimates = None
    if estimate and not isinstance(compiled, AmplificationPlan):
        from pyaccount.execute import RunOptions
        from pyaccount.execute import estimate as estimate_of
        from pyaccount.execute.progress import silent

        with progress(quiet=False) as report:
            estimates = estimate_of(compiled, RunOptions(threads=threads, report=report or silent))

    def as_json(_: str) -> str:
        from pyaccount.certificate.plan_record import amplification_plan_record, plan_record

        if isinstance(compiled, AmplificationPlan):
            return amplification_plan_record(compiled).to_json()
        return plan_record(compiled, estimates).to_json()

    def pages() -> list[Page]:
        from pyaccount.certificate.report.planned import amplification_plan_page, plan_page

        if isinstance(compiled, AmplificationPlan):
            return [amplification_plan_page(compiled)]
        return [plan_page(compiled, estimates)]

    code = hand_over("plan", as_json, pages, RequestedOutput.printed(form))
    if isinstance(loaded, Document):
        tell_notes(loaded)
    return code


@click.command(short_help="Certify several documents and show the results side by side.")
@documents_argument
@output_option("comparison")
@output_format_option(FORMS)
@threads_option()
@options("""
    --plot FILE | Draw the error against ε, with the certified σ (svg, png or pdf). There is a line for each sampler and matrix;
        if all documents have the same ε, bars show σ and the error.
    --quiet | Do not show progress. The comparison is printed only if --format is given.
""")
def compare(
    documents: tuple[str, ...],
    overrides: tuple[str, ...],
    folders: tuple[str, ...],
    output: str | None,
    form: str | None,
    threads: int,
    plot: str | None,
    quiet: bool,
) -> int:
    """Certify each DOC, and show the certificates side by side. A DOC is a file, or - for standard input (once). It may be a
    finished certificate (JSON), which is not recomputed.

    \b
    Examples:
      pyaccount compare poisson.yaml fixed-size.yaml --set privacy.delta=1e-6
      pyaccount compare poisson.yaml fixed-size.yaml --format markdown >> PULL_REQUEST.md
      pyaccount compare training.cert.json poisson.yaml
      pyaccount compare poisson.yaml fixed-size.yaml -o comparison.html
      pyaccount compare poisson.yaml fixed-size.yaml --plot errors.svg

    If a document fails while it is certified, or runs out of time, its row states this. The other documents are certified
    nevertheless.

    \b
    Exit codes: 0 all claims hold. Otherwise the first of these that applies:
    2 a document is wrong, 3 a document was stopped by a limit, 1 a claim does
    not hold or a certificate contradicts itself.
    """
    from pyaccount.certificate import Certificate
    from pyaccount.certificate.comparison import comparison_text
    from pyaccount.certificate.reading import LARGEST_FILE
    from pyaccount.errors import CertificateError, DocumentError
    from pyaccount.running.plan import comparable
    from pyaccount.running.plan import compare as compute

    check_output(output, files_of(*documents), form, only="json")
    check_plot(plot, output, files_of(*documents))
    check_drawing(plot)
    plans: list[Plan | Certificate] = []
    wrong: list[CertificateError | DocumentError] = []
    for document in documents:
        try:
            plan = comparable(source_of(document, largest=LARGEST_FILE), overrides, folders)
            plans.append(plan)
            if isinstance(plan, Certificate):
                if overrides:
                    tell(
                        f"{argument_name(document)}: a finished certificate is compared as it is; --set changes only documents"
                    )
                continue
            if output not in (None, STDOUT):
                check_apart("--output", Path(output), named_files(plan.document))
            if not quiet:
                tell_notes(plan.document)
        except (CertificateError, DocumentError) as error:
            tell(str(error))
            wrong.append(error)
    if wrong:
        if form == "json":
            tell_errors("compare", WRONG, *wrong)
        return WRONG
    asked = RequestedOutput.checked(output, form, FORMS, quiet=quiet)
    with progress(quiet=quiet) as report:
        comparison = compute(plans, threads=threads, report=report)

    def text_of(form: str) -> str:
        return comparison_text(comparison, form)

    if code := hand_over("comparison", text_of, lambda: [comparison.page()], asked, piped=WIDE):
        return code
    if plot is not None:
        from pyaccount.pages.figure import save

        save(comparison.plot(), Path(plot))
    for failed in comparison.failures if quiet and form is None else ():
        tell(f"{failed.name}: {failed.message}")
    whys = {failed.why for failed in comparison.failures}
    return code_of(whys, holds=not whys and all(row.holds for row in comparison.rows))

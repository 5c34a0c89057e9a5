"""Commands that read finished certificates: report, check and verify."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from pyaccount.cli.attest import attested_options
from pyaccount.cli.common import (
    FAILS,
    HOLDS,
    WRONG,
    check_output,
    files_of,
    print_page,
    printing,
    progress,
    source_of,
    tell,
)
from pyaccount.cli.completion import FILE, Seed, certificate_argument, folders_option, limit_words
from pyaccount.cli.options import file_option, format_option, options, stdout_or_file_option, threads_option
from pyaccount.cli.outputs import RequestedOutput, hand_over, hand_over_result, save
from pyaccount.forms import FORMS

if TYPE_CHECKING:
    from pyaccount.document.document import Document
    from pyaccount.pages.page import Page
    from pyaccount.training.reporting import RecordVerdict


@click.command(short_help="Show a certificate as an HTML page, as Markdown or as text.")
@certificate_argument
@stdout_or_file_option("report")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMS),
    help="Format of the report [from the ending of FILE; html if there is no FILE].",
)
@options("""
    --record FILE | The record of a training run. The report then shows how far the run got, and for each assumption whether the
        run enforced it, checked it, or left it to you.
""")
def report(certificate: str, output: str | None, form: str | None, record: str | None) -> int:
    """Show CERT, a certificate in JSON, as one self-contained HTML page, as Markdown or as text.

    \b
    Examples:
      pyaccount report training.cert.json -o training.html
      pyaccount report training.cert.json --format markdown >> MODEL_CARD.md
      pyaccount report training.cert.json --record runs/first/record.jsonl -o training.html

    Nothing is recomputed: the report shows what CERT states. If CERT contradicts itself, the report begins with the
    contradictions. Whether the claim holds and whether the record agrees is part of the report, but does not change the exit
    code.
    """
    from pyaccount.certificate.reading import read_certificate
    from pyaccount.certificate.report import page_of
    from pyaccount.certificate.saving import certificate_text, contradictions
    from pyaccount.pages.readable import printed
    from pyaccount.training.reporting import with_run

    check_output(output, [certificate, *([] if record is None else [record])])
    form = RequestedOutput.checked(output, form, FORMS, otherwise="html").written
    if record is not None and form == "json":
        raise click.UsageError(
            "--record: a certificate in JSON does not contain a run; use verify --record … --format json to get the "
            "verdict"
        )
    data = read_certificate(certificate).any()
    inconsistencies = contradictions(data)
    for inconsistency in inconsistencies:
        tell(f"{certificate}: contradicts itself: {inconsistency}")
    verdict = None if record is None else _recorded(record, certificate)
    if verdict is not None and not verdict.agrees:
        tell(f"{record}: does not agree with {certificate}: {verdict.problems[0]}")
    if form == "json":
        text = certificate_text(data, form, inconsistencies)
    else:
        page = page_of(data, inconsistencies)
        page = page if verdict is None else with_run(page, verdict)
        if output is None and form == "text":
            print_page(page)
            return HOLDS
        text = printed(page, form)
    return save("report", output, text)


@click.command(short_help="Compare certificates with limits: a gate for deployment.")
@click.argument("certificates", metavar="CERT...", nargs=-1, type=FILE)
@options("""
    --attestation FILE* as attestations | A certificate signed by pyaccount attest, instead of CERT; repeat for several
        attestations.
""")
@attested_options
@options("""
    --policy FILE | Limits in a file: a document of kind policy (- means stdin).
    --document DOC* as documents | The document that the certificate must be about (- means stdin); repeat to accept several
        documents.
""")
@folders_option
@options(
    """
    --max-epsilon E | Maximum ε. If --max-delta is given too, ε is taken at a δ within that limit.
    --max-delta D | Maximum δ.
    --max-advantage A | Maximum membership advantage of every attack.
    --max-true-positive-rate R | Maximum true-positive rate of every attack.
    --at-false-positive-rate R | The false-positive rate to which --max-true-positive-rate applies.
    --adjacency A* | The accepted adjacency; repeat to accept several.
    --unit UNIT | What must be protected: record or user.
    --group-size K | Minimum number of records (or users) that are protected together.
    --guarantee KIND* | The weakest accepted kind of guarantee: deterministic, verified or confidence. If several are given, the
        weakest counts.
    --max-failure-probability Q | Maximum probability that the guarantee is false.
    --max-age TIME | Maximum age of the certificate, e.g. 90d.
    --document-sha256 HASH* | The hash of the accepted document; repeat to accept several.
    --no-limits | Do not require limits on ε and δ: without a limit on them, every value passes. Limits that are given still
        apply.
    --format text|markdown|json as form | Format of the verdict; markdown is for summaries of jobs [text].
    --ledger LEDGER | A ledger, a file or the address of a database: each certificate must be entered there, or fit into the
        budget.
    --dataset NAME as data_set | The data set of the ledger [the only one].
    --quiet | Print only what fails.
    """,
    adjacency=limit_words("adjacency"),
    unit=limit_words("unit"),
    guarantee=limit_words("guarantee"),
)
def check(
    certificates: tuple[str, ...],
    policy: str | None,
    documents: tuple[str, ...],
    folders: tuple[str, ...],
    form: str,
    quiet: bool,
    **how: Any,
) -> int:
    """Compare each CERT with limits: a gate for continuous integration and deployment.

    A certificate passes if it does not contradict itself, if its claim holds, and if it meets every limit of the policy and
    of the options. These must limit both ε and δ, or an attack; --no-limits and --ledger turn this requirement off. An
    attestation needs --subject for the files that it must be about; --any-subject turns this requirement off. Nothing is
    recomputed: `pyaccount verify` recomputes.

    \b
    Examples:
      pyaccount check training.cert.json --max-epsilon 8 --max-delta 1e-5 --adjacency add-remove
      pyaccount check certificates/*.json --policy policy.yaml --max-age 90d --format json
      pyaccount check training.cert.json --document training.yaml --policy policy.yaml
      pyaccount check --attestation training.att.json --trusted-keys trusted --subject model.safetensors --policy policy.yaml
      pyaccount check training.cert.json --ledger budgets.db

    \b
    Exit codes: 0 all pass, 1 a claim or a limit fails or no trusted key signed, 2 a file or a limit is wrong or missing.
    """
    from dataclasses import replace

    from pyaccount.document.policy import Limits
    from pyaccount.gate.check import verdict_on
    from pyaccount.pages.readable import printed

    if not certificates and not how["attestations"]:
        raise click.UsageError("Missing argument 'CERT...', or --attestation FILE.")
    files_of(policy, *documents)
    # An empty text is an invalid limit, not a missing one, so that an unset variable of a script does not open the
    # gate.
    given = {name: value for name in Limits.model_fields if (value := how.pop(name, None)) not in (None, ())}
    places = {
        name: f"--{name.replace('_', '-')} {' '.join(value) if isinstance(value, tuple) else value}"
        for name, value in given.items()
    }
    verdict = verdict_on(
        certificates,
        policy=None if policy is None else source_of(policy),
        documents=_loaded(documents, folders),
        limits=given,
        places=places,
        **how,
    )
    for judged in verdict.certificates:
        if judged.error is not None:
            tell(judged.error)
    with printing():
        if form == "json":
            click.echo(verdict.to_json(), nl=False)
        else:
            # Files that cannot be read were reported on stderr, with the reason.
            readable = tuple(judged for judged in verdict.certificates if judged.error is None)
            if readable and not (quiet and all(one.passes for one in readable)):
                page = replace(verdict, certificates=readable).page(only_wrong=quiet)
                if form == "markdown":
                    click.echo(printed(page, form), nl=False)
                else:
                    print_page(page, piped=None)
    return WRONG if not verdict.readable else HOLDS if verdict.passes else FAILS


@click.command(short_help="Recompute a certificate and report every difference.")
@click.argument("certificate", metavar="CERT", required=False, type=FILE)
@file_option("--attestation", help="A signed certificate, instead of CERT. Its signature is checked first.")
@attested_options
@format_option("the verdict")
@threads_option()
@options("""
    --time-limit TIME | Maximum time of the recomputation, e.g. `10 min` [the limit in the document].
""")
@folders_option
@options(
    """
    --same-version | Fail if the certificate names another version of pyaccount.
    --seed SEED | Test the claim with other samples: those of the seed SEED, or `new` to draw a seed now.
    --record FILE | The record of a training run. Also check that the record is complete and belongs to this certificate.
    --expected-head HASH | The hash of a line that the record must contain, which was noted elsewhere during the run. It shows
        that the end of the record was not lost since then.
    --independent | Check the guarantee with the independent checker, in exact arithmetic and without the core, instead of
        recomputing CERT. --time-limit is then the time after which the proof is ended [100 s].
    --quiet | Do not show progress, and print only what does not agree.
    """,
    seed=Seed(),
)
def verify(
    certificate: str | None,
    attestation: str | None,
    form: str,
    threads: int,
    time_limit: str | None,
    folders: tuple[str, ...],
    same_version: bool,
    seed: int | Literal["new"] | None,
    record: str | None,
    expected_head: str | None,
    independent: bool,
    quiet: bool,
    **signed: Any,
) -> int:
    """Recompute CERT from the document inside it, and report every field that does not agree.

    \b
    Examples:
      pyaccount verify training.cert.json
      pyaccount verify training.cert.json --time-limit "10 min" --format json
      pyaccount verify training.cert.json --seed new --same-version
      pyaccount verify training.cert.json --record runs/first/record.jsonl
      pyaccount verify --attestation training.att.json --trusted-keys trusted --subject model.safetensors
      pyaccount verify --independent training.cert.json

    \b
    Exit codes: 0 it agrees, 1 it does not agree, is not proven or no trusted key signed,
    2 it cannot be read, 3 a limit of time or memory was reached,
    130 interrupted, 70 a bug.
    """
    from pyaccount.arguments import seconds_of
    from pyaccount.execute.options import RunOptions
    from pyaccount.execute.progress import silent
    from pyaccount.gate.verify import How, recompute, verify_attestation

    if (certificate is None) == (attestation is None):
        raise click.UsageError("Give either CERT or --attestation FILE, to name what is verified.")
    if attestation is not None and record is not None:
        raise click.UsageError("--record is compared with a certificate that is not in an attestation: give CERT.")
    if expected_head is not None and record is None:
        raise click.UsageError("--expected-head needs a record: give --record FILE.")
    if certificate is not None and any(value not in (None, (), False) for value in signed.values()):
        message = "--trusted-keys, --subject and --any-subject are only for --attestation: CERT is not signed."
        raise click.UsageError(message)
    seconds = seconds_of(time_limit, "--time-limit")
    if independent:
        further = (attestation, folders or None, same_version or None, seed, record)
        if certificate is None or any(option is not None for option in further):
            raise click.UsageError(
                "--independent checks one CERT by itself: leave out other options, but --format and --time-limit."
            )
        return _independent(certificate, seconds, form, quiet=quiet)
    verdict = None if record is None or certificate is None else _recorded(record, certificate, expected_head)
    with progress(quiet=quiet) as report:
        options = RunOptions(threads=threads, time_limit=seconds, limited_by="--time-limit", report=report or silent)
        how = How(options, folders, same_version, seed, "--folder")
        if certificate is not None:
            verification = recompute(certificate, how)
        else:
            assert attestation is not None
            verification = verify_attestation(attestation, how, **signed)
    agrees = verification.agrees and (verdict is None or verdict.agrees)

    def json_of() -> str:
        if verdict is None:
            return verification.to_json()
        whole = json.loads(verification.to_json()) | {"record": verdict.to_mapping()}
        return json.dumps(whole, indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    def pages() -> list[Page | str]:
        shown = verdict is not None and not (quiet and verdict.agrees and not verdict.uncertified)
        return [verification.page(only_wrong=quiet), *([verdict.page()] if verdict is not None and shown else [])]

    unprinted = quiet and agrees and not (verdict is not None and verdict.uncertified)
    code = hand_over("verdict", lambda _: json_of(), pages, RequestedOutput.printed(form, quiet=unprinted), piped=None)
    return code or (HOLDS if agrees else FAILS)


def _independent(certificate: str, seconds: float | None, form: str, *, quiet: bool) -> int:
    """Print the verdict of the independent checker; return the exit code."""
    from pyaccount.gate.independent import SECONDS, verify_independently

    verdict = verify_independently(certificate, SECONDS if seconds is None else seconds)
    code = hand_over_result("verdict", verdict, form, piped=None, quiet=quiet and bool(verdict))
    return code or (HOLDS if verdict else FAILS)


def _loaded(documents: tuple[str, ...], folders: tuple[str, ...]) -> list[Document] | None:
    """Return the documents that certificates are compared with; None without any, as most gates are."""
    if not documents:
        return None
    from pyaccount.document.loading import load

    return [load(source_of(document), folders=folders) for document in documents]


def _recorded(record: str, certificate: str, expected_head: str | None = None) -> RecordVerdict:
    """Return the verdict on a training record, compared with a certificate."""
    from pyaccount.certificate import Certificate
    from pyaccount.training.check_record import hold_record

    if not Path(record).exists():
        raise click.UsageError(
            f"--record {record}: there is no such file; a run writes it as record.jsonl in its folder."
        )
    return hold_record(record, Certificate.load(certificate), expected_head=expected_head)

"""The command that holds scores of canaries against a certificate."""

from __future__ import annotations

from typing import Literal

import click

from pyaccount.cli.common import FAILS, HOLDS, print_page, printing
from pyaccount.cli.completion import FileName, certificate_argument


@click.command(short_help="Hold scores of canaries against a certificate.")
@certificate_argument
@click.argument("scores", metavar="SCORES", type=FileName())
@click.option(
    "--runs",
    type=click.Choice(["one", "many"]),
    default="one",
    help="Whether all canaries were in one run, or each score is from a run of its own [one].",
)
@click.option("--confidence", metavar="C", type=float, default=0.95, help="Of the bounds [0.95].")
@click.option(
    "--guesses",
    metavar="IN OUT",
    type=click.IntRange(0),
    nargs=2,
    help="One run: how many are guessed to be included, and excluded, fixed beforehand [several, paid for].",
)
@click.option(
    "--threshold", metavar="T", type=float, help="Many runs: the score from which on one is guessed to be included."
)
@click.option("--seed", metavar="SEED", type=click.IntRange(0, 2**64 - 1), default=0, help="Of random orders [0].")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="Of the verdict [text].")
def audit(
    certificate: str,
    scores: str,
    runs: Literal["one", "many"],
    confidence: float,
    guesses: tuple[int, int] | None,
    threshold: float | None,
    seed: int,
    form: str,
) -> int:
    """Hold SCORES of canaries against CERT: ε at least, with a confidence that is proven, and whether it refutes the certificate.

    SCORES is a table (CSV, Parquet or npz) with a row for each canary: `score`, higher if it seems to have taken part, and
    `included`, 1 or 0.

    \b
    Examples:
      pyaccount audit training.cert.json canaries.csv
      pyaccount audit training.cert.json canaries.csv --guesses 40 40 --confidence 0.99 --format json

    A consistent audit proves nothing: it found nothing.

    \b
    Exit codes: 0 consistent, 1 refuted, 2 the certificate, a score or an option is wrong.
    """
    from pyaccount.auditing.audit import audit as hold

    found = hold(
        certificate,
        scores,
        runs=runs,
        confidence=confidence,
        guesses=guesses or None,
        threshold=threshold,
        seed=seed,
    )
    with printing():
        if form == "json":
            click.echo(found.to_json(), nl=False)
        else:
            print_page(found.page())
    return HOLDS if found else FAILS

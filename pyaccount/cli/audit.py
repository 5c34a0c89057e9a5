"""The command that compares scores of canaries with a certificate."""

from __future__ import annotations

from typing import Any

import click

from pyaccount.cli.common import FAILS, HOLDS, print_result, printing
from pyaccount.cli.completion import FILE, certificate_argument
from pyaccount.cli.options import format_option, options, seed_option


@click.command(short_help="Compare scores of canaries with a certificate.")
@certificate_argument
@click.argument("scores", metavar="SCORES", type=FILE)
@options("""
    --runs one|many | one: all canaries were in one run; many: each score is from a separate run [one].
""")
@click.option("--confidence", metavar="C", type=float, default=0.95, help="Confidence level of the bounds [0.95].")
@click.option(
    "--guesses",
    metavar="IN OUT",
    type=click.IntRange(0),
    nargs=2,
    help="One run: the numbers of canaries that are guessed to be included and to be excluded. Fix them before you "
    "look at the scores [several choices are tested, each at its share of 1 − C].",
)
@options(
    """
    --threshold T | Many runs: a canary with this score or a higher one is guessed to be included [chosen by a random half of the
        runs].
    """,
    threshold=float,
)
@seed_option("the random choices: the order of equal scores, and the half of the runs that chooses T")
@format_option("the verdict")
def audit(certificate: str, scores: str, form: str, **design: Any) -> int:
    """Compare SCORES of canaries with CERT: compute a lower bound on ε, which holds with the stated confidence, and report
    whether the scores refute the certificate.

    SCORES is a table (CSV, Parquet or npz) with a row for each canary. Its columns are `score`, which is higher if the canary
    seems to have taken part, and `included`, 1 or 0.

    \b
    Examples:
      pyaccount audit training.cert.json canaries.csv
      pyaccount audit training.cert.json canaries.csv --guesses 40 40 --confidence 0.99 --format json

    A consistent audit proves nothing: it only did not find a contradiction.

    \b
    Exit codes: 0 consistent, 1 refuted, 2 the certificate, a score or an option is wrong.
    """
    from pyaccount.auditing.audit import audit as hold

    verdict = hold(certificate, scores, **design)
    with printing():
        print_result(verdict, form)
    return HOLDS if verdict else FAILS

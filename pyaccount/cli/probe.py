"""The command that replays a training script on neighbouring data."""

from __future__ import annotations

import click

from pyaccount.cli.common import FAILS, HOLDS, print_result, printing
from pyaccount.cli.completion import FILE
from pyaccount.cli.options import format_option


@click.command(
    short_help="Replay a training script on neighbouring data.",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.option("--rounds", metavar="N", type=click.IntRange(1, 1000), default=10, help="Rounds of each replay [10].")
@click.option("--time-limit", metavar="TIME", help="Maximum time of all replays, e.g. `10 min` [none].")
@format_option("the findings")
@click.argument("script", metavar="SCRIPT", type=FILE)
@click.argument("arguments", metavar="[ARGUMENT]...", nargs=-1, type=click.UNPROCESSED)
def probe(rounds: int, time_limit: str | None, form: str, script: str, arguments: tuple[str, ...]) -> int:
    """Replay the rounds of SCRIPT, which is run with each ARGUMENT, and report what depends on its data beside what is
    released.

    SCRIPT trains with pyaccount.TrainingRun. It is run several times, in processes of their own, with the same batches,
    seeds and releases; one record is removed, replaced, zeroed or scaled. Reported are sums that move by more than the clip
    norm, and variables, steps, outputs and rounds that differ, with the line of the script. It ends after N rounds, and no
    record of a run, no ledger and no key is written.

    \b
    Examples:
      pyaccount probe train.py
      pyaccount probe --rounds 20 --format json train.py --epochs 3

    Nothing found proves nothing: a probe follows one record through a few rounds.

    \b
    Exit codes: 0 nothing found, 1 findings, 2 the script or an option is wrong,
    3 the time limit was reached.
    """
    from pathlib import Path

    from pyaccount.training.probing import probed_script

    if not Path(script).is_file():
        raise click.UsageError(f"{script}: there is no such file")
    found = probed_script(script, arguments, rounds=rounds, time_limit=time_limit)
    with printing():
        print_result(found, form)
    return HOLDS if found else FAILS

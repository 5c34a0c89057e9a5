"""Options of the commands that run what may take hours: where they keep it, and who computes."""

from __future__ import annotations

import click

from pyaccount.cli.completion import FileName
from pyaccount.cli.runs import VARIABLE

store_option = click.option(
    "--store",
    metavar="FILE",
    type=FileName(),
    envvar=VARIABLE,
    help="Keep what is computed in FILE, and take from it what was kept before: an interrupted run goes on, a finished one is "
    f"not run again [or the environment variable {VARIABLE}].",
)
store_errors_option = click.option(
    "--store-errors",
    type=click.Choice(["stop", "continue"]),
    default="stop",
    help="What to do if the store fails [stop].",
)
cluster_option = click.option(
    "--cluster",
    metavar="WHERE",
    help="Let a cluster of Dask compute: the address of its scheduler, a scheduler file, or local:4 for four processes here. The "
    "answer is the same.",
)

"""The options of commands that may run for hours: where the work is stored, and where it is computed."""

from __future__ import annotations

import click

from pyaccount.cli.completion import FileName
from pyaccount.cli.runs import VARIABLE

store_option = click.option(
    "--store",
    metavar="FILE",
    type=FileName(),
    envvar=VARIABLE,
    help="Store what is computed in FILE, and reuse what is stored there: an interrupted run is resumed, and a "
    f"finished run is not computed again [environment variable {VARIABLE}].",
)
store_errors_option = click.option(
    "--store-errors",
    type=click.Choice(["stop", "continue"]),
    default="stop",
    help="What to do if the store fails: stop, or continue without it [stop].",
)
cluster_option = click.option(
    "--cluster",
    metavar="WHERE",
    help="Compute on a Dask cluster: the address of its scheduler, a scheduler file, or local:4 for four processes "
    "on this machine. It does not change the result.",
)

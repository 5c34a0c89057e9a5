"""Options that several commands have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from pyaccount.cli.completion import FILE

#: The environment variable that names a store.
VARIABLE = "PYACCOUNT_STORE"

Option = Callable[[Any], Any]


def threads_option(use: str = "", *, more: str = "") -> Option:
    """Return the option `--threads`, with what its threads are used for, and what else its help says."""
    text = f"Number of worker threads{use}; 0 means one per core [0].{more}"
    return click.option("--threads", type=click.IntRange(0, 1024), default=0, help=text)


def format_option(what: str) -> Option:
    """Return the option `--format` of a command that prints text or JSON."""
    return click.option(
        "--format", "form", type=click.Choice(["text", "json"]), default="text", help=f"Format of {what} [text]."
    )


def output_option(what: str) -> Option:
    """Return the option that writes the result to a file; `what` names the result."""
    text = (
        f"Write the {what} to FILE. The format follows from --format or from the ending of FILE. If FILE is -, JSON "
        "is written to stdout. A failure never leaves a partial file."
    )
    return click.option("-o", "--output", metavar="FILE", type=FILE, help=text)


def stdout_or_file_option(what: str) -> Option:
    """Return the option that writes to a file what is otherwise written to stdout; `what` names the result."""
    text = f"Write the {what} to FILE instead of stdout (- means stdout). A failure never leaves a partial file."
    return click.option("-o", "--output", metavar="FILE", type=FILE, help=text)


def seed_option(of: str) -> Option:
    """Return the option for the seed of the choices that a command makes; `of` names them."""
    numbers = click.IntRange(0, 2**64 - 1)
    return click.option("--seed", metavar="SEED", type=numbers, default=0, help=f"Seed of {of} [0].")


def output_format_option(forms: Sequence[str]) -> Option:
    """Return the option `--format` of a command that can also write its result to a file."""
    text = "Format of what is written and printed [from the ending of FILE; text on stdout]."
    return click.option("--format", "form", type=click.Choice(forms), help=text)


store_option = click.option(
    "--store",
    metavar="FILE",
    type=FILE,
    envvar=VARIABLE,
    help=f"Store the certificate in FILE; a run that is stored there is not computed again [environment variable {VARIABLE}].",
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
    help="Draw samples on the workers of a Dask cluster: the address of its scheduler, or a scheduler file. It does not "
    "change the result.",
)

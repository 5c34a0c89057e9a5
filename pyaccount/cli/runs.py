"""The command that shows what a run store contains."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pyaccount.cli.common import HOLDS, WIDE, print_result
from pyaccount.cli.options import VARIABLE, file_option, format_option
from pyaccount.cli.outputs import hand_over_result

if TYPE_CHECKING:
    from pyaccount.store import Run, Store


@click.command(short_help="List the runs of a run store, show a certificate, or remove runs.")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@file_option("--store", envvar=VARIABLE, required=True, help=f"The store [environment variable {VARIABLE}].")
@click.option("--remove", is_flag=True, help="Remove each RUN, with everything that is stored of it.")
@format_option("what is printed")
def runs(runs: tuple[str, ...], store: str, remove: bool, form: str) -> int:
    """List the runs of a store, show the certificate of each RUN, or remove each RUN. A RUN is the beginning of an identifier
    in the first column of the list.

    \b
    Examples:
      pyaccount runs --store runs.db
      pyaccount runs --store runs.db --format json

    Certifying the same document with the same store returns the certificate that is stored.
    """
    from pathlib import Path

    from pyaccount.store import Store
    from pyaccount.store.running import certificate_of, run_list

    if remove and not runs:
        raise click.UsageError("--remove: name the runs to remove; pyaccount runs lists them")
    if form == "json" and len(runs) > 1:
        raise click.UsageError("--format json shows one run at a time; give one RUN")
    if not Path(store).exists():
        raise click.UsageError(f"--store {store}: there is no such file")
    with Store(store) as opened:
        if not runs:
            return hand_over_result("list", run_list(opened), form, piped=WIDE)
        chosen = [_named(opened, name) for name in runs]
        if remove:
            opened.remove([run.id for run in chosen])
            return HOLDS
        for run in chosen:
            print_result(certificate_of(run), form)
    return HOLDS


def _named(store: Store, name: str) -> Run:
    """Return the run whose identifier begins with `name`. Raises a usage error unless there is exactly one."""
    matching = [run for run in store.runs() if run.id.startswith(name)] if name else []
    if len(matching) == 1:
        return matching[0]
    message = (
        "no run has this identifier" if not matching else f"the identifiers of {len(matching)} runs begin like this"
    )
    raise click.UsageError(f"{name}: {message}; pyaccount runs lists them")

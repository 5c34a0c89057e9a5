"""Options that several commands have, and the cluster of Dask that `--cluster` names."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pyaccount.cli.common import STDOUT
from pyaccount.cli.completion import FILE, FOLDER, together
from pyaccount.errors import ClusterError, MissingExtraError

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from pyaccount.cli.completion import Option

#: The environment variable that names a store.
VARIABLE = "PYACCOUNT_STORE"

#: The placeholders of files in the tables of options.
_FILES = ("FILE", "LEDGER", "DOC", "KEY", "FOLDER")


def file_option(*names: str, help: str, **further: Any) -> Option:
    """Return an option whose value is the name of a file; a shell completes it."""
    return click.option(*names, metavar="FILE", type=FILE, help=help, **further)


def options(table: str, **types: click.ParamType[Any] | type) -> Option:
    """Return a decorator that adds the options of a table to a command, with a line for each: `--flag METAVAR as name | help`.

    Without a metavar the option is a flag; one with `*` may be repeated, one with `!` is required. A metavar `a|b` lists what is
    accepted; the first is the default unless the option is required. A shell completes files and folders, and `types` has the
    types of further options by name. An indented line continues the one above.
    """
    rows = [" ".join(row.split()) for row in re.split(r"\n(?! {5})", table.strip())]

    def add(command: Any) -> Any:
        for row in reversed(rows):
            head, text = row.split(" | ", maxsplit=1)
            head, _, named = head.partition(" as ")
            *flags, last = head.split(", ")
            flag, _, metavar = last.partition(" ")
            name = named or flag.removeprefix("--").replace("-", "_")
            repeated, required, metavar = "*" in metavar, "!" in metavar, metavar.rstrip("*!")
            how: dict[str, Any] = {"is_flag": True}
            if metavar:
                shown = FOLDER if metavar == "DIR" else FILE if metavar in _FILES else None
                how = {"metavar": metavar, "multiple": repeated, "required": required, "type": types.get(name, shown)}
            if "|" in metavar:
                words = metavar.split("|")
                how = {"type": click.Choice(words), "required": required, **({} if required else {"default": words[0]})}
            command = click.option(*flags, flag, name, help=text, **how)(command)
        return command

    return add


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
    return file_option("-o", "--output", help=text)


def stdout_or_file_option(what: str) -> Option:
    """Return the option that writes to a file what is otherwise written to stdout; `what` names the result."""
    text = f"Write the {what} to FILE instead of stdout (- means stdout). A failure never leaves a partial file."
    return file_option("-o", "--output", help=text, callback=lambda _, __, file: None if file == STDOUT else file)


def seed_option(of: str) -> Option:
    """Return the option for the seed of the choices that a command makes; `of` names them."""
    numbers = click.IntRange(0, 2**64 - 1)
    return click.option("--seed", metavar="SEED", type=numbers, default=0, help=f"Seed of {of} [0].")


def output_format_option(forms: Sequence[str]) -> Option:
    """Return the option `--format` of a command that can also write its result to a file."""
    text = "Format of what is written and printed [from the ending of FILE; text on stdout]."
    return click.option("--format", "form", type=click.Choice(forms), help=text)


#: The options of commands that certify: where the result is stored, and which machines draw samples.
running_options = together(
    file_option(
        "--store",
        envvar=VARIABLE,
        help="Store the certificate in FILE; a run that is stored there is not computed again [environment variable "
        f"{VARIABLE}].",
    ),
    options("""
    --store-errors stop|continue | What to do if the store fails: stop, or continue without it [stop].
    --cluster WHERE | Draw samples on the workers of a Dask cluster: the address of its scheduler, or a scheduler file. It does
        not change the result.
    """),
)

full_option = click.option(
    "--full", is_flag=True, help="Print the whole certificate instead of what fits a screen, as --format text does."
)

#: The seconds after which a scheduler that does not answer is given up.
ANSWER = 10.0


@contextmanager
def executor_at(where: str | None) -> Iterator[Executor | None]:
    """Open an executor on the cluster of Dask with this address or scheduler file, or yield `None` if there is none.

    Raises `ClusterError` if no scheduler answers, and `MissingExtraError` without Dask.
    """
    if where is None:
        yield None
        return
    import asyncio  # for clusters only

    try:
        from distributed import Client  # an extra
    except ImportError as error:
        raise MissingExtraError.of("distributed", "a cluster of Dask needs it") from error
    try:
        address = where if not where.endswith(".json") else str(json.loads(Path(where).read_bytes())["address"])
        asyncio.run(_check_scheduler(address))
        client = Client(address, timeout=ANSWER, set_as_default=False)
    except Exception as error:  # any content of a file, and any exception of Dask about what answers at an address
        raise ClusterError(f"{where}: no scheduler of Dask answers: {str(error) or type(error).__name__}") from error
    with client:
        yield client.get_executor()


async def _check_scheduler(address: str) -> None:
    """Raise if no scheduler answers. A client would wait for a peer that accepts a connection and says nothing.

    A client that cannot connect may also wait for itself when it is collected.
    """
    import asyncio

    from distributed.core import connect, send_recv  # an extra
    from distributed.security import Security

    async with asyncio.timeout(2.0 * ANSWER):
        comm = await connect(address, timeout=ANSWER, **Security().get_connection_args("client"))
        try:
            made = await send_recv(comm, op="identity", close=True)
        finally:
            comm.abort()
    if made["type"] != "Scheduler":
        raise ClusterError(f"a {made['type']} answers there, not a scheduler")

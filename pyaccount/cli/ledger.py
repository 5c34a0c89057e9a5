"""The commands of a ledger: what is spent of a data set's budget, and what may still be run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import click

from pyaccount.cli.common import FAILS, HOLDS, WIDE, check_output, files_of, source_of
from pyaccount.cli.completion import FILE
from pyaccount.cli.help import Context
from pyaccount.cli.options import file_option, format_option, options, output_option
from pyaccount.cli.outputs import RequestedOutput, hand_over, hand_over_result

if TYPE_CHECKING:
    from pyaccount.ledger import Ledger, LedgerEntry

#: The formats of a status.
FORMS = ("text", "markdown", "json", "html", "openmetrics")


class _Command(click.Command):
    context_class = Context


class _Group(click.Group):
    """A group whose commands are listed in the order of use."""

    command_class = _Command
    context_class = Context

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in that order."""
        return list(self.commands)


ledger_argument = click.argument("place", metavar="LEDGER", type=FILE)
entry_argument = click.argument("entry", metavar="ENTRY")


def _data_set_option(what: str = "The data set") -> Callable[[Any], Any]:
    """Return the option that names a data set."""
    return click.option("--dataset", "data_set", metavar="NAME", help=f"{what} [the only one of the ledger].")


@click.group(cls=_Group, short_help="Keep the privacy budget of data sets that many runs share.")
def ledger() -> None:
    """Keep the privacy budget of data sets that many people and runs share. LEDGER is a file, or a PostgreSQL database:
    postgresql://user@host/name, with the password in PGPASSWORD.

    \b
    Examples:
      pyaccount ledger create budgets.db customers.yaml
      pyaccount ledger reserve budgets.db training.cert.json --who ann --purpose "spam filter"
      pyaccount ledger begin budgets.db e2
      pyaccount ledger commit budgets.db e2 training.cert.json --record runs/first/record.jsonl
      pyaccount ledger status budgets.db

    An entry is reserved before a run, begins before its first release, and is committed with its certificate. What is reserved
    before anything on the data has begun is composed exactly; later entries count in the filters that the data set sets aside.

    \b
    Exit codes: 0 it was done, 1 the budget does not admit it (reserve), or
    the ledger is damaged (verify), 2 the command, a document or an entry is
    wrong, 3 the ledger cannot be read or written, 130 interrupted.
    """


@ledger.command(short_help="Enter a data set and its budget; makes the ledger if there is none.")
@ledger_argument
@click.argument("document", metavar="DATASET", type=FILE)
def create(place: str, document: str) -> int:
    """Enter DATASET, a document of kind data-set, into LEDGER. A ledger that does not exist is made.

    \b
    Examples:
      pyaccount ledger create budgets.db customers.yaml
    """
    return _budgeted(place, "create", document)


@ledger.command(short_help="Change the budget of a data set.")
@ledger_argument
@click.argument("document", metavar="DATASET", type=FILE)
def change(place: str, document: str) -> int:
    """Change the budget of a data set of LEDGER to that of DATASET, another version of its document.

    Only the numbers of the budget may differ, and new blocks may be listed. The budget cannot be lower than what is spent.

    \b
    Examples:
      pyaccount ledger change budgets.db customers.yaml
    """
    return _budgeted(place, "change", document)


@ledger.command("add-block", short_help="Add a block of new data to a data set.")
@ledger_argument
@click.argument("name", metavar="BLOCK")
@_data_set_option()
def add_block(place: str, name: str, data_set: str | None) -> int:
    """Add BLOCK to a data set of LEDGER: new data, which has the whole budget and accounts of its own.

    \b
    Examples:
      pyaccount ledger add-block budgets.db new-york
    """
    _opened(place).add_block(name, data_set=data_set)
    return HOLDS


@ledger.command("retire-block", short_help="Retire a block whose data is used no longer.")
@ledger_argument
@click.argument("name", metavar="BLOCK")
@_data_set_option()
def retire_block(place: str, name: str, data_set: str | None) -> int:
    """Retire BLOCK of a data set of LEDGER: no entry is reserved on it any more, and none begins.

    \b
    Examples:
      pyaccount ledger retire-block budgets.db all
    """
    _opened(place).retire_block(name, data_set=data_set)
    return HOLDS


@ledger.command(short_help="Reserve the budget of a run, before it begins.")
@ledger_argument
@click.argument("document", metavar="DOC", type=FILE)
@options("""
    --who NAME! | Who runs it.
    --purpose TEXT! | What for.
""")
@_data_set_option("The data set that it uses")
@options("""
    --block NAME* as blocks | A block whose data it uses; repeat for several [the only one].
    --filter NAME | The filter that it enters if it is adaptive [the first that admits it].
    --id ID | An identifier of your own, such as that of a job. Makes the call idempotent: a second call returns the
        existing entry.
""")
@format_option("the entry")
def reserve(place: str, document: str, form: str, **entered: Any) -> int:
    """Reserve the budget of DOC: a document without blanks, or a certificate. Prints the identifier of the entry.

    \b
    Examples:
      pyaccount ledger reserve budgets.db poisson.yaml --who ann --purpose "spam filter"
      pyaccount ledger reserve budgets.db training.cert.json --who ann --purpose "spam filter" --id e2

    If the budget does not admit it, the exit code is 1, nothing is reserved, and the message says what is left and what would
    fit.
    """
    files_of(document)
    return _show_entry(_opened(place).reserve(source_of(document), **entered), form)


@ledger.command(short_help="Begin a reserved entry, before its first release.")
@ledger_argument
@entry_argument
@format_option("the entry")
def begin(place: str, entry: str, form: str) -> int:
    """Begin ENTRY of LEDGER, before its run releases anything. What others reserve on its data from now on is adaptive.

    \b
    Examples:
      pyaccount ledger begin budgets.db e2
    """
    return _show_entry(_opened(place).begin(entry), form)


@ledger.command(short_help="Commit an entry with its certificate, and the record of its run.")
@ledger_argument
@entry_argument
@click.argument("certificate", metavar="CERT", type=FILE)
@file_option("--record", help="The record of the run, which says what was really released.")
@format_option("the entry")
def commit(place: str, entry: str, certificate: str, record: str | None, form: str) -> int:
    """Commit ENTRY of LEDGER with its certificate CERT, after its run.

    \b
    Examples:
      pyaccount ledger commit budgets.db e2 training.cert.json --record runs/first/record.jsonl

    Rounds that were planned and not released are credited in filters whose costs add up over rounds.
    """
    return _show_entry(_opened(place).commit(entry, certificate, record=record), form)


@ledger.command(short_help="Give back a reservation that was not begun.")
@ledger_argument
@entry_argument
@format_option("the entry")
def release(place: str, entry: str, form: str) -> int:
    """Give back ENTRY of LEDGER, a reservation that was not begun. Once anything on its data has begun, a fixed entry keeps its
    price.

    \b
    Examples:
      pyaccount ledger release budgets.db e2
    """
    return _show_entry(_opened(place).release(entry), form)


@ledger.command("amend-clock", short_help="Set the time of a ledger back after an event of the future.")
@ledger_argument
@click.option("--reason", metavar="TEXT", required=True, help="Why; everybody who reads the ledger sees it.")
def amend_clock(place: str, reason: str) -> int:
    """Set the time of LEDGER back to that of this machine.

    \b
    Examples:
      pyaccount ledger amend-clock budgets.db --reason "the clock of node 7 said 2099"

    An event that was written by a clock of the future stops everybody whose clock is right. The amendment is an event too. It
    changes no charge, since nothing that a ledger counts depends on a time.
    """
    event = _opened(place).amend_clock(reason=reason)
    click.echo(f"the time of the ledger was set back from {event.content['amended_from']} to {event.time}")
    return HOLDS


@ledger.command(short_help="Show what is spent, by whom, and what is left.")
@ledger_argument
@_data_set_option("Only this data set")
@click.option("--format", "form", type=click.Choice(FORMS), help="Format of what is written and printed [text].")
@output_option("status")
def status(place: str, data_set: str | None, form: str | None, output: str | None) -> int:
    """Show the budgets of LEDGER: what is spent, by whom, what is left, and what a typical entry costs.

    \b
    Examples:
      pyaccount ledger status budgets.db
      pyaccount ledger status budgets.db --format openmetrics
      pyaccount ledger status budgets.db -o status.html
    """
    from pyaccount.pages.readable import printed

    check_output(output, [place], form, only="json")
    asked = RequestedOutput.checked(output, form, FORMS, otherwise="json")
    found = _opened(place).status(data_set)

    def text_of(form: str) -> str:
        if form == "openmetrics":
            return found.to_openmetrics()
        return found.to_json() if form == "json" else printed(found.page(), form)

    return hand_over("status", text_of, lambda: [found.page()], asked, piped=WIDE)


@ledger.command(short_help="List all events.")
@ledger_argument
@_data_set_option("Only this data set")
@format_option("the events")
def history(place: str, data_set: str | None, form: str) -> int:
    """List the events of LEDGER, in order: who entered what, when, and the hash that confirms everything before.

    \b
    Examples:
      pyaccount ledger history budgets.db
      pyaccount ledger history budgets.db --format json
    """
    return hand_over_result("history", _opened(place).history(data_set), form, piped=WIDE)


@ledger.command(short_help="Check the chain of hashes, the rules and the tables of a ledger.")
@ledger_argument
@options("""
    --recompute | Compute the total of each block again too.
    --expected-head HASH | The hash of an event that was noted elsewhere. It shows that the end of the ledger was not cut off
        since then.
""")
@format_option("the result")
def verify(place: str, recompute: bool, expected_head: str | None, form: str) -> int:
    """Check LEDGER: the chain of hashes, the rules that each event must keep, and whether its tables follow from its events.

    \b
    Examples:
      pyaccount ledger verify budgets.db
      pyaccount ledger verify budgets.db --recompute --format json

    The exit code is 1 if the ledger is damaged.
    """
    found = _opened(place).verify(recompute=recompute, expected_head=expected_head)
    code = hand_over_result("verification", found, form, piped=WIDE)
    return code or (HOLDS if found.intact else FAILS)


def _budgeted(place: str, action: Literal["create", "change"], document: str) -> int:
    """Create or change the data set of a document, and print its budget."""
    from pyaccount.document.data_set import load_data_set

    loaded = load_data_set(source_of(document))
    getattr(_opened(place), action)(loaded)
    click.echo(f"{loaded.name}: {loaded.budget_words()}")
    return HOLDS


def _opened(place: str) -> Ledger:
    from pyaccount.ledger import Ledger

    return Ledger(place)


def _show_entry(entry: LedgerEntry, form: str) -> int:
    from pyaccount.ledger.history import EntryRecord

    record = EntryRecord.of(entry)
    asked = RequestedOutput.printed(form)
    return hand_over("entry", lambda _: record.to_json(), lambda: [f"{record.text()}\n"], asked)

"""The command line. Results go to stdout and everything else to stderr; exit codes are as documented.

0: the claim holds; 1: the claim does not hold; 2: the document or the command is wrong, or a package that it needs is
not installed; 3: a limit of the machine was reached; 130: interrupted; 70: a bug, so that no bug is mistaken for a
claim that does not hold.

Each group of commands has a module, which turns options into calls and results into text, and does nothing else. Only
the module of the called command is loaded. It imports heavy modules inside its functions, so that `validate` and
`check` are quick.
"""

from __future__ import annotations

import gc
import io
import os
import sys
from importlib import import_module

import click

from pyaccount.cli import streams
from pyaccount.cli.common import BUG, COMPLETING, HOLDS, INTERRUPTED, STOPPED, WRONG, tell
from pyaccount.cli.help import Context
from pyaccount.cli.streams import UnknownWord, as_data, command_of, in_options, tell_errors
from pyaccount.errors import DISTRIBUTION

#: The module of each command, in the order of use. Only the module of the called command is loaded.
_HOMES = {
    "init": "init",
    "prepare": "data",
    "validate": "documents",
    "plan": "certify",
    "matrix": "documents",
    "certify": "certify",
    "compose": "compose",
    "compare": "certify",
    "sweep": "sweep",
    "report": "certificates",
    "check": "certificates",
    "verify": "certificates",
    "attest": "attest",
    "card": "publishing",
    "export": "publishing",
    "probe": "probe",
    "audit": "audit",
    "ledger": "ledger",
    "runs": "runs",
    "schema": "documents",
    "completion": "completion",
}


class _InOrder(click.Group):
    """A group that lists the commands in the order of use instead of alphabetically."""

    context_class = Context

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands in that order."""
        return list(_HOMES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load and return a command; None if there is none with this name."""
        return _command(cmd_name) if cmd_name in _HOMES else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the called command. If a file is given instead, the error names the command that reads it."""
        word = args[0]
        if ctx.resilient_parsing:
            # A shell completes a command line, so no word is an error.
            return super().resolve_command(ctx, args)
        if word not in _HOMES and word.lower().endswith((".yaml", ".yml", ".json")):
            command = "report" if word.lower().endswith(".json") else "certify"
            ctx.fail(f"{word} is not a command. To {command} it, run: pyaccount {command} {word}")
        if word == "help":
            ctx.fail("there is no command help; use pyaccount --help, or pyaccount COMMAND --help")
        if word not in _HOMES and not word.startswith("-"):
            from pyaccount.reading.spelling import nearest

            near = nearest(word, _HOMES)
            message = f"there is no command {word}" + ("" if near is None else f"; did you mean {near}?")
            raise UnknownWord(message, ctx, [] if near is None else [near])
        return super().resolve_command(ctx, args)


@click.group(cls=_InOrder, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name=DISTRIBUTION, message="pyaccount %(version)s")
def commands() -> None:
    """Certify differential privacy: read a mechanism document, and write a certificate with proven privacy bounds.

    \b
    Examples:
      pyaccount init training.yaml                      write a document, by answering questions
      pyaccount certify training.yaml -o my.cert.json   compute its certificate
      pyaccount COMMAND --help                          show more examples

    \b
    Exit codes: 0 the claim holds, 1 it does not hold, 2 the document is
    wrong or a package is not installed, 3 a limit of time or memory was
    reached, 130 interrupted, 70 a bug.
    """


def _command(name: str) -> click.Command:
    command: click.Command = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    command.context_class = Context
    return command


def _called(name: str, arguments: list[str] | None) -> click.Command:
    """Return the command that was called, or the command of a group."""
    command = _command(name)
    words = sys.argv[1:] if arguments is None else arguments
    inner = command.commands if isinstance(command, click.Group) else {}
    return next((inner[word] for word in words if word in inner), command)


def all_commands() -> dict[str, click.Command]:
    """Load every command and return all by their names; those of a group follow it, as in `ledger status`."""
    found: dict[str, click.Command] = {}
    for name in _HOMES:
        command = found[name] = _command(name)
        if isinstance(command, click.Group):
            found |= {f"{name} {inner}": one for inner, one in command.commands.items()}
    return found


#: What to do in place of options that other commands of a shell have.
_INSTEAD = {"--json": "Write --format json.", "--vary": "List the values under `vary:` in the document."}


def _elsewhere(error: click.NoSuchOption) -> click.ClickException:
    """Return the error for an unknown option; if a document key or another command has its name, say so."""
    from pyaccount.document.validation import home_of
    from pyaccount.errors import path_text

    if error.option_name in _INSTEAD:
        return click.UsageError(f"No such option: {error.option_name}. {_INSTEAD[error.option_name]}", error.ctx)
    home = home_of(error.option_name.lstrip("-"))
    takes_overrides = error.ctx is not None and any(param.name == "overrides" for param in error.ctx.command.params)
    if home is None or not takes_overrides:
        options = {name: {opt for param in one.params for opt in param.opts} for name, one in all_commands().items()}
        having = [name for name, opts in options.items() if error.option_name in opts]
        if not having or error.ctx is None:
            return error
        message = (
            f"No such option: {error.option_name}. {error.ctx.info_name} does not have it; it is an option of "
            f"{', '.join(having)}."
        )
        return click.UsageError(message, error.ctx)
    message = (
        f"No such option: {error.option_name}. To change this value of the document, use --set {path_text(home)}=VALUE."
    )
    return click.UsageError(message, error.ctx)


def run(arguments: list[str] | None = None) -> int:
    """Run a command and return its exit code. Every expected failure becomes a message on stderr."""
    streams.fill()
    if COMPLETING in os.environ:
        # A shell asks for completions; this module supports the way in which bash splits words.
        import_module(f"{__name__}.completion")
    try:
        code = int(commands.main(args=arguments, prog_name="pyaccount", standalone_mode=False) or HOLDS)
        # Flush here, because an error that is first noticed at exit would change the exit code.
        sys.stdout.flush()
        return code
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return WRONG
    except click.ClickException as error:
        if isinstance(error, click.NoSuchOption):
            error = _elsewhere(error)
        elif isinstance(error, click.MissingParameter):
            # The library lists choices on lines with tabs.
            error = click.UsageError(" ".join(error.format_message().split()), error.ctx)
        # click wraps its usage but not its message, which is wrapped here.
        stream = io.StringIO()
        error.show(stream)
        tell(stream.getvalue().rstrip("\n"))
        return _exit_code(arguments, WRONG, error)
    except (KeyboardInterrupt, click.Abort) as error:
        click.echo("interrupted: there is no result", err=True)
        return _exit_code(arguments, INTERRUPTED, error)
    except OSError as error:
        tell(f"{error.filename or 'input or output'}: {error.strerror or error}")
        try:
            sys.stdout.flush()
        except OSError:
            # The interpreter would report a full disk a second time at exit, with another exit code.
            streams.give_up()
        return _exit_code(arguments, STOPPED, error)
    except MemoryError as error:
        tell("there is not enough memory: nothing was certified")
        return _exit_code(arguments, STOPPED, error)
    except Exception as error:
        from pyaccount.errors import DomainError, PyaccountError

        if not isinstance(error, PyaccountError):
            raise
        called = command_of(arguments, _HOMES)
        if isinstance(error, DomainError) and called is not None:
            # Functions name their arguments in messages; users of commands know the options.
            error = DomainError(in_options(str(error), _called(called, arguments).params))
        tell(str(error))
        return _exit_code(arguments, error.exit_code, error)


def _exit_code(arguments: list[str] | None, code: int, error: BaseException) -> int:
    """Return the exit code of an error that was printed as text; print it as data if the command asks for JSON."""
    if as_data(arguments):
        tell_errors(command_of(arguments, _HOMES), code, error)
    return code


def main() -> None:
    """The `pyaccount` command."""
    # A command ends soon and leaves few cycles. Searching all imported objects for cycles, sometimes and again at the
    # end, takes a fifth of the time of a quick command.
    gc.set_threshold(100_000)
    # Finding pydantic's plugins means reading about every installed package; and no plugin may change what a document
    # means.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    streams.prepare()
    try:
        code = run()
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as error:  # A panic of the core is not an `Exception`.
        import traceback

        traceback.print_exc()
        click.echo("this is a bug of pyaccount; it says nothing about the document or the certificate", err=True)
        code = _exit_code(None, BUG, error)
    gc.freeze()
    # Python remembers a KeyboardInterrupt that passed through an `exec` of a library, and would end by that signal
    # instead of with this code. Another `exec` clears it.
    exec("")
    sys.exit(code)

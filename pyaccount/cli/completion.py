"""Completion in the shell: the possible words at each position, and the command that prints the shell's script.

The scripts are those of click, except for bash. In bash a word ends at `=`, so `--set privacy.epsilon=solve` arrives in
pieces, and no space may follow a completed path. Models are loaded only if something of theirs is completed.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal

import click
from click.shell_completion import BashComplete, CompletionItem, add_completion_class, get_completion_class

from pyaccount.cli.common import COMPLETING, HOLDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Items = list[CompletionItem[str]]
    #: A decorator that adds something to a command.
    Option = Callable[[Any], Any]

SHELLS = ("bash", "zsh", "fish")


class Location(click.ParamType[str]):
    """The name of a file or a folder, which is completed but not checked: what reads it reports errors."""

    def __init__(self, name: Literal["file", "folder"], kind: Literal["file", "dir"]) -> None:
        self.name, self._kind = name, kind

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
        """Let the shell complete names."""
        return [CompletionItem(incomplete, type=self._kind)]


class Offered(click.ParamType[str]):
    """A text for which words are offered, each with a line about it or None; other texts are not refused here."""

    def __init__(self, name: str, words: Callable[[], Mapping[str, str | None]]) -> None:
        self.name, self._words = name, words

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
        """Return the words that begin like the text."""
        return [CompletionItem(word, help=line) for word, line in self._words().items() if word.startswith(incomplete)]


FILE, FOLDER = Location("file", "file"), Location("folder", "dir")


def limit_words(limit: str) -> Offered:
    """Return the type of an option for a limit of a policy that accepts some words."""

    def words() -> dict[str, str | None]:
        from pyaccount.document.policy import Limits
        from pyaccount.document.shape import accepted_words

        return dict.fromkeys(accepted_words(Limits.model_fields[limit]))

    return Offered("text", words)


class Seed(click.ParamType[int | Literal["new"]]):
    """A seed of samples, or `new` to draw one."""

    name = "seed"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | Literal["new"]:
        """Return the seed as a number, or `new`."""
        if value == "new":
            return "new"
        return click.IntRange(0, 2**64 - 1).convert(value, param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
        """Return the word `new`."""
        return [CompletionItem("new", help="draw a seed now")] if "new".startswith(incomplete) else []


class OverrideType(click.ParamType[str]):
    """An option `path=value`, completed with the paths of the models and the words that are allowed there."""

    name = "override"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text, marked as coming from the command line."""
        from pyaccount.reading.overrides import FromOption  # few commands change a document

        return FromOption(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
        """Return paths before the `=`, and allowed words after it."""
        path, equals, value = incomplete.partition("=")
        if not equals:
            return [CompletionItem(f"{text}=", help=line) for text, _, line in overridable() if text.startswith(path)]
        words = next((words for text, words, _ in overridable() if text == path), ())
        return [CompletionItem(f"{path}={word}") for word in words if word.startswith(value)]


def overridable() -> Iterator[tuple[str, tuple[str, ...], str]]:
    """Yield each path of a document with one body, the words that are allowed there, and what the key means."""
    from pyaccount.document.models import SingleDocument
    from pyaccount.document.shape import accepted_words, leaves
    from pyaccount.errors import path_text

    words: dict[str, tuple[str, ...]] = {}
    lines: dict[str, str] = {}
    for path, field in leaves(SingleDocument):
        text = path_text(path)
        words[text] = tuple(dict.fromkeys((*words.get(text, ()), *accepted_words(field))))
        lines.setdefault(text, str(field.description).split(":")[0].split(". ")[0])
    # The kinds of a section may describe the same key differently, so no single description fits it.
    for text, allowed in words.items():
        yield text, allowed, "the kind" if text.endswith(".kind") else lines[text]


def together(*parts: Option) -> Option:
    """Return the decorator that adds several arguments and options, in this order."""

    def add(command: Any) -> Any:
        for part in reversed(parts):
            command = part(command)
        return command

    return add


folders_option = click.option(
    "--folder",
    "folders",
    metavar="DIR",
    multiple=True,
    type=FOLDER,
    help="A folder in which files that a document names may lie, besides the document's own; repeat for several.",
)
overrides_option = click.option(
    "--set",
    "overrides",
    metavar="PATH=VALUE",
    multiple=True,
    type=OverrideType(),
    help="Replace one value of the document, e.g. privacy.epsilon=4; repeat for several.",
)
#: The argument DOC, or DOC..., of commands that load documents, with the options of how they are loaded.
document_argument = together(click.argument("document", metavar="DOC", type=FILE), overrides_option, folders_option)
documents_argument = together(
    click.argument("documents", metavar="DOC...", nargs=-1, required=True, type=FILE), overrides_option, folders_option
)
certificate_argument = click.argument("certificate", metavar="CERT", type=FILE)


class BashInPieces(BashComplete):
    """bash, which passes `path=value` as three words and completes only the last one."""

    source_template = BashComplete.source_template.replace(
        "COMPREPLY+=($value)", 'COMPREPLY+=("$value")\n            [[ $value == *= ]] && compopt -o nospace'
    )

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words, with the pieces of each `path=value` joined again."""
        words = click.shell_completion.split_arg_string(os.environ["COMP_WORDS"])
        here = int(os.environ["COMP_CWORD"])
        before, incomplete = words[1:here], words[here] if here < len(words) else ""
        joined: list[str] = []
        for word in before:
            inside = joined and not joined[-1].startswith("-")
            if word == "=" and inside:
                joined[-1] += "="
            elif joined and joined[-1].endswith("=") and inside:
                joined[-1] += word
            elif word != "=":
                joined.append(word)
        self.path = ""
        if incomplete == "=" and joined and not joined[-1].startswith("-"):
            self.path, incomplete = f"{joined.pop()}=", ""
        elif joined and joined[-1].endswith("=") and before[-1] == "=" and not joined[-1].startswith("-"):
            self.path = joined.pop()
        elif incomplete == "=":
            incomplete = ""
        return joined, self.path + incomplete

    def format_completion(self, item: CompletionItem[str]) -> str:
        """Return a completion without the part that bash treats as other words."""
        value = item.value.removeprefix(self.path) if self.path else item.value
        return f"{item.type},{value}"


add_completion_class(BashInPieces, "bash")


@click.command(short_help="Print a script that completes commands in bash, zsh or fish.")
@click.argument("shell", metavar="SHELL", type=click.Choice(SHELLS))
def completion(shell: str) -> int:
    """Print the script with which bash, zsh or fish completes the commands, options, files and --set paths of pyaccount.

    \b
    Examples:
      pyaccount completion bash > ~/.local/share/bash-completion/completions/pyaccount
      pyaccount completion fish > ~/.config/fish/completions/pyaccount.fish
      pyaccount completion zsh > ~/.pyaccount.zsh    # source it in ~/.zshrc

    To try it in this shell only: source <(pyaccount completion bash)
    """
    root = click.get_current_context().find_root()
    complete = get_completion_class(shell)
    assert complete is not None
    click.echo(complete(root.command, {}, "pyaccount", COMPLETING).source(), nl=False)
    return HOLDS

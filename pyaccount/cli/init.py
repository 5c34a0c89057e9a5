"""The command that starts a document: init."""

from __future__ import annotations

import sys
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pyaccount.cli.common import HOLDS, INTERRUPTED, STDOUT, STOPPED, check_writable, fitted, room, tell, tell_notes
from pyaccount.cli.completion import FILE, Offered
from pyaccount.cli.options import options
from pyaccount.cli.outputs import put_elsewhere

if TYPE_CHECKING:
    from pyaccount.draft.questions import Answers, DraftQuestion
    from pyaccount.errors import DocumentError

#: How far a choice is indented after its number.
_CHOICE = 6
#: The answer that returns to the previous question.
BACK = "back"


class _Asking(click.Command):
    """A command with an option for each question of the models, which are loaded when the command is called."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the argument, an option for each question, and the other options."""
        argument, *rest = super().get_params(ctx)
        return [argument, *_answer_options(), *rest]


@cache
def _answer_options() -> tuple[click.Option, ...]:
    from pyaccount.draft.questions import QUESTIONS, meanings

    return tuple(
        click.Option([one.flag, name], metavar=one.metavar, help=one.help, type=Offered("text", partial(meanings, one)))
        for name, one in QUESTIONS.items()
    )


@click.command(cls=_Asking, short_help="Write a commented document to start from, by asking questions.")
@click.argument("file", metavar="[FILE]", default="training.yaml", type=FILE)
@options("""
    -y, --yes | Do not ask questions: use the defaults, and fail if a value without a default is missing.
    -f, --force | Overwrite FILE if it exists.
""")
def init(file: str, yes: bool, force: bool, **given: str | None) -> int:
    """Write a commented mechanism document to FILE [training.yaml], or to stdout if FILE is -.

    On a terminal the command asks for the values that the options do not give. Without a terminal, or with --yes, conventions
    take their defaults; facts about the training run have no defaults, and it is an error if one is missing. If more than the
    training run is released of the data, such as counts or a vendor's model, --also says what, and each has a phase of its own.

    \b
    Examples:
      pyaccount init
      pyaccount init training.yaml --dataset-size 50_000 --batch-size 500 \\
          --iterations 2000 --epsilon 8 --delta 1e-5
      pyaccount init bandmf.yaml --sampler b-min-sep --min-separation 64 --dataset-size 50_000 \\
          --batch-size 500 --iterations 2000 --epsilon 8
      pyaccount init shuffled.yaml --sampler none --epochs 10 --max-participations 10 --adjacency zero-out \\
          --dataset-size 50_000 --batch-size 256 --noise-multiplier 2
      pyaccount init - --yes --sampling-probability 0.01 --iterations 2000 --noise-multiplier 1
      pyaccount init - --yes --sampling-probability 0.01 --iterations 2000 --epsilon 8 --delta 1e-6 \\
          --also counts,stated --counts-noise laplace --counts-scale 20 --counts-moved 3 \\
          --stated-epsilon 0.5 --stated-delta 1e-8
    """
    target = None if file == STDOUT else Path(file)
    if target is not None:
        check_writable("FILE", target)
        if not force and (target.exists() or target.is_symlink()):
            raise click.UsageError(f"{file} exists already; use --force to overwrite it, or give another name")
    interactive = sys.stdin.isatty() and not yes
    try:
        text = _text({name: answer for name, answer in given.items() if answer is not None}, target, interactive)
    except click.Abort:
        click.echo("interrupted: nothing was written", err=True)
        return INTERRUPTED
    if target is None:
        click.echo(text, nl=False)
        _tell_notes(text, None)
        return HOLDS
    import shlex

    from pyaccount.files import write_atomically

    try:
        write_atomically(target, text, overwrite=force)
    except FileExistsError as error:
        raise click.UsageError(f"{file} exists already; use --force to overwrite it, or give another name") from error
    except OSError as error:
        put_elsewhere("document", text, file, error)
        return STOPPED
    _tell_notes(text, file)
    tell(f"{file} was written, and it is valid. Next steps:")
    quoted = shlex.quote(file)
    _tell_next(f"pyaccount plan {quoted}       ", "shows how it will be analysed, and the cost")
    _tell_next(f"pyaccount certify {quoted}    ", "computes the certificate")
    _tell_next(
        "pyaccount schema > mechanism.v1.schema.json    ",
        "keep this file beside the document: editors complete and check by it",
    )
    return HOLDS


def _tell_next(command: str, about: str) -> None:
    """Print a command to continue with and what it is for, on two lines if one is too short."""
    line, width = f"  {command}# {about}", room(sys.stderr)
    click.echo(line if width is None or len(line) <= width else f"  # {about}\n  {command.rstrip()}", err=True)


def _tell_notes(text: str, file: str | None) -> None:
    """Print the notes on a document that was just drafted."""
    from pyaccount.document.document import Document
    from pyaccount.reading.nodes import Table
    from pyaccount.reading.reader import read_tree

    root, problems = read_tree(text, file)
    assert isinstance(root, Table)
    tell_notes(Document(root, file, problems))


def _text(given: dict[str, str], target: Path | None, interactive: bool) -> str:
    """Return the document, from the given options and from answers or defaults for the others."""
    from pyaccount.draft.interview import Back, completed, drafted, out_of_place, question_of
    from pyaccount.draft.questions import QUESTIONS, answer_to
    from pyaccount.errors import DocumentError

    answers: dict[str, str] = {}
    for name, question in QUESTIONS.items():
        if name in given:
            asked, answer = answer_to(name, _read(question, given[name], {**given, **answers}))
            answers[asked] = answer
    stem = target.stem.strip() if target is not None else ""
    answers.setdefault("name", stem if stem.isprintable() and stem else "training")
    ask = _prompt if interactive else _default_or_missing
    if interactive:
        tell(f"Enter {BACK} to return to the previous question. Ctrl-C leaves, and nothing is written.")
    while True:
        try:
            if "sampler" not in answers:
                answers["sampler"] = ask(QUESTIONS["sampler"], answers)
            if wrong := out_of_place(answers):
                raise click.UsageError("\n".join(wrong))
            complete = completed(answers, ask)
        except Back:
            if "sampler" in given or "sampler" not in answers:
                tell("This is the first question.")
            else:
                del answers["sampler"]
            continue
        # No given option may be lost: without a matrix, for example, its bands have no place.
        if wrong := out_of_place({"matrix": "identity", **complete}):
            raise click.UsageError("\n".join(wrong))
        try:
            return drafted(complete)
        except DocumentError as error:
            about = (question_of(problem, complete) for problem in error.problems)
            retry = {question.name for question in about if question is not None}
            if not interactive or not retry:
                raise click.UsageError(_as_options(error, complete)) from error
            tell(f"\nThese answers do not fit together:\n{_as_options(error, complete)}\n")
            answers = {name: answer for name, answer in complete.items() if name not in retry}


def _read(question: DraftQuestion, text: str, answers: Answers) -> str:
    """Return the checked answer. Raises a usage error that names its option."""
    try:
        return question.read(text, answers)
    except ValueError as error:
        raise click.UsageError(f"{question.flag} {text}: {error}") from error


def _default_or_missing(question: DraftQuestion, answers: Answers) -> str:
    """Return the default of a question. If it has none, raise an error that names all missing options at once."""
    from pyaccount.draft.interview import default, needed
    from pyaccount.draft.questions import QUESTIONS

    usual = default(question, answers)
    if usual is not None:
        return usual
    # The default of a later question also decides which options are missing.
    answers = {"solve": default(QUESTIONS["solve"], answers) or "", **answers}
    missing = [other for other in needed(answers) if other.name not in answers and default(other, answers) is None]
    lines = [f"  {other.flag}: {other.ask}" for other in missing]
    raise click.UsageError("\n".join(["These values have no default and are missing:", *lines]))


def _prompt(question: DraftQuestion, answers: Answers) -> str:
    """Ask on the terminal, with the allowed words and a line about each."""
    from pyaccount.draft.interview import Back, default, offered
    from pyaccount.draft.questions import meanings

    words = offered(question.name, answers) if meanings(question) else {}
    if words:
        tell(f"\n{question.ask}:")
        width = max(map(len, words))
        for number, (word, line) in enumerate(words.items(), start=1):
            tell(f"  {number:2}  {word:<{width}}  {line}", indent=_CHOICE)

    usual = default(question, answers)

    def read(text: str) -> str:
        if usual is None and not text.strip():
            raise ValueError("an answer is needed: there is no default")
        given = [one.strip() for one in text.split(",")] if question.several else [text.strip()]
        numbered = {str(number): word for number, word in enumerate(words, start=1)}
        answer = question.read(", ".join(numbered.get(one, one) for one in given), answers)
        if words and not set(answer.split(", ") if question.several else [answer]) <= set(words):
            raise ValueError(f"no analysis covers this with the other answers; choose {', '.join(words)}")
        return answer

    # The terminal would break a long line within a word, so only its last part is the prompt.
    ask = f"{'Your choice' if words else question.ask}{'' if usual is None else f' [{usual}]'}"
    *above, last = fitted(f"{ask}: ", room(sys.stderr)).split("\n")
    while True:
        for line in above:
            click.echo(line, err=True)
        # Without a default click would ask again without a message.
        default_text = "" if usual is None else usual
        text: str = click.prompt(f"{last.rstrip(': ')}", default=default_text, show_default=False, err=True)
        if text.strip().lower() == BACK:
            raise Back
        try:
            return read(text)
        except ValueError as error:
            tell(f"Error: {error}")


def _as_options(error: DocumentError, answers: Answers) -> str:
    """Return the problems in terms of the options, since there is no document in which they have a position yet."""
    from pyaccount.draft.interview import question_of

    lines = []
    for problem in error.problems:
        question = question_of(problem, answers)
        subject = problem.path_text if question is None else f"{question.flag} {answers[question.name]}"
        allowed = (
            "" if problem.allowed is None or problem.allowed in problem.message else f" (allowed: {problem.allowed})"
        )
        lines.append(f"{subject}: {problem.message}{allowed}")
    return "\n".join(lines)

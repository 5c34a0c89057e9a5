"""A whole draft: asks for every missing answer, and lets the loader check the document before it is returned."""

from __future__ import annotations

from collections.abc import Callable

from pyaccount.document import Document
from pyaccount.document.nodes import Table
from pyaccount.document.reader import read
from pyaccount.draft.interview import needed, offered
from pyaccount.draft.questions import QUESTIONS, Answers, DraftQuestion, meanings, told
from pyaccount.draft.writing import text_of
from pyaccount.errors import Problem
from pyaccount.plan import compile_document


class Back(Exception):  # noqa: N818 - an answer, no error
    """The answer that means: ask the previous question again."""


#: Asks one question, given the answers so far.
#: Raises `Back` where that is wanted.
Ask = Callable[[DraftQuestion, Answers], str]


def completed(answers: Answers, ask: Ask) -> dict[str, str]:
    """Return the answers together with those that the document still needs, which are asked for; an answer may raise further
    questions.

    Raises `Back` if that is the answer to the first question.
    """
    found = dict(answers)
    asked: list[str] = []
    while missing := _missing(found):
        words = offered(missing[0].name, found) if meanings(missing[0]) else {}
        if len(words) == 1:
            # Nothing is left to choose.
            found[missing[0].name] = next(iter(words))
            continue
        try:
            name, answer = told(missing[0].name, ask(missing[0], found))
        except Back:
            if not asked:
                raise
            # With the last answer goes what followed from it.
            last = asked.pop()
            found = {name: answer for name, answer in found.items() if name in answers or name in asked}
            found.pop(last, None)
            continue
        found[name] = answer
        asked.append(name)
    return found


def _missing(found: Answers) -> list[DraftQuestion]:
    """The questions that are still to be asked, the first of which decides what the others are."""
    if "sampler" not in found:
        return [QUESTIONS["sampler"]]
    return [question for question in needed(found) if question.name not in found]


def drafted(answers: Answers) -> str:
    """The document's text. Raises `DocumentError` if the loader or the plan refuses it."""
    text = text_of(answers)
    root, problems = read(text)
    assert isinstance(root, Table)
    compile_document(Document(root, None, problems))
    return text


def question_of(problem: Problem, answers: Answers) -> DraftQuestion | None:
    """The question whose answer a problem is about, if it was answered."""
    return next((QUESTIONS[name] for name in answers if QUESTIONS[name].path == problem.path), None)

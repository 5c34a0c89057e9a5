"""A whole draft: every answer that is missing asked for, and the document read by the loader before anybody gets it."""

from __future__ import annotations

from collections.abc import Callable

from pyaccount.document import Document
from pyaccount.document.nodes import Table
from pyaccount.document.reader import read
from pyaccount.draft.interview import needed
from pyaccount.draft.questions import QUESTIONS, Answers, DraftQuestion, told
from pyaccount.draft.writing import text_of
from pyaccount.errors import Problem
from pyaccount.plan import compile_document

#: Asks one question, given the answers so far.
Ask = Callable[[DraftQuestion, Answers], str]


def completed(answers: Answers, ask: Ask) -> dict[str, str]:
    """The answers with those that the document lacks asked for; an answer may raise further questions."""
    found = dict(answers)
    if "sampler" not in found:
        found["sampler"] = ask(QUESTIONS["sampler"], found)
    while missing := [question for question in needed(found) if question.name not in found]:
        name, answer = told(missing[0].name, ask(missing[0], found))
        found[name] = answer
    return found


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

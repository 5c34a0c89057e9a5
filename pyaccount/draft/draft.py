"""Completes the answers by asking questions, and writes the document after the loader and the plan have checked it."""

from __future__ import annotations

from collections.abc import Callable

from pyaccount.document.document import Document
from pyaccount.draft.interview import needed, offered
from pyaccount.draft.questions import QUESTIONS, Answers, DraftQuestion, answer_to, meanings
from pyaccount.draft.releases import path_in_run
from pyaccount.draft.writing import draft_text, mapping_of
from pyaccount.errors import Problem
from pyaccount.plan.compiling import compile_document
from pyaccount.reading.nodes import Table
from pyaccount.reading.reader import read_tree


class Back(Exception):  # noqa: N818 - it is an answer, not an error
    """The answer that asks for the previous question again."""


#: A function that asks one question, given the answers so far, and returns the answer. It may raise `Back`.
Ask = Callable[[DraftQuestion, Answers], str]


def completed(answers: Answers, ask: Ask) -> dict[str, str]:
    """Ask for all answers that the document still needs, and return all answers. An answer may raise further questions.

    Raises `Back` if the first question is answered so.
    """
    known = dict(answers)
    asked: list[str] = []
    while missing := _missing(known):
        words = offered(missing[0].name, known) if meanings(missing[0]) else {}
        if len(words) == 1:
            # The only choice is taken without asking.
            known[missing[0].name] = next(iter(words))
            continue
        try:
            name, answer = answer_to(missing[0].name, ask(missing[0], known))
        except Back:
            if not asked:
                raise
            # Remove the last answer, and choices that were taken without asking.
            last = asked.pop()
            known = {name: answer for name, answer in known.items() if name in answers or name in asked}
            known.pop(last, None)
            continue
        known[name] = answer
        asked.append(name)
    return known


def _missing(known: Answers) -> list[DraftQuestion]:
    """Return the questions that are still to be asked. The answer to the first may change which others follow."""
    if "sampler" not in known:
        return [QUESTIONS["sampler"]]
    return [question for question in needed(known) if question.name not in known]


def drafted(answers: Answers) -> str:
    """Return the text of the document. Raises `DocumentError` if the loader or the plan refuses it."""
    text = draft_text(answers)
    root, problems = read_tree(text)
    assert isinstance(root, Table)
    compile_document(Document(root, None, problems))
    return text


def question_of(problem: Problem, answers: Answers) -> DraftQuestion | None:
    """Return the question whose answer a problem is about, or `None` if the problem is not about an answer."""
    path = path_in_run(problem.path, mapping_of(answers))
    return next((QUESTIONS[name] for name in answers if QUESTIONS[name].path == path), None)

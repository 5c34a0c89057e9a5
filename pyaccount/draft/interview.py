"""Finds out which answers a document needs, asks for them, and writes the document after the loader and the plan have checked it.

Facts about a training run (records, batches, iterations) and targets (ε, σ) have no defaults, because a document with
invented values would describe a different run. Conventions have defaults.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from pyaccount.document.document import Document
from pyaccount.document.loading import load
from pyaccount.document.ranges import BANDS
from pyaccount.document.risk import AT_A_RATE, usual_delta
from pyaccount.document.samplers import SamplerKind
from pyaccount.document.words import ADJACENCIES
from pyaccount.draft.questions import (
    NOTHING,
    PHASE_KINDS,
    QUESTIONS,
    SAMPLER_CHOICES,
    Answers,
    DraftQuestion,
    answer_to,
    blank_of,
    has_budget,
    keys_of,
    kinds_of,
    meanings,
)
from pyaccount.draft.releases import NONE, misplaced, path_in_run, release_questions
from pyaccount.draft.writing import draft_text, mapping_of
from pyaccount.errors import DocumentError, Problem
from pyaccount.plan.compiling import compile_document, round_by_round
from pyaccount.reading.fields import listed
from pyaccount.reading.nodes import Table
from pyaccount.reading.numerals import parse_number
from pyaccount.reading.reader import read_tree


def needed(answers: Answers) -> list[DraftQuestion]:
    """Return the questions that the answers so far raise, except the one about the blank, in the order of asking."""
    sampler, blank = _sampler(answers), blank_of(answers)
    names = {"sampler", "adjacency", "solve", "noise_multiplier"}
    names |= (
        {"epsilon", "delta"}
        if not has_budget(answers)
        else set(AT_A_RATE)
        if answers.keys() & set(AT_A_RATE)
        else set()
    )
    names.add("epochs" if "epochs" in answers else "iterations")
    names |= sampler.questions(answers, blank)
    # With samplers whose rounds are usually independent, a matrix is taken but not asked about.
    unasked = answers.get("sampler") in round_by_round()
    if "matrix" in answers or (not unasked and len(offered("matrix", answers)) > 1):
        names.add("matrix")
        of_matrix = {question.name for question in QUESTIONS.values() if question.path[:1] == ("matrix",)}
        of_matrix &= set(keys_of("matrix", answers.get("matrix", "identity"))) - {"kind"}
        names |= of_matrix
        if of_matrix and sampler.spacing:
            names.add(sampler.spacing)
    names |= {"also"} | release_questions(answers)
    return [question for name, question in QUESTIONS.items() if name in names and name != blank]


def _sampler(answers: Answers) -> type[SamplerKind]:
    """Return the class of the chosen sampler, which defines its questions."""
    member = kinds_of("sampler").by_kind[answers["sampler"]]
    assert issubclass(member, SamplerKind)
    return member


def offered(name: str, answers: Answers) -> dict[str, str]:
    """Return the words that can be analysed together with the other choices, each with a description."""
    words = meanings(QUESTIONS[name])
    if name in SAMPLER_CHOICES or QUESTIONS[name].path[:1] in _PHASES:
        return words
    chosen = {key: answers[key] for key in (*SAMPLER_CHOICES, "adjacency", "solve", "matrix") if key in answers}
    return {word: line for word, line in words.items() if _analysed(tuple(sorted({**chosen, name: word}.items())))}


#: The beginnings of the paths of questions about what else is released.
_PHASES = [(name,) for name in PHASE_KINDS]


@lru_cache(maxsize=4096)
def _analysed(chosen: tuple[tuple[str, str], ...]) -> bool:
    """Return whether the plan accepts a document with these choices and trial answers to all other questions."""
    choices = dict(chosen)
    adjacencies = [choices["adjacency"]] if "adjacency" in choices else list(meanings(QUESTIONS["adjacency"]))
    return any(_compiles({"solve": "noise-multiplier", **choices, "adjacency": word}) for word in adjacencies)


def _compiles(choices: Answers) -> bool:
    # Choosing the matrix here keeps `needed` from asking which matrices are offered, which would call this function
    # again.
    answers = {"matrix": "identity", "also": NONE, **choices}
    for question in [QUESTIONS["group_size"], *needed(answers)]:
        if question.trial is not None and question.name != blank_of(answers):
            answers.setdefault(question.name, question.trial)
    try:
        compile_document(load(mapping_of({**answers, "name": "trial"})))
    except DocumentError:
        return False
    return True


def default(question: DraftQuestion, answers: Answers) -> str | None:
    """Return the default answer, or `None` if it would be an invented fact."""
    usual = _DEFAULTS.get(question.name)
    return usual(answers) if usual else None


def _matrix(answers: Answers) -> str:
    """Return a banded matrix if the sampler enforces a distance between participations, otherwise the identity."""
    usual = "banded-square-root"
    return usual if _sampler(answers).spaced and usual in offered("matrix", answers) else "identity"


def _blank(answers: Answers) -> str:
    """Return the blank: σ, ε or δ, the first of these that was not answered."""
    if has_budget(answers):
        return NOTHING if "noise_multiplier" in answers else "noise-multiplier"
    left = [name for name in ("noise_multiplier", "epsilon") if name not in answers]
    if not left:
        return NOTHING if "delta" in answers else "delta"
    return left[0].replace("_", "-")


def _usual_bands(answers: Answers) -> str | None:
    """Return the largest number of bands that the distance between participations and the run allow, or `None`."""
    sampler = _sampler(answers)
    apart = _whole(answers, sampler.spacing) if sampler.spacing else None
    if apart is None or (apart == 1 and not sampler.spaced):
        return None
    return str(min(apart, _whole(answers, "iterations") or apart, int(BANDS.maximum)))


def _usual_bins(answers: Answers) -> str | None:
    """Return the data set's size over the batch size, rounded. The document's rules report sizes that do not fit."""
    records, batch = (parse_number(answers.get(name, "")) for name in ("dataset_size", "batch_size"))
    return None if records is None or batch is None or not 0 < batch <= records else str(round(records / batch))


def _whole(answers: Answers, name: str) -> int | None:
    number = parse_number(answers.get(name, ""))
    return None if number is None else round(number)


_DEFAULTS: dict[str, Callable[[Answers], str | None]] = {
    "sampler": lambda _: "poisson",
    "solve": _blank,
    # If none can be analysed it is the first one, and the plan reports why.
    "adjacency": lambda answers: next(iter(offered("adjacency", answers)), next(iter(ADJACENCIES))),
    "matrix": _matrix,
    "group_size": lambda _: "1",
    "also": lambda _: NONE,
    "bands": _usual_bands,
    "bins": _usual_bins,
    "delta": lambda answers: usual_delta(_whole(answers, "dataset_size")),
    # A default in terms of epochs would claim that the loader uses every record once in each epoch.
    "max_participations": lambda answers: answers.get("iterations"),
    "min_separation": lambda answers: None if _sampler(answers).spaced else "1",
}


def out_of_place(answers: Answers) -> list[str]:
    """Return messages about given answers that the sampler or matrix does not use, or that contradict the blank."""
    wrong = []
    blank = blank_of(answers)
    matrices = offered("matrix", {name: answers[name] for name in SAMPLER_CHOICES if name in answers})
    if "matrix" in answers and answers["matrix"] not in matrices:
        wrong.append(
            f"--matrix {answers['matrix']}: no analysis covers this with {answers['sampler']} sampling, only "
            f"{listed(matrices)}"
        )
    for name, text in answers.items():
        question = QUESTIONS[name]
        section = str(question.path[0]) if question.path else ""
        if name == "epochs" and blank == "iterations":
            wrong.append(
                f"--epochs {text}: with --solve iterations, pyaccount computes how long training goes on; give only "
                "one of the two options"
            )
        if section in PHASE_KINDS and (reason := misplaced(name, answers)):
            wrong.append(f"{question.flag} {text}: {reason}")
        if name == blank:
            wrong.append(
                f"{question.flag} {text}: this is the value that --solve leaves blank; give only one of the two options"
            )
        if section not in ("sampler", "matrix") or section not in answers or question.path[-1] == "kind":
            continue
        if question.path[-1] not in keys_of(section, answers[section]):
            kinds = [word for word, kind in kinds_of(section).by_kind.items() if question.path[-1] in kind.model_fields]
            wrong.append(
                f"{question.flag} {text}: {answers[section]} has no {question.path[-1]}, which belongs to "
                f"{', '.join(kinds)}"
            )
    return wrong


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

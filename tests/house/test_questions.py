"""Whoever asks where a rule, a bound or a word lives finds the module by searching what the modules say of themselves."""

import ast
import functools
import math
import re
from collections import Counter
from typing import NamedTuple, Self

import pytest
from places import ROOT

PACKAGE = ROOT / "pyaccount"

#: What is asked, and the module that answers.
QUESTIONS = {
    "Which spellings of numbers and durations are accepted?": "reading.numerals",
    "Which characters look like others, as a typographic minus does?": "reading.typography",
    "Which word did a misspelt key probably mean?": "reading.spelling",
    "How many rounds is an epoch?": "document.rates",
    "In which order are problems of rules about several fields reported?": "document.rules",
    "When do equal consecutive phases become one phase?": "document.phases",
    "What is the effective multiplier of several releases of one batch?": "document.noise",
    "Why may a document not name a file in another folder?": "document.naming",
    "What is certified of batches from a shuffled data set?": "document.shuffling",
    "Which pair bounds a number with discrete Laplace noise?": "plan.mechanisms.additive",
    "Which pair bounds the exponential mechanism and permute-and-flip?": "plan.mechanisms.selections",
    "Why may the best of a random number of runs be released?": "plan.combinators.best",
    "What is the largest privacy loss, the ε at δ = 0?": "plan.rounds",
    "Why is a mechanism with less noise or larger rates no more private?": "plan.alike",
    "How large is δ if batches are seldom truncated?": "plan.rare_truncation",
    "How is a row of C⁻¹Z computed for a BLT, with a running sum for each buffer?": "training.noise.inverses.toeplitz",
    "What would happen without a fresh nonce for every release?": "training.key",
    "Which calendar has the rounds in which b-min-sep sampling draws a record?": "training.batches.b_min_sep",
    "Which proven points of a certificate become a stated mechanism?": "composing.phases",
    "For which units, groups and adjacencies does a joint guarantee exist?": "composing.joining",
    "Which entries does a Rényi filter admit?": "filters.renyi",
    "Does an amended clock free budget of a ledger?": "ledger.events",
    "How often is an attack on one run right, by guesses of canaries?": "auditing.bounds",
    "What do claims of a certificate mean for an attacker?": "certificate.meaning",
}
#: Words that most questions have, and that say nothing about their subject.
EMPTY = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be become by did do does each every for from how if in is it its large lie many may mean must of on "
        "one or others that the their them they this to was what when where which who why with without would",
    )
)
#: The endings that a search takes off a word.
ENDINGS = re.compile(r"(?<=\w{3})(?:ing|ed|es|s|e)$")


class Head(NamedTuple):
    """The words of a module's docstring, and of its first sentence."""

    all: frozenset[str]
    first: frozenset[str]

    @classmethod
    def of(cls, docstring: str) -> Self:
        return cls(frozenset(words(docstring)), frozenset(words(docstring.split("\n\n", maxsplit=1)[0])))


def words(text: str) -> list[str]:
    """Return the words of a text that are looked for, without their endings."""
    return [ENDINGS.sub("", word) for word in re.findall(r"\w[\w⁻¹-]*", text.lower()) if word not in EMPTY]


@functools.cache
def heads() -> dict[str, Head]:
    """Return what the modules of the package say of themselves."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = Head.of(docstring or "")
    return found


def ranked(question: str, heads: dict[str, Head]) -> list[tuple[float, str]]:
    """Return the modules by the words that they share with a question, best first.

    A word counts the more, the fewer modules have it, and twice in a first sentence.
    """
    common = Counter(word for head in heads.values() for word in head.all)
    weights = {word: math.log(len(heads) / common[word]) for word in set(words(question)) if common[word]}
    found = [
        (sum(weight * ((word in head.all) + (word in head.first)) for word, weight in weights.items()), name)
        for name, head in heads.items()
    ]
    return sorted(found, reverse=True)


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_finds_the_module_that_answers_it(question: str) -> None:
    (best, first), (second, _), *_ = ranked(question, heads())
    assert first == QUESTIONS[question]
    assert best > second


def test_the_questions_ask_many_rooms() -> None:
    assert len(QUESTIONS) == len(set(QUESTIONS.values())) == 24
    assert len({module.split(".")[0] for module in QUESTIONS.values()}) >= 8

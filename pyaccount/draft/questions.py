"""The questions of `pyaccount init`: where each answer stands in a document, and how it is read.

Answers are kept as they were written (`50_000`, `1e-5`), and are read by the annotation of their field.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from pyaccount.document.asking import Asked
from pyaccount.document.fields import SOLVE, FieldReader, listed
from pyaccount.document.kinds import Kinds, Section, word_of
from pyaccount.document.models import SingleDocument
from pyaccount.document.numerals import parse_scalar
from pyaccount.document.risk import AT_A_RATE, MEASURES
from pyaccount.document.shape import field_at, reader_of, union_of
from pyaccount.document.shuffling import means_shuffling, shuffled_as_options
from pyaccount.document.spelling import meant_kind, nearest_value
from pyaccount.document.typography import remark
from pyaccount.document.words import ADJACENCY_MEANINGS
from pyaccount.errors import Path

#: Answers by the name of their question, as they were spelled.
Answers = Mapping[str, str]

NOTHING = "nothing"


_EPOCHS = re.compile(r"(\S+) ?epochs?")


def told(name: str, text: str) -> tuple[str, str]:
    """The question that an answer answers, and its answer: `10 epochs` to that of iterations says how many epochs."""
    epochs = _EPOCHS.fullmatch(text) if name == "iterations" else None
    return ("epochs", epochs[1]) if epochs else (name, text)


@dataclass(frozen=True, slots=True)
class DraftQuestion:
    """A question about a value of the document; `name` is the name of its option, with underscores."""

    name: str
    path: Path
    ask: str
    #: An answer that suits a training run that every sampler and matrix can be tried with.
    trial: str | None = None
    #: The words that answer it, each with a line about it, where they are always the same.
    words: Mapping[str, str] = field(default_factory=dict)
    #: What the help of its option says, and what stands there for the answer.
    help: str = ""
    metavar: str = "N"

    @property
    def flag(self) -> str:
        """The option that answers it."""
        return f"--{self.name.replace('_', '-')}"

    def read(self, text: str, answers: Answers) -> str:
        """The answer as a document may spell it. Raises `ValueError` with what is allowed."""
        text = text.strip()
        if self.name == "iterations" and (epochs := _EPOCHS.fullmatch(text)):
            return f"{QUESTIONS['epochs'].read(epochs[1], answers)} epochs"
        words = meanings(self)
        if words:
            spelled = re.sub("[ _]+", "-", text.lower())
            if text in words or spelled in words:
                return text if text in words else spelled
            if self.name == "sampler" and means_shuffling(text):
                raise ValueError(shuffled_as_options(answers))
            kinds = kinds_of(self.name) if self.name in _KINDS else None
            if kinds is not None and (reason := kinds.reason(text)) is not None:
                raise ValueError(reason)
            near = nearest_value(text, words) if kinds is None else meant_kind(text, words, kinds.aliases)
            raise ValueError(f"must be {listed(words)}" + (f"; did you mean {near}?" if near else ""))
        if text == SOLVE:
            raise ValueError(f"must be a value; to leave it blank use --solve {self.flag[2:]}")
        reader = self._reader(answers)
        try:
            reader.read(text if self.name == "name" else parse_scalar(text))
        except PydanticCustomError as error:
            context = error.context or {}
            allowed = context["allowed"]
            near = context.get("suggestion")
            raise ValueError(
                error.message()
                + remark(text)
                + ("" if allowed in error.message() else f" (allowed: {allowed})")
                + (f"; did you mean {near}?" if near else "")
            ) from None
        return text

    def _reader(self, answers: Answers) -> FieldReader:
        """The annotation of the field that the answer is for."""
        kinds = {section: {"kind": answers.get(section)} for section in ("sampler", "matrix")}
        field = field_at(SingleDocument, self.path, {**kinds, "noise": {}})
        if field is None:
            # No key of the kinds chosen; some kind has it, and its values read alike in all of them.
            field = next(
                member.model_fields[str(self.path[-1])]
                for member in kinds_of(str(self.path[0])).members
                if self.path[-1] in member.model_fields
            )
        reader = reader_of(field)
        assert reader is not None, self.name
        return reader


_ADJACENCIES = {str(word): meaning for word, meaning in ADJACENCY_MEANINGS.items()}
#: The sections that come in kinds of which one is chosen.
_KINDS = ("sampler", "matrix")


def kinds_of(section: str) -> Kinds:
    """The kinds of a section that comes in kinds."""
    union = union_of(SingleDocument.model_fields[section])
    assert union is not None
    return union


def asked_of(field: FieldInfo) -> Asked | None:
    """The question of a kind's field, if it is asked for."""
    return next((annotation for annotation in field.metadata if isinstance(annotation, Asked)), None)


def _questions_of(section: str, *, first: bool = False) -> list[DraftQuestion]:
    """The questions of all kinds of a section. What several kinds are asked comes with the last of them."""
    found: dict[str, Asked] = {}
    askers: dict[str, list[str]] = {}
    for member in kinds_of(section).members:
        for key, info in member.model_fields.items():
            asked = asked_of(info)
            if asked is not None and asked.first is first:
                found.pop(key, None)
                found[key] = asked
                askers.setdefault(key, []).append(word_of(member))
    return [
        DraftQuestion(
            key,
            (section, key),
            asked.text,
            asked.trial,
            asked.words,
            f"{asked.text}, for {listed(askers[key])}{f' [{asked.usual}]' if asked.usual else ''}.",
            asked.metavar,
        )
        for key, asked in found.items()
    ]


#: Everything that can be asked, in the order of asking: choices first, since they decide what else is asked.
QUESTIONS = {
    question.name: question
    for question in (
        DraftQuestion(
            "name",
            ("name",),
            "Name of the mechanism",
            help="Name of the mechanism [the name of the file].",
            metavar="TEXT",
        ),
        DraftQuestion(
            "sampler",
            ("sampler", "kind"),
            "How the records of each round are drawn",
            help="How the records of each round are drawn: poisson, b-min-sep … [poisson].",
            metavar="KIND",
        ),
        *_questions_of("sampler", first=True),
        DraftQuestion(
            "adjacency",
            ("privacy", "adjacency"),
            "Which two data sets are neighbours",
            words=_ADJACENCIES,
            help="Which two data sets are neighbours: add-remove, zero-out or replace-one [add-remove].",
            metavar="WORD",
        ),
        DraftQuestion(
            "solve",
            (),
            "Which value pyaccount computes (the blank)",
            help="Which value pyaccount computes (the blank): noise-multiplier, epsilon …, or nothing [σ or ε, "
            "whichever is not given].",
            metavar="WHAT",
        ),
        DraftQuestion(
            "group_size",
            ("privacy", "group_size"),
            "Number of records that are protected together",
            "1",
            help="Number of records that are protected together [1].",
            metavar="K",
        ),
        DraftQuestion(
            "dataset_size",
            ("training", "dataset_size"),
            "Number of records in the data set",
            "10_000",
            help="Number of records in the data set.",
            metavar="N",
        ),
        DraftQuestion(
            "batch_size",
            ("training", "expected_batch_size"),
            "Number of records in a batch (expected, or drawn)",
            "100",
            help="Number of records in a batch, on all ranks and in all micro-batches of a step together: expected, "
            "or drawn.",
            metavar="B",
        ),
        DraftQuestion(
            "sampling_probability",
            ("training", "sampling_probability"),
            "Probability that an available record joins a round",
            "0.01",
            help="Probability that an available record joins a round, instead of the sizes of data set and batch.",
            metavar="P",
        ),
        DraftQuestion(
            "iterations",
            ("training", "iterations"),
            "Number of iterations (noisy steps of training), or epochs as in `10 epochs`",
            "100",
            help="Number of iterations, that is, of noisy steps of training.",
            metavar="N",
        ),
        DraftQuestion(
            "epochs",
            ("training", "epochs"),
            "Number of epochs, instead of iterations",
            help="Number of epochs, instead of iterations. In an epoch a record takes part once on average.",
            metavar="E",
        ),
        *_questions_of("sampler"),
        DraftQuestion(
            "matrix",
            ("matrix", "kind"),
            "How the noise of different rounds is correlated",
            help="How the noise of different rounds is correlated: identity, banded-square-root … [depends on the "
            "sampler].",
            metavar="KIND",
        ),
        *_questions_of("matrix"),
        DraftQuestion(
            "epsilon", ("privacy", "epsilon"), "ε of the guarantee", "4", help="ε of the guarantee.", metavar="E"
        ),
        DraftQuestion(
            "delta",
            ("privacy", "delta"),
            "δ of the guarantee",
            "1e-6",
            help="δ of the guarantee [the largest power of ten below 1/N].",
            metavar="D",
        ),
        *(
            DraftQuestion(
                name, ("privacy", "risk", name), ask, help=f"{ask}, instead of ε and δ{more}.", metavar=metavar
            )
            for name, ask, more, metavar in (
                ("advantage", "Maximum membership advantage of every attack", "", "A"),
                (
                    "true_positive_rate",
                    "Maximum true-positive rate of every attack",
                    ", at --false-positive-rate",
                    "R",
                ),
                ("false_positive_rate", "False-positive rate to which --true-positive-rate applies", "", "R"),
                ("gaussian_mu", "Maximum μ of Gaussian differential privacy", "", "MU"),
            )
        ),
        DraftQuestion(
            "noise_multiplier",
            ("noise", "multiplier"),
            "σ, the noise multiplier, in units of the clip norm",
            "1",
            help="σ, the noise multiplier, in units of the clip norm.",
            metavar="S",
        ),
    )
}

#: The questions that are answered by a word about the sampler, on which it depends what else can be analysed.
SAMPLER_CHOICES = (
    "sampler",
    *(name for name, question in QUESTIONS.items() if question.path[:1] == ("sampler",) and question.words),
)

#: What can be left blank, by the names of the questions, and what the answer then is.
BLANKS = {
    "noise_multiplier": "the smallest σ that meets ε and δ",
    "epsilon": "the smallest ε, for a given noise and δ",
    "delta": "the smallest δ, for a given noise and ε",
    "iterations": "the largest number of iterations",
    "group_size": "the largest number of records that are protected together",
    "batch_size": "the largest batch size",
    NOTHING: "no value: check whether the claim holds",
}


def blank_of(answers: Answers) -> str:
    """The name of the question that the document leaves to pyaccount."""
    return answers.get("solve", NOTHING).replace("-", "_")


def has_budget(answers: Answers) -> bool:
    """Whether a budget of risk was given, which stands instead of ε and δ."""
    return any(name in answers for name in (*MEASURES, *AT_A_RATE))


def keys_of(section: str, kind: str) -> tuple[str, ...]:
    """The keys that a section of this kind has."""
    return tuple(kinds_of(section).by_kind[kind].model_fields)


def draftable(kind: type[Section]) -> bool:
    """Whether questions ask for all that a section of this kind must say: it takes a number or two, and no list or file."""
    needed = [field for key, field in kind.model_fields.items() if field.is_required() and key != "kind"]
    return all(asked_of(field) is not None for field in needed)


def meanings(question: DraftQuestion) -> dict[str, str]:
    """The words that answer a question of choice, each with a line about it; empty for other questions."""
    if question.name == "solve":
        return {name.replace("_", "-"): text for name, text in BLANKS.items()}
    if question.name in _KINDS:
        members = [member for member in kinds_of(question.name).members if draftable(member)]
        return {word_of(member): str(member.model_fields["kind"].description) for member in members}
    return dict(question.words)

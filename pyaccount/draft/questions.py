"""What `pyaccount init` can be told: each question, where its answer stands in a document, and how it is read.

Answers are kept as they were spelled (`50_000`, `1e-5`), and read by the annotation of the field they are meant for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_args

from pydantic_core import PydanticCustomError

from pyaccount.document.fields import SOLVE, FieldReader, listed
from pyaccount.document.kinds import Section
from pyaccount.document.matrices import BLT, BandedInverse, BandedSquareRoot, Identity, OptimalToeplitz
from pyaccount.document.numerals import parse_scalar
from pyaccount.document.sections import SingleDocument
from pyaccount.document.shape import field_at, reader_of, union_of
from pyaccount.document.shuffling import means_shuffling, shuffled_as_options
from pyaccount.document.spelling import nearest_value
from pyaccount.document.words import ADJACENCY_MEANINGS
from pyaccount.errors import Path

#: Answers by the name of their question, as they were spelled.
Answers = Mapping[str, str]

#: The matrices a document can be drafted with: those that a number or two describe.
MATRICES = (Identity, BandedSquareRoot, OptimalToeplitz, BandedInverse, BLT)
NOTHING = "nothing"


_EPOCHS = re.compile(r"(\S+) ?epochs?")


def told(name: str, text: str) -> tuple[str, str]:
    """The question that an answer answers, and its answer: `10 epochs` to that of iterations says how many epochs."""
    epochs = _EPOCHS.fullmatch(text) if name == "iterations" else None
    return ("epochs", epochs[1]) if epochs else (name, text)


@dataclass(frozen=True, slots=True)
class Question:
    """Something a document says; `name` is its option's, with underscores."""

    name: str
    path: Path
    ask: str

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
            if text in words:
                return text
            if self.name == "sampler" and means_shuffling(text):
                raise ValueError(shuffled_as_options(answers))
            near = nearest_value(text, words)
            raise ValueError(f"must be {listed(words)}" + (f"; did you mean {near}?" if near else ""))
        if text == SOLVE:
            raise ValueError(f"must be a value; to leave it blank say --solve {self.flag[2:]}")
        reader = self._reader(answers)
        try:
            reader.read(text if self.name == "name" else parse_scalar(text))
        except PydanticCustomError as error:
            context = error.context or {}
            allowed = context["allowed"]
            near = context.get("suggestion")
            raise ValueError(
                error.message()
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
                for member in kinds_of(str(self.path[0]))
                if self.path[-1] in member.model_fields
            )
        reader = reader_of(field)
        assert reader is not None, self.name
        return reader


#: Everything that can be asked, in the order of asking: choices first, since they decide what else is asked.
QUESTIONS = {
    question.name: question
    for question in (
        Question("name", ("name",), "What the mechanism is called"),
        Question("sampler", ("sampler", "kind"), "How the records of each round are drawn"),
        Question("records_per_user", ("sampler", "records_per_user"), "The most records of one user"),
        Question("attribution", ("sampler", "attribution"), "Whether records belong to one user or to several"),
        Question("adjacency", ("privacy", "adjacency"), "Which two data sets are neighbours"),
        Question("solve", (), "What is to be computed"),
        Question("group_size", ("privacy", "group_size"), "How many records are protected together"),
        Question("dataset_size", ("training", "dataset_size"), "Records in the data set"),
        Question("batch_size", ("training", "expected_batch_size"), "Records in a batch, expected or drawn"),
        Question(
            "sampling_probability", ("training", "sampling_probability"), "Probability to be drawn, while available"
        ),
        Question("iterations", ("training", "iterations"), "Iterations, the noisy steps of training; or `10 epochs`"),
        Question("epochs", ("training", "epochs"), "Epochs of training, instead of iterations"),
        Question("subset_size", ("sampler", "subset_size"), "Records or draws in the subset of a round"),
        Question("bins", ("sampler", "bins"), "Batches that every record is thrown in one of"),
        Question("partitions", ("sampler", "partitions"), "Parts of the data set that take turns"),
        Question("max_participations", ("sampler", "max_participations"), "The most rounds a record takes part in"),
        Question("min_separation", ("sampler", "min_separation"), "Rounds between two participations, at least"),
        Question("matrix", ("matrix", "kind"), "How the noise of the rounds is correlated"),
        Question("bands", ("matrix", "bands"), "Bands of the matrix"),
        Question("buffers", ("matrix", "buffers"), "Buffers of the matrix"),
        Question("epsilon", ("privacy", "epsilon"), "ε of the guarantee"),
        Question("delta", ("privacy", "delta"), "δ of the guarantee"),
        Question("noise_multiplier", ("noise", "multiplier"), "σ, the noise multiplier, in units of the clip norm"),
    )
}

#: What can be left blank, by the names of the questions, and what the answer then is.
BLANKS = {
    "noise_multiplier": "the least noise that meets ε and δ",
    "epsilon": "the smallest ε, for given noise and δ",
    "delta": "the smallest δ, for given noise and ε",
    "iterations": "how long training may go on",
    "group_size": "how many records are protected together",
    "batch_size": "how large batches may be",
    NOTHING: "no value: check that a claim holds",
}


def blank_of(answers: Answers) -> str:
    """The name of the question that the document leaves to pyaccount."""
    return answers.get("solve", NOTHING).replace("-", "_")


def kinds_of(section: str) -> tuple[type[Section], ...]:
    """The kinds of a section that comes in kinds."""
    union = union_of(SingleDocument.model_fields[section])
    assert union is not None
    return union.members


def kind_word(member: type[Section]) -> str:
    """The word that a kind is called by."""
    return str(get_args(member.model_fields["kind"].annotation)[0])


def keys_of(section: str, kind: str) -> tuple[str, ...]:
    """The keys that a section of this kind has."""
    return next(tuple(member.model_fields) for member in kinds_of(section) if kind_word(member) == kind)


def meanings(question: Question) -> dict[str, str]:
    """The words that answer a question of choice, each with a line about it; empty for other questions."""
    if question.name == "solve":
        return {name.replace("_", "-"): text for name, text in BLANKS.items()}
    if question.name == "adjacency":
        return {str(word): meaning for word, meaning in ADJACENCY_MEANINGS.items()}
    if question.name in ("sampler", "matrix"):
        members = kinds_of("sampler") if question.name == "sampler" else MATRICES
        return {kind_word(member): str(member.model_fields["kind"].description) for member in members}
    if question.name == "attribution":
        return {"single": "every record belongs to one user", "shared": "records may belong to several users"}
    return {}

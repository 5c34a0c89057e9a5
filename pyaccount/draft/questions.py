"""The questions of `pyaccount init`: the path of each answer in a document, and how it is read.

Answers are kept as they were written (`50_000`, `1e-5`). The annotation of their field checks them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from pyaccount.document.models import PhasedDocument, SingleDocument
from pyaccount.document.risk import AT_A_RATE, MEASURES
from pyaccount.document.shape import field_at, reader_of, union_of
from pyaccount.document.shuffling import means_shuffling, shuffled_as_options
from pyaccount.document.words import ADJACENCIES
from pyaccount.draft.releases import COUNT_NOISES, NONE, RELEASES, SCORES, SELECTIONS
from pyaccount.errors import Path
from pyaccount.reading.fields import SOLVE, FieldReader, listed
from pyaccount.reading.kinds import Asked, Kinds, Section, word_of
from pyaccount.reading.numerals import parse_scalar
from pyaccount.reading.spelling import nearest_value
from pyaccount.reading.typography import odd_characters_note

#: The type of answers: by the name of their question, as they were written.
Answers = Mapping[str, str]

NOTHING = "nothing"


_EPOCHS = re.compile(r"(\S+) ?epochs?")


def answer_to(name: str, text: str) -> tuple[str, str]:
    """Return the name of the question that an answer belongs to, and the answer: `10 epochs` belongs to `epochs`."""
    epochs = _EPOCHS.fullmatch(text) if name == "iterations" else None
    return ("epochs", epochs[1]) if epochs else (name, text)


@dataclass(frozen=True, slots=True)
class DraftQuestion:
    """A question about a value of the document; `name` is the name of its option, with underscores."""

    name: str
    path: Path
    ask: str
    #: An answer for a training run with which every sampler and matrix can be tried.
    trial: str | None = None
    #: The words that can be answered, each with a description, if they are always the same.
    words: Mapping[str, str] = field(default_factory=dict)
    #: The help text of the option, and the placeholder for its value.
    help: str = ""
    metavar: str = "N"
    #: Whether several words can be answered, separated by commas.
    several: bool = False

    @property
    def flag(self) -> str:
        """The option with the answer, for example `--batch-size`."""
        return f"--{self.name.replace('_', '-')}"

    def read(self, text: str, answers: Answers) -> str:
        """Return the answer as it is written in a document. Raises `ValueError` with a message for the user."""
        text = text.strip()
        if self.name == "iterations" and (epochs := _EPOCHS.fullmatch(text)):
            return f"{QUESTIONS['epochs'].read(epochs[1], answers)} epochs"
        words = meanings(self)
        if self.several:
            return self._read_several(text)
        if words:
            spelled = re.sub("[ _]+", "-", text.lower())
            if text in words or spelled in words:
                return text if text in words else spelled
            if self.name == "sampler" and means_shuffling(text):
                raise ValueError(shuffled_as_options(answers))
            kinds = kinds_of(self.name) if self.name in _KINDS else None
            if kinds is not None and (reason := kinds.reason(text)) is not None:
                raise ValueError(reason)
            near = nearest_value(text, words, None if kinds is None else kinds.aliases)
            raise ValueError(f"must be {listed(words)}" + (f"; did you mean {near}?" if near else ""))
        if text == SOLVE:
            blank = f"; to leave it blank use --solve {self.flag[2:]}" if self.name in BLANKS else ""
            raise ValueError(f"must be a value{blank}")
        reader = self._reader(answers)
        try:
            reader.read(text if self.name == "name" else parse_scalar(text))
        except PydanticCustomError as error:
            context = error.context or {}
            allowed = context["allowed"]
            near = context.get("suggestion")
            raise ValueError(
                error.message()
                + odd_characters_note(text)
                + ("" if allowed in error.message() else f" (allowed: {allowed})")
                + (f"; did you mean {near}?" if near else "")
            ) from None
        return text

    def _read_several(self, text: str) -> str:
        """Return the words in the order of the list, separated by commas."""
        one = replace(self, several=False)
        given = [one.read(word, {}) for word in text.split(",")]
        if len(set(given)) < len(given):
            raise ValueError("a word is given twice: give each one once")
        if NONE in given and len(given) > 1:
            raise ValueError(f"{NONE} contradicts the other words: leave it out")
        return ", ".join(word for word in self.words if word in given)

    def _reader(self, answers: Answers) -> FieldReader:
        """Return the annotation of the field to which the answer belongs."""
        if self.path[0] in PHASE_KINDS:
            return self._reader_in_phase(answers)
        kinds = {section: {"kind": answers.get(section)} for section in ("sampler", "matrix")}
        field = field_at(SingleDocument, self.path, {**kinds, "noise": {}})
        if field is None:
            # The chosen kinds have no such key. Every kind that has it reads its values in the same way.
            field = next(
                member.model_fields[str(self.path[-1])]
                for member in kinds_of(str(self.path[0])).members
                if self.path[-1] in member.model_fields
            )
        reader = reader_of(field)
        assert reader is not None, self.name
        return reader

    def _reader_in_phase(self, answers: Answers) -> FieldReader:
        """Return the annotation of a field of another release; one that its kind does not have is read by another kind."""
        name, *inside = self.path
        kind = answers.get(*PHASE_KINDS[str(name)])
        for one in (kind, *COUNT_NOISES):
            field = field_at(PhasedDocument, ("phases", 0, *inside), {"phases": [{inside[0]: {"kind": one}}]})
            reader = None if field is None else reader_of(field)
            if reader is not None:
                return reader
        raise AssertionError(self.name)


#: The question that chooses the kind of each further release, and the kind if it is not answered.
PHASE_KINDS = {
    "selection": ("selection_kind", "exponential"),
    "tuning": ("", "geometric"),
    "score": ("", "laplace"),
    "counts": ("counts_noise", "laplace"),
    "stated": ("", "stated"),
}
#: The sections whose kind is chosen.
_KINDS = ("sampler", "matrix")


def kinds_of(section: str) -> Kinds:
    """Return the kinds of a section that comes in kinds."""
    union = union_of(SingleDocument.model_fields[section])
    assert union is not None
    return union


def _asked_of(field: FieldInfo) -> Asked | None:
    """Return the question about a kind's field, or `None` if the field is not asked for."""
    return next((annotation for annotation in field.metadata if isinstance(annotation, Asked)), None)


def _questions_of(section: str, *, first: bool = False) -> list[DraftQuestion]:
    """Return the questions of all kinds of a section. A question of several kinds is listed with the last of them."""
    questions: dict[str, Asked] = {}
    askers: dict[str, list[str]] = {}
    for member in kinds_of(section).members:
        for key, info in member.model_fields.items():
            asked = _asked_of(info)
            if asked is not None and asked.first is first:
                questions.pop(key, None)
                questions[key] = asked
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
        for key, asked in questions.items()
    ]


#: The questions, in the order of asking: choices come first, because other questions depend on them. A line has the name, the
#: path, the placeholder, the answer for trials, the question, and what its help adds to it; an indented line continues it. A line
#: with `*` stands for the questions of the kinds of a section: those that are asked right after the kind, or the others.
_TABLE = """
name | name | TEXT | | Name of the mechanism | [the name of the file]
sampler | sampler.kind | KIND | | How the records of each round are drawn |: poisson, b-min-sep … [poisson]
* sampler first
adjacency | privacy.adjacency | WORD | | Which two data sets are neighbours |: add-remove, zero-out or replace-one [add-remove]
solve | | WHAT | | Which value pyaccount computes (the blank)
  |: noise-multiplier, epsilon …, or nothing [σ or ε, whichever is not given]
group_size | privacy.group_size | K | 1 | Number of records that are protected together | [1]
dataset_size | training.dataset_size | N | 10_000 | Number of records in the data set |
batch_size | training.expected_batch_size | B | 100 | Number of records in a batch (expected, or drawn) |
sampling_probability | training.sampling_probability | P | 0.01 | Probability that an available record joins a round
  |, instead of the sizes of data set and batch
iterations | training.iterations | N | 100 | Number of iterations (noisy steps of training), or epochs as in `10 epochs` |
epochs | training.epochs | E | | Number of epochs, instead of iterations |. In an epoch a record takes part once on average
* sampler
matrix | matrix.kind | KIND | | How the noise of different rounds is correlated
  |: identity, banded-square-root … [depends on the sampler]
* matrix
epsilon | privacy.epsilon | E | 4 | ε of the guarantee |
delta | privacy.delta | D | 1e-6 | δ of the guarantee | [the largest power of ten below 1/N]
advantage | privacy.risk.advantage | A | | Maximum membership advantage of every attack |, instead of ε and δ
true_positive_rate | privacy.risk.true_positive_rate | R | | Maximum true-positive rate of every attack
  |, instead of ε and δ, at --false-positive-rate
false_positive_rate | privacy.risk.false_positive_rate | R | | False-positive rate to which --true-positive-rate applies
  |, instead of ε and δ
gaussian_mu | privacy.risk.gaussian_mu | MU | | Maximum μ of Gaussian differential privacy |, instead of ε and δ
noise_multiplier | noise.multiplier | S | 1 | σ, the noise multiplier, in units of the clip norm |
also | | WORDS | | What else is released that was computed from the same data (several: separated by commas) |
selection_kind | selection.mechanism.kind | KIND | exponential | How candidates are selected |: {words}
selection_epsilon | selection.mechanism.epsilon | E | 0.1 | ε of one selection |
selection_count | selection.count | N | 1 | Number of selections, as of words |
tuning_stopping_probability | tuning.select.stopping_probability | P | 0.1
  | Probability to stop after each run of the tuning (1/n for n runs on average) |
tuning_score | score | WORD | public | What the score of a tuning run is |: {words}
tuning_score_scale | score.mechanism.scale | B | 10
  | Scale of the Laplace noise on the score, in units of what one record changes it by |
counts_noise | counts.mechanism.kind | KIND | laplace | The noise of the counts |: {words}
counts_scale | counts.mechanism.scale | B | 10 | Scale b of the noise of each count |
counts_sigma | counts.mechanism.sigma | S | 10 | σ of the noise of each count, in counts |
counts_moved | counts.mechanism.moved | N | 1 | Number of counts that one record can change, each by at most 1 |
counts_change | counts.mechanism.sensitivity | D | 1 | Maximum change of the vector of counts by one record, in Euclidean norm
  |, with Gaussian noise
stated_epsilon | stated.mechanism.epsilon | E | 0.1 | ε that is stated of it |
stated_delta | stated.mechanism.delta | D | 1e-8 | δ that is stated with this ε (0 for pure differential privacy) |
"""
#: The words that can be answered, each with a description, and the help of questions that are too long for it.
_WORDS: dict[str, Mapping[str, str]] = {
    "adjacency": {str(word): words.meaning for word, words in ADJACENCIES.items()},
    "also": {NONE: "nothing: the training run is all that is released", **RELEASES},
    "selection_kind": SELECTIONS,
    "tuning_score": SCORES,
    "counts_noise": COUNT_NOISES,
}
_HELP = {
    "batch_size": "Number of records in a batch, on all ranks and in all micro-batches of a step together: expected, or drawn.",
    "iterations": "Number of iterations, that is, of noisy steps of training.",
    "also": f"What else is released that was computed from the same data: {listed(RELEASES)}, or several of them, separated by "
    f"commas [{NONE}].",
}


def _questions() -> Iterator[DraftQuestion]:
    """Yield all questions, in the order of asking."""
    for line in re.split(r"\n(?! )", _TABLE.strip("\n")):
        if line.startswith("*"):
            _, section, *first = line.split()
            yield from _questions_of(section, first=bool(first))
            continue
        *parts, ask, more = re.sub(r"\n +", " ", line).split(" |")
        name, path, metavar, trial = (part.strip() for part in parts)
        words = _WORDS.get(name, {})
        text = _HELP.get(name, f"{ask.strip()}{more.format(words=listed(words) if words else '')}.")
        keys = tuple(path.split(".")) if path else ()
        yield DraftQuestion(name, keys, ask.strip(), trial or None, words, text, metavar, several=name == "also")


#: All questions, by their names.
QUESTIONS = {question.name: question for question in _questions()}

#: The questions about the sampler that are answered by a word. Other choices can be analysed or not depending on them.
SAMPLER_CHOICES = (
    "sampler",
    *(name for name, question in QUESTIONS.items() if question.path[:1] == ("sampler",) and question.words),
)

#: The possible blanks, by the names of their questions, each with a description of the computed value.
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
    """Return the name of the question about the blank, or `NOTHING`."""
    return answers.get("solve", NOTHING).replace("-", "_")


def has_budget(answers: Answers) -> bool:
    """Return whether a budget of risk was given, which replaces ε and δ."""
    return any(name in answers for name in (*MEASURES, *AT_A_RATE))


def keys_of(section: str, kind: str) -> tuple[str, ...]:
    """Return the keys of a section of this kind."""
    return tuple(kinds_of(section).by_kind[kind].model_fields)


def _draftable(kind: type[Section]) -> bool:
    """Return whether there is a question for every required key of a kind; there is none for lists and files."""
    needed = [field for key, field in kind.model_fields.items() if field.is_required() and key != "kind"]
    return all(_asked_of(field) is not None for field in needed)


def meanings(question: DraftQuestion) -> dict[str, str]:
    """Return the words that can be answered, each with a description; empty if the answer is not a word."""
    if question.name == "solve":
        return {name.replace("_", "-"): text for name, text in BLANKS.items()}
    if question.name in _KINDS:
        members = [member for member in kinds_of(question.name).members if _draftable(member)]
        return {word_of(member): str(member.model_fields["kind"].description) for member in members}
    return dict(question.words)

"""Choices as a document states them: the exponential mechanism, permute-and-flip, report noisy max and randomized response."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from pyaccount.document.mechanisms.base import MechanismKind, Selection
from pyaccount.document.ranges import RESPONSES, TRUTH_PROBABILITY
from pyaccount.document.words import Adjacency
from pyaccount.reading.fields import Choice, Number
from pyaccount.rounding import positional


class Exponential(Selection):
    """The exponential mechanism: it selects a candidate with probability proportional to exp(utility / scale)."""

    aliases = "exponential-mechanism em gumbel softmax-selection"

    kind: Literal["exponential"] = Field(
        description="The exponential mechanism, which also is the report of the largest utility with Gumbel noise."
    )


class PermuteAndFlip(Selection):
    """Permute-and-flip (McKenna & Sheldon 2020): candidates in random order are accepted with probability
    exp((utility − largest utility) / scale).
    """

    aliases = "permute-flip permuteandflip pf"

    kind: Literal["permute-and-flip"] = Field(
        description="Permute-and-flip, which also is the report of the largest utility with exponential noise."
    )

    def normal_form(self, adjacency: Adjacency) -> dict[str, Any]:
        """Return the largest utility with exponential noise, which has the same output."""
        return {"kind": "noisy-max", "epsilon": positional(self.loss_range()), "noise": "exponential"}


MaxNoise = Literal["gumbel", "exponential", "laplace"]


class ReportNoisyMax(Selection):
    """Report noisy max: independent noise is added to all utilities, and only the candidate with the largest sum is
    released, not the sum itself.
    """

    aliases = "noisy-max rnm argmax report-noisy-argmax noisy-argmax"

    kind: Literal["report-noisy-max"] = Field(description="The candidate with the largest noisy utility.")
    noise: Annotated[MaxNoise, Choice(("gumbel", "exponential", "laplace"))] = Field(
        description="The law of the noise. gumbel: the exponential mechanism; exponential: permute-and-flip; laplace: "
        "Laplace noise of the scale."
    )

    def normal_form(self, adjacency: Adjacency) -> dict[str, Any]:
        """Return the range of the loss, and the noise."""
        if self.noise == "gumbel":
            return super().normal_form(adjacency)
        return {"kind": "noisy-max", "epsilon": positional(self.loss_range()), "noise": self.noise}


WhoseAnswer = Literal["each-record", "once"]

EmptyRecord = Literal["one-of-the-values", "uniform"]


class RandomizedResponse(MechanismKind):
    """Randomized response: one of k values is released, the true one or, at random, another one."""

    aliases = "rr randomised-response k-rr krr warner"
    form_fields = "answers empty_record truth_probability values"

    kind: Literal["randomized-response"] = Field(description="One of k values is released, randomised.")
    values: Annotated[int, Number(RESPONSES, whole=True)] = Field(description="The number k of values.")
    truth_probability: Annotated[float, Number(TRUTH_PROBABILITY)] = Field(
        description="The probability p that the true value is released. Each other value is released with "
        "probability (1 − p)/(k − 1). If the value is kept with probability γ and otherwise drawn from all k values, "
        "p = γ + (1 − γ)/k."
    )
    answers: Annotated[WhoseAnswer, Choice(("each-record", "once"))] = Field(
        default="each-record",
        description="Whose value is released. each-record: every record answers for itself, and all answers are released "
        "(a local randomizer). once: one value is released that is computed from all records of a run.",
    )
    empty_record: Annotated[EmptyRecord, Choice(("one-of-the-values", "uniform"))] = Field(
        default="one-of-the-values",
        description="Under zero-out, if every record answers: the answer of a record that is set to zero. "
        "one-of-the-values: its value is one of the k; uniform: it answers each value with probability 1/k.",
    )

    def for_any_data(self) -> bool:
        """Return whether one value is released: whatever the data are, it is one of the k values, randomised."""
        return self.answers == "once"

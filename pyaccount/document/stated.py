"""The statements of a body about how often a record takes part, before its sampler interprets them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pyaccount.document.sections import Training
    from pyaccount.errors import Path


class Placed(Protocol):
    """Something with a place in a document."""

    def at(self, *path: str) -> Path:
        """Return the document path of a section or key of it."""


class StatedSampler(Protocol):
    """The questions about rates that a sampler answers."""

    def rate_of(self, body: StatedBody, probability: float) -> float | None:
        """Return the participation rate at a sampling probability, or `None` if there is none or none yet."""

    def most_drawn(self, records: float) -> float:
        """Return the maximum number of records in a round, for a data set with `records` records."""

    def agreeing_rates(self, body: StatedBody) -> dict[Path, float]:
        """Return the participation rates that are stated and must agree, by the path of the statement."""


class StatedMatrix(Protocol):
    """The questions that samplers and workloads ask about a matrix."""

    @property
    def kind(self) -> object:
        """The kind of the matrix, or a choice of kinds."""

    @property
    def banded(self) -> bool:
        """Whether the number of bands of the matrix is known."""

    @property
    def optimized(self) -> bool:
        """Whether the matrix is optimised."""

    def diagonals(self) -> int | None:
        """Return the number of non-zero diagonals of the matrix, if known."""


class StatedBody(Placed, Protocol):
    """The statements of a document's body that its sampler, matrix and workload read; `tree.TrainingNode` implements it."""

    @property
    def training(self) -> Training:
        """The number of rounds, and how often a record takes part in them."""

    @property
    def sampler(self) -> StatedSampler:
        """How records are drawn."""

    @property
    def matrix(self) -> StatedMatrix:
        """How the noise of the rounds is correlated."""

    @property
    def epochs(self) -> float | None:
        """The number of epochs that the document states, if any."""


#: The fields that state a rate without other fields.
RATE_FIELDS = ("sampling_probability", "participation_rate")


def number_or_none(value: object) -> int | float | None:
    """Return the value if it is a number, and `None` if it is absent, a blank, a choice or wrong."""
    return value if isinstance(value, int | float) else None


def stated_rates(body: StatedBody) -> dict[str, float]:
    """Return the participation rates that a body states, by field; `expected_batch_size` counts with `dataset_size`."""
    training = body.training
    rates: dict[str, float] = {}
    probability, rate = number_or_none(training.sampling_probability), number_or_none(training.participation_rate)
    if probability is not None:
        converted = body.sampler.rate_of(body, probability)
        if converted is not None:
            rates["sampling_probability"] = converted
    if rate is not None:
        rates["participation_rate"] = rate
    batch, records = number_or_none(training.expected_batch_size), number_or_none(training.dataset_size)
    if batch is not None and records is not None and batch <= body.sampler.most_drawn(records):
        rates["expected_batch_size"] = batch / records
    return rates

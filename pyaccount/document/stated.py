"""What a body states about how often a record takes part, before its sampler says what that means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pyaccount.document.sections import Training
    from pyaccount.errors import Path


class StatedSampler(Protocol):
    """What a rate means for a sampler."""

    def rate_of(self, body: StatedBody, probability: float) -> float | None:
        """The participation rate that goes with a sampling probability."""

    def most_drawn(self, records: float) -> float:
        """The most records that a round can have."""


class StatedMatrix(Protocol):
    """What samplers and workloads ask of a matrix."""

    @property
    def kind(self) -> object:
        """Its kind, or a choice of kinds."""

    @property
    def banded(self) -> bool:
        """Whether it has a number of bands."""

    @property
    def optimized(self) -> bool:
        """Whether it is optimised."""

    def diagonals(self) -> int | None:
        """The number of its non-zero diagonals."""


class StatedBody(Protocol):
    """What a body of a document states, as its sampler, its matrix and its workload read it: see `views.Body`."""

    @property
    def training(self) -> Training:
        """The rounds, and how often a record takes part in them."""

    @property
    def sampler(self) -> StatedSampler:
        """How records are drawn."""

    @property
    def matrix(self) -> StatedMatrix:
        """How the noise of the rounds is correlated."""

    @property
    def epochs(self) -> float | None:
        """The epochs that the document asks for."""

    def at(self, *path: str) -> Path:
        """The document path of something in this body."""


#: The fields that state a rate by themselves.
RATE_FIELDS = ("sampling_probability", "participation_rate")


def number(value: object) -> int | float | None:
    """The value if it is a number: not absent, not a blank, not a choice, not wrong."""
    return value if isinstance(value, int | float) else None


def stated_rates(body: StatedBody) -> dict[str, float]:
    """The participation rates a body states, by the field that states them; `expected_batch_size` does with `dataset_size`."""
    training = body.training
    rates: dict[str, float] = {}
    probability, rate = number(training.sampling_probability), number(training.participation_rate)
    if probability is not None:
        converted = body.sampler.rate_of(body, probability)
        if converted is not None:
            rates["sampling_probability"] = converted
    if rate is not None:
        rates["participation_rate"] = rate
    batch, records = number(training.expected_batch_size), number(training.dataset_size)
    if batch is not None and records is not None and batch <= body.sampler.most_drawn(records):
        rates["expected_batch_size"] = batch / records
    return rates

"""How often a record takes part: the three ways to say it, and what they mean for each sampler.

The participation rate p₀ is the long-run share of rounds that a record takes part in, whatever the sampler; the
expected batch size is p₀ times the data set. The sampling probability p is what the sampler itself draws with: the same
number for Poisson and fixed-size sampling, conditional on availability for b-min-sep sampling, p₀ = 1/(b − 1 + 1/p),
and within the current part for cyclic Poisson sampling, p₀ = p/b. Balls in bins have none: p₀ = 1/T. With replacement
p₀ is the expected number of times that a record is drawn in a round, and so it is where a round has several draws: p₀ = m·p.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyaccount.document.fields import SOLVE
from pyaccount.document.stated import RATE_FIELDS, number, stated_rates
from pyaccount.document.views import Body

if TYPE_CHECKING:
    from fractions import Fraction

__all__ = [
    "RATE_FIELDS",
    "bands",
    "batch_size",
    "bins",
    "draws_per_iteration",
    "epoch",
    "expected_batch_size",
    "in_iterations",
    "number",
    "participation_rate",
    "participations",
    "sampling_probability",
    "separation",
    "stated_rates",
    "truncation",
    "user_probability",
]


def bands(body: Body) -> int | None:
    """The number of non-zero diagonals of the matrix; None while it is a choice, and for a matrix that is not banded."""
    return body.matrix.diagonals()


def separation(body: Body) -> int | None:
    """The rounds between two chances of a record: b of b-min-sep and cyclic Poisson sampling, the number of bands unless said
    otherwise; 1 for Poisson sampling. None while it is a choice, and for samplers without chances.
    """
    return body.sampler.separation(body)


def participation_rate(body: Body) -> float:
    """The long-run share of rounds that a record takes part in.

    Raises `ValueError` if the body has none: because its order is deterministic, because its users differ, or because the batch
    is still a blank.
    """
    return body.sampler.participation_rate(body)


def sampling_probability(body: Body) -> float:
    """What the sampler draws with; the participation rate for Poisson and fixed-size sampling. Raises `ValueError` as above."""
    return body.sampler.sampling_probability(body)


def draws_per_iteration(body: Body) -> int:
    """How many batches are drawn, each by itself, for the sum of one round: 1 unless the sampler says otherwise."""
    return body.sampler.draws(body) or 1


def user_probability(body: Body) -> float:
    """The probability that an available user is drawn, by at least one of the k records that it may have: 1 − (1 − p)^k."""
    return body.sampler.user_probability(body)


def participations(body: Body) -> int:
    """The largest number of rounds in which one record takes part during one run: all of them unless a deterministic order
    says otherwise. Raises `ValueError` while the number of iterations is still a blank.
    """
    iterations = body.training.iterations
    if iterations == SOLVE:
        raise ValueError("the number of iterations is still to be solved")
    return body.sampler.most_participations(iterations)


def epoch(body: Body) -> Fraction | None:
    """The rounds of an epoch, as `epochs.epoch_of` says; None where the body does not say it, or leaves it open."""
    return body.sampler.epoch(body)


def in_iterations(body: Body) -> Body:
    """The body with its epochs, if it counts in them, as iterations; as it is where these do not follow."""
    asked = number(body.training.epochs)
    if asked is None:
        return body
    from pyaccount.document.epochs import iterations_of  # few documents count in epochs

    training, length = body.training, epoch(body)
    if training.iterations is None and length is not None:
        training = training.model_copy(update={"iterations": iterations_of(asked, length)})
    # The later rooms know iterations alone.
    return replace(body, training=training.model_copy(update={"epochs": None}), epochs=asked)


def bins(body: Body) -> int:
    """T of balls in bins. Raises `ValueError` if nothing states it."""
    return body.sampler.bins_of(body)


def batch_size(body: Body) -> int:
    """The number of draws in each batch of a sampler that has a fixed one.

    Raises `ValueError` if the sampler is another one, or if the batch is still a blank.
    """
    return body.sampler.batch_size(body)


def expected_batch_size(body: Body) -> float | None:
    """The expected batch size, where the data set's size is known."""
    training = body.training
    if training.expected_batch_size is not None:
        return number(training.expected_batch_size)
    if training.dataset_size is None or not body.sampler.common_rate:
        return None
    return participation_rate(body) * training.dataset_size


def truncation(body: Body) -> int | None:
    """B of truncated batches; None where no batch of the data set can be larger, and where the size of that is not given."""
    return body.sampler.truncation(body)

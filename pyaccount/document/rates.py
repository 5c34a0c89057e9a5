"""How often a record takes part: the three ways to say it, and what they mean for each sampler.

The participation rate p₀ is the long-run share of rounds that a record takes part in, whatever the sampler; the
expected batch size is p₀ times the data set. The sampling probability p is what the sampler itself draws with: the same
number for Poisson and fixed-size sampling, conditional on availability for b-min-sep sampling, p₀ = 1/(b − 1 + 1/p),
and within the current part for cyclic Poisson sampling, p₀ = p/b. Balls in bins have none: p₀ = 1/T. With replacement
p₀ is the expected number of times that a record is drawn in a round.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from pyaccount.document.fields import SOLVE
from pyaccount.document.matrices import UNBANDED, Identity, Toeplitz
from pyaccount.document.ranges import RATE_AGREEMENT
from pyaccount.document.samplers import (
    FIXED_DRAWS,
    BallsInBins,
    BMinSep,
    CyclicPoisson,
    Deterministic,
    Poisson,
    UserBMinSep,
)
from pyaccount.document.views import Body

if TYPE_CHECKING:
    from fractions import Fraction

#: The fields that state a rate by themselves.
RATE_FIELDS = ("sampling_probability", "participation_rate")


def bands(body: Body) -> int | None:
    """The number of non-zero diagonals of the matrix; None while it is a choice, and for a matrix that is not banded."""
    matrix = body.matrix
    if isinstance(matrix, Identity):
        return 1
    if isinstance(matrix, UNBANDED):
        return None
    if isinstance(matrix, Toeplitz):
        listed = matrix.coefficients if isinstance(matrix.coefficients, tuple) else ()
        used = [k for k, c in enumerate(listed) if isinstance(c, int | float) and c != 0.0]
        return used[-1] + 1 if used else None
    # A matrix with errors has no bands to speak of.
    stated = getattr(matrix, "bands", None)
    return stated if isinstance(stated, int) else None


def separation(body: Body) -> int | None:
    """The rounds between two chances of a record: b of b-min-sep and cyclic Poisson sampling, the number of bands unless said
    otherwise; 1 for Poisson sampling. None while it is a choice, and for samplers without chances.
    """
    sampler = body.sampler
    if isinstance(sampler, BMinSep | UserBMinSep):
        b = sampler.min_separation
    elif isinstance(sampler, CyclicPoisson):
        b = sampler.partitions
    else:
        return 1 if isinstance(sampler, Poisson) else None
    return bands(body) if b is None else b if isinstance(b, int) else None


def stated_rates(body: Body) -> dict[str, float]:
    """The participation rates a body states, by the field that states them; `expected_batch_size` does with `dataset_size`."""
    training = body.training
    rates: dict[str, float] = {}
    probability, rate = number(training.sampling_probability), number(training.participation_rate)
    if probability is not None and not isinstance(body.sampler, BallsInBins):
        converted = _rate_of(body, probability)
        if converted is not None:
            rates["sampling_probability"] = converted
    if rate is not None:
        rates["participation_rate"] = rate
    batch, records = number(training.expected_batch_size), number(training.dataset_size)
    if batch is not None and records is not None and batch <= records:
        rates["expected_batch_size"] = batch / records
    return rates


def _rate_of(body: Body, probability: float) -> float | None:
    """The participation rate that goes with a sampling probability."""
    if isinstance(body.sampler, UserBMinSep):
        # It depends on how many records a user has, and who shares them.
        return None
    if isinstance(body.sampler, BMinSep | CyclicPoisson):
        b = separation(body)
        if b is None:
            return None
        return probability / b if isinstance(body.sampler, CyclicPoisson) else 1.0 / (b - 1.0 + 1.0 / probability)
    return probability


def participation_rate(body: Body) -> float:
    """The long-run share of rounds that a record takes part in.

    Raises `ValueError` if the body has none: because its order is deterministic, because its users differ, or because the batch
    is still a blank.
    """
    if isinstance(body.sampler, Deterministic):
        raise ValueError("a deterministic order has no sampling rate")
    if isinstance(body.sampler, UserBMinSep):
        raise ValueError("users with different numbers of records have no common participation rate")
    if isinstance(body.sampler, BallsInBins):
        return 1.0 / bins(body)
    if isinstance(body.sampler, FIXED_DRAWS):
        assert body.training.dataset_size is not None
        return batch_size(body) / body.training.dataset_size
    rates = stated_rates(body)
    if rates:
        # Several statements agree to rounding; the largest is safe.
        return max(rates.values())
    raise ValueError("the expected batch size is still to be solved")


def sampling_probability(body: Body) -> float:
    """What the sampler draws with; the participation rate for Poisson and fixed-size sampling. Raises `ValueError` as above."""
    stated = number(body.training.sampling_probability)
    if isinstance(body.sampler, UserBMinSep):
        assert stated is not None  # the document's rules require it
        return stated
    rate = participation_rate(body)
    if isinstance(body.sampler, BMinSep | CyclicPoisson):
        b = separation(body)
        assert b is not None  # choices are made before anything is computed
        if isinstance(body.sampler, CyclicPoisson):
            probability = rate * b
        else:
            free = 1.0 - rate * (b - 1)
            probability = rate / free if free > 0.0 else math.inf
        # A rate of 1/b means a probability of 1; rounding must not leave it below.
        converted = 1.0 if rate * b >= 1.0 - RATE_AGREEMENT else min(1.0, probability)
        if stated is None:
            return converted
        # Several statements agree to rounding; the largest is safe. One alone is not converted there and back.
        return max(stated, converted) if len(stated_rates(body)) > 1 else stated
    return rate


def user_probability(body: Body) -> float:
    """The probability that an available user is drawn, by at least one of the k records that it may have: 1 − (1 − p)^k."""
    assert isinstance(body.sampler, UserBMinSep)
    p, k = sampling_probability(body), body.sampler.records_per_user
    return 1.0 if p >= 1.0 else -math.expm1(k * math.log1p(-p))


def participations(body: Body) -> int:
    """The largest number of rounds in which one record takes part during one run: all of them unless a deterministic order
    says otherwise. Raises `ValueError` while the number of iterations is still a blank.
    """
    iterations = body.training.iterations
    if iterations == SOLVE:
        raise ValueError("the number of iterations is still to be solved")
    limits = [iterations]
    if isinstance(body.sampler, Deterministic):
        if body.sampler.max_participations is not None:
            limits.append(body.sampler.max_participations)
        if body.sampler.min_separation is not None:
            limits.append(-(-iterations // body.sampler.min_separation))
    return min(limits)


def epoch(body: Body) -> Fraction | None:
    """The rounds of an epoch, as `epochs.epoch_of` says; None where the body does not say it, or leaves it open."""
    from pyaccount.document.epochs import epoch_of  # noqa: PLC0415 - few documents count in epochs

    training = body.training
    stated = {
        "dataset_size": number(training.dataset_size),
        "expected_batch_size": number(training.expected_batch_size),
        **{field: number(getattr(training, field)) for field in RATE_FIELDS},
    }
    kind, listed = getattr(body.sampler, "kind", None), number(getattr(body.sampler, "bins", None))
    if training.expected_batch_size == SOLVE or not isinstance(kind, str):
        return None
    return epoch_of(kind, stated, bins=None if listed is None else round(listed), separation=separation(body))


def in_iterations(body: Body) -> Body:
    """The body with its epochs, if it counts in them, as iterations; as it is where these do not follow."""
    asked = number(body.training.epochs)
    if asked is None:
        return body
    from pyaccount.document.epochs import iterations_of  # noqa: PLC0415 - as above

    training, length = body.training, epoch(body)
    if training.iterations is None and length is not None:
        training = training.model_copy(update={"iterations": iterations_of(asked, length)})
    # The later rooms know iterations alone.
    return replace(body, training=training.model_copy(update={"epochs": None}), epochs=asked)


def bins(body: Body) -> int:
    """T of balls in bins. Raises `ValueError` if nothing states it."""
    sampler = body.sampler
    assert isinstance(sampler, BallsInBins)
    if sampler.bins is not None:
        return sampler.bins
    for rate in stated_rates(body).values():
        return max(1, round(1.0 / rate))
    raise ValueError("the number of bins is not given")


def batch_size(body: Body) -> int:
    """The number of draws in each batch of a sampler that has a fixed one.

    Raises `ValueError` if the sampler is another one, or if the batch is still a blank.
    """
    records = body.training.dataset_size
    if not isinstance(body.sampler, FIXED_DRAWS) or records is None:
        raise ValueError("this sampler has no fixed batch size")
    batch = number(body.training.expected_batch_size)
    if batch is not None:
        return round(batch)
    for rate in stated_rates(body).values():
        return round(rate * records)
    raise ValueError("the batch size is still to be solved")


def expected_batch_size(body: Body) -> float | None:
    """The expected batch size, where the data set's size is known."""
    training = body.training
    if training.expected_batch_size is not None:
        return number(training.expected_batch_size)
    if training.dataset_size is None or isinstance(body.sampler, Deterministic | UserBMinSep):
        return None
    return participation_rate(body) * training.dataset_size


def truncation(body: Body) -> int | None:
    """B of truncated batches; None where no batch of the data set can be larger, and where the size of that is not given."""
    limit, records = getattr(body.sampler, "truncate_to", None), body.training.dataset_size
    return limit if isinstance(limit, int) and isinstance(records, int) and limit < records else None


def number(value: object) -> int | float | None:
    """The value if it is a number: not absent, not a blank, not a choice, not wrong."""
    return value if isinstance(value, int | float) else None

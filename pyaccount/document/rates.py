"""The sampling rate and batch size that a body states, in whichever of the allowed ways."""

from __future__ import annotations

from pyaccount.document.samplers import Deterministic, FixedSize
from pyaccount.document.sections import Training
from pyaccount.document.views import Body

#: The fields that state a rate by themselves. For the samplers of this version both mean the same number.
RATE_FIELDS = ("sampling_probability", "participation_rate")


def stated_rates(training: Training) -> dict[str, float]:
    """The rates a body states, by the field that states them; `expected_batch_size` does with `dataset_size`."""
    rates = {field: rate for field in RATE_FIELDS if (rate := number(getattr(training, field))) is not None}
    batch, records = number(training.expected_batch_size), number(training.dataset_size)
    if batch is not None and records is not None and batch <= records:
        rates["expected_batch_size"] = batch / records
    return rates


def sampling_rate(body: Body) -> float:
    """The probability with which a record joins a round.

    For Poisson sampling this is the sampling probability, for fixed-size sampling the batch over the data set. Raises
    `ValueError` if the body has no rate: because its order is deterministic, or because the batch is still a blank.
    """
    if isinstance(body.sampler, Deterministic):
        raise ValueError("a deterministic order has no sampling rate")
    if isinstance(body.sampler, FixedSize):
        assert body.training.dataset_size is not None
        return batch_size(body) / body.training.dataset_size
    rates = stated_rates(body.training)
    if rates:
        # Several statements agree to rounding; the largest is safe.
        return max(rates.values())
    raise ValueError("the expected batch size is still to be solved")


def batch_size(body: Body) -> int:
    """The number of records in each batch of fixed-size sampling.

    Raises `ValueError` if the sampler is another one, or if the batch is still a blank.
    """
    records = body.training.dataset_size
    if not isinstance(body.sampler, FixedSize) or records is None:
        raise ValueError("only fixed-size sampling has a fixed batch size")
    for field, rate in stated_rates(body.training).items():
        batch = number(body.training.expected_batch_size) if field == "expected_batch_size" else None
        return round(rate * records if batch is None else batch)
    raise ValueError("the batch size is still to be solved")


def number(value: object) -> int | float | None:
    """The value if it is a number: not absent, not a blank, not wrong."""
    return value if isinstance(value, int | float) else None

"""What a body states about how often a record takes part, before its sampler says what that means."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyaccount.document.views import Body

#: The fields that state a rate by themselves.
RATE_FIELDS = ("sampling_probability", "participation_rate")


def number(value: object) -> int | float | None:
    """The value if it is a number: not absent, not a blank, not a choice, not wrong."""
    return value if isinstance(value, int | float) else None


def stated_rates(body: Body) -> dict[str, float]:
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

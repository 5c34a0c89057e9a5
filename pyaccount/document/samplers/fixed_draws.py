"""Samplers with a fixed number of draws in each batch, `training.expected_batch_size`: without replacement, and with it.

Their base classes serve MUST too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Literal

from pydantic import Field

from pyaccount.document.ranges import DRAWS, RATE_AGREEMENT
from pyaccount.document.samplers.base import SamplerKind
from pyaccount.document.stated import RATE_FIELDS, StatedBody, number_or_none, stated_rates
from pyaccount.errors import Problem, problem

# The maximum distance between a rate times the data set's size and a whole number, whatever that size, and the relative
# rounding error of the product, which is added to it.
_WHOLE, _ROUNDING = 1e-3, 1e-15


class FixedDraws(SamplerKind):
    """A sampler that draws the same number of times in every round."""

    fixed_draws = True
    single_draw = True
    one_probability = (
        "a batch has a fixed number of draws, so with weights the chance of a record depends on the weights of all other "
        "records, and the largest one is not a bound: for one draw with σ = 0.5 and a largest chance of 0.01, δ(1) is 6.7e-3, "
        "and 2.7e-4 if records were drawn independently. Write one number, or draw every record independently of the others "
        "(kind: poisson)"
    )

    def participation_rate(self, body: StatedBody) -> float:
        """Return the expected number of times that a record is drawn in a round."""
        assert body.training.dataset_size is not None
        return self.batch_size(body) / body.training.dataset_size

    def batch_size(self, body: StatedBody) -> int:
        """Return the number of draws, as given or derived from a rate. Raises `ValueError` if it is unknown."""
        records = body.training.dataset_size
        if records is None:
            return super().batch_size(body)
        batch = number_or_none(body.training.expected_batch_size)
        if batch is not None:
            return round(batch)
        for rate in stated_rates(body).values():
            return round(rate * records)
        raise ValueError("the batch size is still to be solved")

    def rate_missing(self, body: StatedBody) -> Iterator[Problem]:
        """Report a missing number of draws."""
        message = f"{self.kind} sampling needs the size of its batches: give expected_batch_size"
        yield problem("missing-key", body.at("training", "expected_batch_size"), message)

    def dataset_reason(self, body: StatedBody) -> str | None:
        """Return why the number of records must be known: the batch is drawn from them."""
        return (
            f"{self.kind} sampling draws from a known number of records; under add-remove give a public lower bound on that of "
            "the larger data set"
        )

    def batch_problems(self, body: StatedBody) -> Iterator[Problem]:
        """Report a batch that is larger than the data set, or that is not a positive whole number of draws."""
        yield from super().batch_problems(body)
        yield from self.whole_draws(body)

    def whole_draws(self, body: StatedBody) -> Iterator[Problem]:
        """Report a number of draws that is not a positive whole number."""
        training = body.training
        records = number_or_none(training.dataset_size)
        what = f"{self.kind} sampling draws a whole number of records"
        batch = number_or_none(training.expected_batch_size)
        if batch is not None:
            if batch != round(batch):
                below = max(1, math.floor(batch))
                path, allowed = body.at("training", "expected_batch_size"), f"{below} or {below + 1}"
                yield problem("fractional-batch", path, what, allowed=allowed)
            return
        if records is None or training.expected_batch_size is not None:
            return
        for field, rate in stated_rates(body).items():
            drawn = rate * records
            error = abs(drawn - round(drawn))
            if round(drawn) == 0 or error > min(RATE_AGREEMENT * records, _WHOLE + _ROUNDING * drawn):
                message = (
                    f"{what}, at least one, but this share of {records:_} records is {drawn:.10g}; "
                    "give expected_batch_size instead"
                )
                yield problem("fractional-batch", body.at("training", field), message)

    def one_round(self, body: StatedBody, probability: Any) -> dict[str, Any] | None:
        """Return the sizes of the data set and of a batch."""
        return {"kind": self.kind, "records": str(body.training.dataset_size), "size": str(self.batch_size(body))}


class Repeating(FixedDraws):
    """A sampler that may draw a record several times in a round, so that a batch may be larger than the data set."""

    def batch_problems(self, body: StatedBody) -> Iterator[Problem]:
        """Report draws that are not whole, are stated by a rate, or are too many to be analysed."""
        yield from self.whole_draws(body)
        for field in RATE_FIELDS:
            if number_or_none(getattr(body.training, field)) is not None:
                message = (
                    f"{self.kind} may draw a record several times, so a rate does not determine the number of draws"
                )
                path = body.at("training", field)
                yield problem("contradiction", path, message, allowed="expected_batch_size")
        batch = number_or_none(body.training.expected_batch_size)
        if batch is not None and batch not in DRAWS and batch == round(batch):
            message = f"the number of draws with replacement must be {DRAWS.describe()}"
            path = body.at("training", "expected_batch_size")
            yield problem("out-of-range", path, message, allowed=DRAWS.describe())


class FixedSize(FixedDraws):
    """Sampling without replacement: each round draws a uniformly random batch of a fixed number of records.

    The size of the batch is `training.expected_batch_size`, out of `training.dataset_size` records.
    """

    aliases = "uniform-without-replacement sampled-without-replacement"

    kind: Literal["fixed-size"] = Field(description="Each round draws a uniformly random batch of a fixed size.")


class WithReplacement(Repeating):
    """Sampling with replacement: each round makes a fixed number of independent, uniformly random draws.

    A record may be drawn several times, and then it counts as many times. The number of draws is
    `training.expected_batch_size`, out of `training.dataset_size` records.
    """

    aliases = "wr replacement sampled-with-replacement"

    kind: Literal["with-replacement"] = Field(
        description="Each round draws records independently and uniformly, some of them several times."
    )

"""What samplers have in common whose batches have a fixed number of draws: `training.expected_batch_size`."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from pyaccount.document.ranges import DRAWS, RATE_AGREEMENT
from pyaccount.document.samplers.base import SamplerKind
from pyaccount.document.stated import RATE_FIELDS, number, stated_rates
from pyaccount.errors import Problem

if TYPE_CHECKING:
    from pyaccount.document.stated import StatedBody
    from pyaccount.document.written import Written

# The most by which a rate times the data set may miss a whole number, whatever the data set's size, and what the
# rounding of the product adds to it.
_WHOLE, _ROUNDING = 1e-3, 1e-15


class FixedDraws(SamplerKind):
    """A sampler that draws the same number of times in every round."""

    fixed_draws = True
    single_draw = True

    def participation_rate(self, body: StatedBody) -> float:
        """The expected number of times that a record is drawn in a round."""
        assert body.training.dataset_size is not None
        return self.batch_size(body) / body.training.dataset_size

    def batch_size(self, body: StatedBody) -> int:
        """The number of draws, given or by a rate."""
        records = body.training.dataset_size
        if records is None:
            return super().batch_size(body)
        batch = number(body.training.expected_batch_size)
        if batch is not None:
            return round(batch)
        for rate in stated_rates(body).values():
            return round(rate * records)
        raise ValueError("the batch size is still to be solved")

    def rate_missing(self, document: Written, body: StatedBody) -> Iterator[Problem]:
        """The number of draws says most."""
        message = f"{self.kind} sampling needs the size of its batches: give expected_batch_size"
        yield document.problem("missing-key", body.at("training", "expected_batch_size"), message)

    def dataset_reason(self, document: Written, body: StatedBody) -> str | None:
        """The records are drawn from, however much is said of the batch."""
        reason = f"{self.kind} sampling draws from a known number of records"
        privacy = getattr(document, "privacy", None)
        if privacy is not None and privacy.adjacency == "add-remove":
            reason += "; under add-remove give a public lower bound on that of the larger data set"
        return reason

    def batch_problems(self, document: Written, body: StatedBody) -> Iterator[Problem]:
        """No batch has more records than there are, and it has a whole number of draws, at least one."""
        yield from super().batch_problems(document, body)
        yield from self.whole_draws(document, body)

    def whole_draws(self, document: Written, body: StatedBody) -> Iterator[Problem]:
        """A fixed number of draws is a whole number, at least one."""
        training = body.training
        records = number(training.dataset_size)
        what = f"{self.kind} sampling draws a whole number of records"
        batch = number(training.expected_batch_size)
        if batch is not None:
            if batch != round(batch):
                below = max(1, math.floor(batch))
                path, allowed = body.at("training", "expected_batch_size"), f"{below} or {below + 1}"
                yield document.problem("fractional-batch", path, what, allowed=allowed)
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
                yield document.problem("fractional-batch", body.at("training", field), message)

    @classmethod
    def questions(cls, answers: Collection[str], blank: str) -> set[str]:
        """The sizes of batch and data set: no probability says as much."""
        return {*cls.required(), "dataset_size", "batch_size"}


class Repeating(FixedDraws):
    """A sampler that may draw a record several times in a round, so that a batch may be larger than the data set."""

    def batch_problems(self, document: Written, body: StatedBody) -> Iterator[Problem]:
        """The draws are a whole number, given as such and not too large to be analysed."""
        yield from self.whole_draws(document, body)
        for field in RATE_FIELDS:
            if number(getattr(body.training, field)) is not None:
                message = (
                    f"{self.kind} may draw a record several times, so no probability or rate says how many it draws"
                )
                path = body.at("training", field)
                yield document.problem("contradiction", path, message, allowed="expected_batch_size")
        batch = number(body.training.expected_batch_size)
        if batch is not None and batch not in DRAWS and batch == round(batch):
            message = f"the number of draws with replacement must be {DRAWS.describe()}"
            path = body.at("training", "expected_batch_size")
            yield document.problem("out-of-range", path, message, allowed=DRAWS.describe())

"""Balls in bins."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import Field

from pyaccount.document.ranges import BINS, RATE_AGREEMENT
from pyaccount.document.rates import bins_that_fit
from pyaccount.document.samplers.base import Truncatable
from pyaccount.document.samplers.spaced import CHOSEN
from pyaccount.document.stated import StatedBody, number_or_none, stated_rates
from pyaccount.errors import Path, Problem, problem
from pyaccount.reading.fields import SOLVE, Choose, Number
from pyaccount.reading.kinds import AlsoCalled, Asked


class BallsInBins(Truncatable):
    """Balls in bins: each record is put into one of T bins at random, once for the whole run. Round i uses bin i mod T."""

    aliases = "bnb ballsinbins balls-bins balls-and-bins"
    spacing = "bins"
    spaced = True
    # The sampler has no sampling probability; the number of bins determines everything.
    rate_follows = False
    asked_rate = ""

    kind: Literal["balls-in-bins"] = Field(
        description="Each record is put into one of T batches at random; the batches are used in turn."
    )
    bins: Annotated[
        int | Choose | None,
        Number(BINS, whole=True, choose=True),
        Asked("Number of bins into which the records are put at random", trial="100", metavar="T"),
        AlsoCalled("cycle_length num_bins epoch_length"),
    ] = Field(
        default=None,
        description="The number T of bins, which are the batches. Default: 1/participation_rate, which must be a "
        f"whole number.{CHOSEN}",
    )

    def participation_rate(self, body: StatedBody) -> float:
        """Return 1/T."""
        return 1.0 / self.bins_of(body)

    def usual_pattern(self, body: StatedBody, iterations: int) -> tuple[int, int]:
        """Return a distance of T rounds, and how often each bin is used at most."""
        apart = self.bins_of(body)
        return apart, -(-iterations // apart)

    def bins_of(self, body: StatedBody) -> int:
        """Return T, as given or derived from a rate. Raises `ValueError` if it is a choice or unknown."""
        if isinstance(self.bins, Choose):
            raise ValueError("the number of bins is still to be chosen")
        if self.bins is not None:
            return self.bins
        for rate in stated_rates(body).values():
            return max(1, round(1.0 / rate))
        raise ValueError("the number of bins is not given")

    def epoch(self, body: StatedBody) -> Fraction | None:
        """Return T, the rounds in which each bin is used once."""
        listed, length = number_or_none(self.bins), super().epoch(body)
        if listed is not None and body.training.expected_batch_size != SOLVE:
            return Fraction(round(listed))
        return None if length is None else Fraction(max(1, round(length)))

    def problems(self, body: StatedBody) -> Iterator[Problem]:
        """Yield the problems of the number of bins first, since it determines most, then the others."""
        yield from self.bin_problems(body)
        yield from super().problems(body)

    def bin_problems(self, body: StatedBody) -> Iterator[Problem]:
        """Report rates other than 1/T, more bins than rounds, T out of range, and a sampling probability."""
        if number_or_none(body.training.sampling_probability) is not None:
            message = "balls in bins have no sampling probability: give sampler.bins, participation_rate or expected_batch_size"
            yield problem("contradiction", body.at("training", "sampling_probability"), message)
        rates, rounds = stated_rates(body), number_or_none(body.training.iterations)
        for field, rate in rates.items():
            whole = max(1, round(1.0 / rate))
            count = whole if self.bins is None else number_or_none(self.bins)
            if count is not None and not math.isclose(rate * count, 1.0, rel_tol=RATE_AGREEMENT):
                message = self._unfit(body, field, rate, count)
                records = number_or_none(body.training.dataset_size)
                allowed = bins_that_fit(field, rate, number_or_none(self.bins), records, rounds)  # type: ignore[arg-type]
                yield problem("infeasible-rate", body.at("training", field), message, allowed=allowed)
        counts: dict[Path, int | float | None] = {}
        if self.bins is not None:
            counts[body.at("sampler", "bins")] = number_or_none(self.bins)
        else:
            counts |= {body.at("training", field): max(1, round(1.0 / rate)) for field, rate in rates.items()}
        for path, count in counts.items():
            if count is not None and rounds is not None and count > rounds:
                message = f"there are {count} bins, but only {rounds:_} iterations: some bins would never be used"
                yield problem("contradiction", path, message, allowed=f"at most {rounds}")
            elif count is not None and count not in BINS:
                message = f"this makes {count} bins; their number must be {BINS.describe()}"
                yield problem("out-of-range", path, message)

    def _unfit(self, body: StatedBody, field: str, rate: float, count: float) -> str:
        """Return a message on why a rate does not fit `count` bins."""
        if field == "expected_batch_size":
            batch, records = (
                number_or_none(body.training.expected_batch_size),
                number_or_none(body.training.dataset_size),
            )
            assert batch is not None
            assert records is not None
            if self.bins is not None:
                return f"{count} bins of {records:_} records make an expected batch of {records / count:.6g}, not of {batch:.6g}"
            return (
                f"{records:_} records in batches of {batch:.6g} are {1.0 / rate:.10g} bins, but their number must be "
                "whole: give a whole number of bins, and leave the size out, which follows from it"
            )
        if self.bins is not None:
            return f"this is a participation rate of {rate:.10g}, but with {count} bins it is 1/{count} = {1.0 / count:.6g}"
        return f"the participation rate is 1 over a whole number of bins, but this is 1/{1.0 / rate:.10g}"

    def rate_missing(self, body: StatedBody) -> Iterator[Problem]:
        """Report a missing rate, unless the number of bins is given."""
        if self.bins is None:
            message = (
                "balls in bins need their number: give sampler.bins, participation_rate, or expected_batch_size together with "
                "dataset_size"
            )
            yield problem("missing-key", body.at("sampler", "bins"), message)

    def rate_is_stated(self, body: StatedBody) -> bool:
        """Return whether the number of bins or a rate is given."""
        return self.bins is not None or super().rate_is_stated(body)

    def fixing_batch(self, body: StatedBody) -> Iterator[Path]:
        """Yield also the path of the number of bins."""
        yield from super().fixing_batch(body)
        if number_or_none(self.bins) is not None:
            yield body.at("sampler", "bins")

    def epoch_problems(self, body: StatedBody) -> Iterator[Problem]:
        """Report epochs while the number of bins is still a choice."""
        if isinstance(self.bins, Choose):
            message = "how many iterations this is depends on the bins that are chosen: give iterations instead"
            path = body.at("training", "epochs")
            yield problem("contradiction", path, message, allowed="iterations instead")

    def pattern(self, body: StatedBody, probability: Any) -> dict[str, Any] | None:
        """Return the number of bins; None for truncated batches."""
        return {"kind": "bins", "bins": str(self.bins_of(body))} if self.truncation(body) is None else None

"""Poisson sampling and cyclic Poisson sampling in documents: each record is drawn with a probability, of all or of one part."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import Field

from pyaccount.document.ranges import DRAWS_PER_ITERATION, PARTITIONS
from pyaccount.document.samplers.base import Truncatable
from pyaccount.document.samplers.spaced import CHOSEN, SpacedByRate
from pyaccount.document.stated import StatedBody, number_or_none, stated_rates
from pyaccount.reading.fields import Choice, Choose, Number
from pyaccount.reading.kinds import Asked


class Poisson(Truncatable):
    """Poisson sampling: each record joins each round independently, with the sampling probability.

    The rate is given under `training`. The participation rate is the sampling probability, or `draws_per_iteration` times the
    sampling probability.
    """

    aliases = "bernoulli poisson-sampling poisson-subsampling"
    single_draw = True
    one_probability = ""
    called = "Poisson"

    kind: Literal["poisson"] = Field(description="Each record joins each round independently.")
    draws_per_iteration: Annotated[int, Number(DRAWS_PER_ITERATION, whole=True)] = Field(
        default=1,
        description="The number m of batches that are drawn for one iteration, each independently, as in gradient "
        "accumulation with newly drawn micro-batches. Noise is added once, to their sum, and a record is drawn "
        "Bin(m, p) times. sampling_probability is then the probability in one draw, expected_batch_size is the "
        "expected number of records of all m draws together, and participation_rate is m times the probability.",
    )

    def separation(self, body: StatedBody) -> int | None:
        """Return 1: a record has a chance in every round."""
        return 1

    def pattern(self, body: StatedBody, probability: Any) -> dict[str, Any] | None:
        """Return b-min-sep sampling with a separation of 1, which this is; None for several draws and truncated batches."""
        if self.truncation(body) is not None or self.draws(body) != 1:
            return None
        return {"kind": "spaced", "probability": probability, "separation": "1", "start": "cold"}

    def draws(self, body: StatedBody) -> int | None:
        """Return `draws_per_iteration`; None if it was reported as wrong."""
        stated = number_or_none(self.draws_per_iteration)
        return None if stated is None else int(stated)

    def most_drawn(self, records: float) -> float:
        """Return the number of records times the number of draws; infinity if the latter was reported as wrong."""
        stated = number_or_none(self.draws_per_iteration)
        return math.inf if stated is None else records * stated

    def rate_of(self, body: StatedBody, probability: float) -> float | None:
        """Return m·p, the expected number of times that a record is drawn in a round."""
        draws = self.draws(body)
        return None if draws is None else draws * probability

    def sampling_probability(self, body: StatedBody) -> float:
        """Return the probability of one draw, as stated or as the quotient of stated sizes, without other rounding."""
        draws, training = self.draws(body) or 1, body.training
        if draws == 1:
            return self.participation_rate(body)
        stated = []
        for field, rate in stated_rates(body).items():
            if field == "sampling_probability":
                stated.append(number_or_none(training.sampling_probability) or 0.0)
            elif field == "expected_batch_size":
                stated.append(
                    (number_or_none(training.expected_batch_size) or 0.0) / (draws * (training.dataset_size or 1))
                )
            else:
                stated.append(rate / draws)
        if not stated:
            raise ValueError("the expected batch size is still to be solved")
        # Several statements agree up to rounding; the largest one is the conservative choice.
        return max(stated)

    def on_epochs(self, body: StatedBody, epoch: Fraction, iterations: int) -> str | None:
        """Return the note on rounding, and for epochs that are not a whole number of rounds what a loader would do."""
        note = super().on_epochs(body, epoch, iterations)
        if note is None or epoch.denominator == 1 or self.draws(body) != 1:
            return note
        batches = math.ceil(epoch)
        return (
            f"{note}. A loader of {batches:_} batches an epoch (as Opacus's, which then draws with probability 1/{batches:_}) "
            f"makes {math.ceil((body.epochs or 0.0) * batches):_} steps: give these as iterations, with its sampling_probability"
        )

    def one_round(self, body: StatedBody, probability: Any) -> dict[str, Any]:
        """Return that a record is drawn with a probability, several times or for a truncated batch."""
        limit = self.truncation(body)
        if limit is None:
            return {"kind": "poisson", "draws": str(self.draws(body)), "probability": probability}
        records = str(body.training.dataset_size)
        return {"kind": "truncated-poisson", "probability": probability, "records": records, "size": str(limit)}


class CyclicPoisson(SpacedByRate):
    """Cyclic Poisson sampling: the data set is divided into b parts, by a rule that does not depend on the contents of the
    records. In round i each record of part i mod b joins independently, with the sampling probability.

    The participation rate is the sampling probability divided by b.
    """

    aliases = "cyclicpoisson"
    drawn = "within the current part"
    one_probability = ""
    spacing = "partitions"
    spacing_called = "partitions"

    kind: Literal["cyclic-poisson"] = Field(description="Poisson sampling from b fixed parts, which are used in turn.")
    partitions: Annotated[
        int | Choose | None,
        Number(PARTITIONS, whole=True, choose=True),
        Asked("Number of parts of the data set, which are used in turn", trial="8", metavar="B"),
    ] = Field(default=None, description=f"The number b of parts. Default: the number of bands of the matrix.{CHOSEN}")
    phase: Annotated[Literal["fixed", "random"], Choice(("fixed", "random"))] = Field(
        default="fixed",
        description="Whether the part of each record is fixed and may be known (fixed), or is drawn at random for "
        "this run, independently of the other records, and is secret (random).",
    )

    def between_chances(self, body: StatedBody, chances: Fraction) -> Fraction | None:
        """Return b/p: a record may be drawn in every b-th round."""
        b = self.separation(body)
        return None if b is None else b * chances

    def rate_at(self, probability: float, separation: int) -> float:
        """Return p/b: the part of a record is used in every b-th round."""
        return probability / separation

    def probability_at(self, rate: float, separation: int) -> float:
        """Return p = b·p₀."""
        return rate * separation

    def pattern(self, body: StatedBody, probability: Any) -> dict[str, Any] | None:
        """Return the number of parts, and the probability within a part; None for truncated batches."""
        if self.truncation(body) is not None:
            return None
        return {"kind": "cyclic", "parts": str(self.separation(body)), "phase": self.phase, "probability": probability}

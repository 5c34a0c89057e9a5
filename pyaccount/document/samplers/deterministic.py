"""No sampling."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import Field

from pyaccount.document.ranges import PARTICIPATIONS
from pyaccount.document.rates import exactly
from pyaccount.document.samplers.base import SamplerKind
from pyaccount.document.samplers.spaced import GivenSeparation
from pyaccount.document.stated import RATE_FIELDS, StatedBody, number_or_none
from pyaccount.errors import Path, Problem, problem
from pyaccount.reading.fields import SOLVE, Number
from pyaccount.reading.kinds import AlsoCalled, Asked


class Deterministic(SamplerKind):
    """No sampling: the order in which records take part is not secret, so there is no amplification."""

    aliases = "deterministic sequential no-sampling in-order"
    common_rate = False
    #: The separation is asked for only if it matters because of a matrix.
    spacing = "min_separation"

    kind: Literal["none"] = Field(description="A fixed order, or shuffled epochs; no amplification by sampling.")
    max_participations: Annotated[
        int | None,
        Number(PARTICIPATIONS, whole=True),
        Asked("Maximum number of rounds in which a record takes part", trial="10", usual="all", metavar="M"),
        AlsoCalled("participations num_participations"),
    ] = Field(
        default=None,
        description="The maximum number of rounds in which a record takes part. If the records are shuffled in each "
        "epoch and cut into batches: the number of epochs. Default: all rounds.",
    )
    min_separation: GivenSeparation = Field(
        default=None, description="The minimum distance between two participations of a record, in rounds. Default: 1."
    )

    def participation_rate(self, body: StatedBody) -> float:
        """Raise `ValueError`: a deterministic order has no sampling rate."""
        raise ValueError("a deterministic order has no sampling rate")

    @property
    def least_distance(self) -> int:
        """The stated distance; 1 if there is none."""
        return self.min_separation or 1

    def usual_pattern(self, body: StatedBody, iterations: int) -> tuple[int, int]:
        """Return the minimum separation and the maximum number of participations."""
        apart = self.min_separation or 1
        return apart, self.most_participations(iterations)

    def most_participations(self, iterations: int) -> int:
        """Return the maximum number of participations that the stated limits allow; all rounds without limits."""
        limits = [iterations]
        if self.max_participations is not None:
            limits.append(self.max_participations)
        if self.min_separation is not None:
            limits.append(-(-iterations // self.min_separation))
        return min(limits)

    def without_limits(self) -> SamplerKind:
        """Return an order in which a record may take part in every round."""
        return self.model_copy(update={"max_participations": None, "min_separation": None})

    def problems(self, body: StatedBody) -> Iterator[Problem]:
        """Report also rates, and more participations than rounds."""
        yield from super().problems(body)
        for field in RATE_FIELDS:
            if number_or_none(getattr(body.training, field)) is not None:
                what = field.replace("_", " ")
                message = f"a deterministic order has no {what}: leave it out, or name the sampler that draws with it"
                yield problem("contradiction", body.at("training", field), message)
        most, rounds = number_or_none(self.max_participations), number_or_none(body.training.iterations)
        if most is not None and rounds is not None and most > rounds:
            message = f"no record can take part more often than there are rounds, which are {rounds:_}"
            yield problem("contradiction", body.at("sampler", "max_participations"), message)

    def agreeing_rates(self, body: StatedBody) -> dict[Path, float]:
        """Return nothing: a deterministic order has no rate."""
        return {}

    def draw_problems(self, body: StatedBody) -> Iterator[Problem]:
        """Report only batches that are larger than the data set: they matter only to epochs."""
        yield from self.batch_problems(body)

    def blank_batch_problems(self, body: StatedBody) -> Iterator[Problem]:
        """Report a batch size that is to be solved: the guarantee does not depend on it."""
        if body.training.expected_batch_size == SOLVE:
            message = "a deterministic order has no batch size to solve for: the guarantee does not depend on it"
            yield problem("contradiction", body.at("training", "expected_batch_size"), message)

    def epoch(self, body: StatedBody) -> Fraction | None:
        """Return ⌈N/B⌉: the records are divided into batches, the last of which may be smaller."""
        records, batch = number_or_none(body.training.dataset_size), number_or_none(body.training.expected_batch_size)
        return None if records is None or batch is None else Fraction(math.ceil(exactly(records) / exactly(batch)))

    def epoch_problems(self, body: StatedBody) -> Iterator[Problem]:
        """Report missing sizes: an epoch is a pass over all batches, so their number must be known."""
        for field in ("dataset_size", "expected_batch_size"):
            if getattr(body.training, field) is None:
                message = (
                    f"{field} is required: epochs are counted in batches of expected_batch_size out of dataset_size "
                    "records; or give iterations"
                )
                yield problem("missing-key", body.at("training", field), message)

    def on_epochs(self, body: StatedBody, epoch: Fraction, iterations: int) -> str | None:
        """Return a note that the maximum number of participations is not stated, or None."""
        if self.max_participations is not None or iterations <= 1:
            return None
        dealt = math.ceil(body.epochs or 0.0)
        return (
            f"the document does not state how often a record takes part, so all {iterations:_} rounds are accounted for. "
            f"If it is in one batch of each epoch, write max_participations: {dealt} under sampler"
        )

    @classmethod
    def questions(cls, answers: Collection[str], blank: str) -> set[str]:
        """Return the required keys, the participations (unless iterations are solved), and the sizes (with epochs)."""
        batches = {"dataset_size", "batch_size"} if "epochs" in answers else set()
        most = {"max_participations"} if blank != "iterations" else set()
        return {*cls.required(), *batches, *most}

    def one_round(self, body: StatedBody, probability: Any) -> dict[str, Any]:
        """Return that a record is in a round."""
        return {"kind": "all"}

    def pattern(self, body: StatedBody, probability: Any) -> dict[str, Any]:
        """Return how often a record takes part, and at which distance."""
        rounds = number_or_none(body.training.iterations)
        most = self.most_participations(int(rounds or 1))
        return {"kind": "ordered", "participations": str(most), "separation": str(self.min_separation or 1)}

"""Random allocation."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import Field

from pyaccount.document.ranges import ALLOCATION, PARTICIPATIONS, RATE_AGREEMENT
from pyaccount.document.samplers.base import SamplerKind
from pyaccount.document.stated import StatedBody, number_or_none, stated_rates
from pyaccount.errors import Path, Problem, problem
from pyaccount.reading.fields import Number
from pyaccount.reading.kinds import AlsoCalled, Asked


class RandomAllocation(SamplerKind):
    """Random allocation: in each block of t rounds each record takes part in k rounds, which are chosen at random.

    A loader does this if it assigns each record of an epoch to random batches, independently of the other records. The
    batches have no fixed size.
    """

    aliases = "allocation random-allocations k-out-of-t"
    called = "Random-allocation"
    # The sampler has no sampling probability; the rounds of an allocation determine everything.
    rate_follows = False
    asked_rate = ""

    kind: Literal["random-allocation"] = Field(
        description="In each block of t rounds each record takes part in k of them, chosen at random."
    )
    iterations_per_allocation: Annotated[
        int,
        Number(ALLOCATION, whole=True),
        Asked("Number of rounds in a block, for example the batches of an epoch", trial="100", metavar="T"),
        AlsoCalled("allocation_length rounds_per_allocation steps_per_allocation"),
    ] = Field(description="The number t of rounds in a block. The number of iterations is a multiple of it.")
    participations: Annotated[int, Number(PARTICIPATIONS, whole=True), AlsoCalled("num_selected rounds_per_record")] = (
        Field(default=1, description="The number k of rounds in each block in which a record takes part.")
    )

    def participation_rate(self, body: StatedBody) -> float:
        """Return k/t."""
        return self.participations / self.iterations_per_allocation

    def most_participations(self, iterations: int) -> int:
        """Return k times the number of blocks in `iterations` rounds, which are a whole number of blocks."""
        return iterations // self.iterations_per_allocation * self.participations

    def usual_pattern(self, body: StatedBody, iterations: int) -> tuple[int, int]:
        """Return a distance of t/k rounds, rounded down, and how often it fits into the run."""
        apart = max(1, self.iterations_per_allocation // self.participations)
        return min(apart, iterations), -(-iterations // apart)

    def epoch(self, body: StatedBody) -> Fraction | None:
        """Return t/k, the number of rounds in which a record takes part once on average."""
        rounds, taken = number_or_none(self.iterations_per_allocation), number_or_none(self.participations)
        return None if rounds is None or taken is None else Fraction(int(rounds), int(taken))

    def problems(self, body: StatedBody) -> Iterator[Problem]:
        """Yield the problems of the allocation first, then the others."""
        yield from self.allocation_problems(body)
        yield from super().problems(body)
        yield from self.rates_of_allocation(body)

    def allocation_problems(self, body: StatedBody) -> Iterator[Problem]:
        """Report k > t, iterations that are not a whole number of blocks, and a sampling probability."""
        rounds, taken = number_or_none(self.iterations_per_allocation), number_or_none(self.participations)
        iterations = number_or_none(body.training.iterations)
        if rounds is None:
            return
        if taken is not None and taken > rounds:
            message = f"a record cannot take part in {taken:_} of {rounds:_} rounds"
            path = body.at("sampler", "participations")
            yield problem("contradiction", path, message, allowed=f"at most {rounds:_}")
        if iterations is not None and iterations % rounds:
            below = int(iterations // rounds * rounds)
            fits = f"{below:_} or {below + int(rounds):_}" if below else f"{int(rounds):_}"
            message = f"{iterations:_} rounds are not a whole number of allocations of {rounds:_} rounds"
            if body.epochs is not None:
                message = f"{message}: {body.epochs:g} epochs are {iterations:_} rounds"
            path = body.at("training", "iterations" if body.epochs is None else "epochs")
            yield problem("contradiction", path, message, allowed=f"{fits} iterations")
        if number_or_none(body.training.sampling_probability) is not None:
            message = "random allocation has no sampling probability: a record takes part in k of t rounds"
            yield problem("contradiction", body.at("training", "sampling_probability"), message)

    def agreeing_rates(self, body: StatedBody) -> dict[Path, float]:
        """Return nothing: rates are compared with k/t."""
        return {}

    def rates_of_allocation(self, body: StatedBody) -> Iterator[Problem]:
        """Report statements of a rate that differ from k/t."""
        rounds, taken = number_or_none(self.iterations_per_allocation), number_or_none(self.participations)
        if rounds is None or taken is None:
            return
        for field, rate in stated_rates(body).items():
            if not math.isclose(rate * rounds, taken, rel_tol=RATE_AGREEMENT):
                drawn = f"{taken / rounds:.10g}"
                message = f"this is a participation rate of {rate:.10g}, but {taken:_} of {rounds:_} rounds are {drawn}"
                records, allowed = number_or_none(body.training.dataset_size), f"{drawn}, or leave it out"
                if field == "expected_batch_size" and records is not None:
                    allowed = f"{records * taken / rounds:.10g}, or leave it out: it follows from the allocation"
                yield problem("contradiction", body.at("training", field), message, allowed=allowed)

    def rate_missing(self, body: StatedBody) -> Iterator[Problem]:
        """Report nothing, because the allocation determines the rate."""
        yield from ()

    def rate_is_stated(self, body: StatedBody) -> bool:
        """Return True, because the allocation determines the rate."""
        return True

    def one_round(self, body: StatedBody, probability: Any) -> dict[str, Any] | None:
        """Return that a record is in a round, if it is in all of them."""
        return {"kind": "all"} if self.participations == self.iterations_per_allocation else None

    def pattern(self, body: StatedBody, probability: Any) -> dict[str, Any]:
        """Return in how many rounds of an allocation a record takes part."""
        every = str(self.iterations_per_allocation)
        return {"kind": "allocation", "participations": str(self.participations), "every": every}

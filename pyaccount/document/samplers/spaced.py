"""The base classes of samplers that enforce a minimum distance between the participations of a record, in rounds. The
default is the number of bands of the matrix.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from typing import Annotated

from pyaccount.document.ranges import RATE_AGREEMENT, SEPARATION
from pyaccount.document.rates import largest_rate
from pyaccount.document.samplers.base import Truncatable
from pyaccount.document.stated import StatedBody, number_or_none, stated_rates
from pyaccount.errors import Problem, problem
from pyaccount.reading.fields import Choose, Number
from pyaccount.reading.kinds import AlsoCalled, Asked

ASKED_SEPARATION = Asked("Minimum distance between two participations of a record, in rounds", trial="8", metavar="B")
CALLED_SEPARATION = AlsoCalled("min_sep separation b")

#: The type of a field with the distance. `GivenSeparation` accepts no `choose:` list: without sampling the distance is
#: a property of the order of the records, which a choice cannot change.
MinSeparation = Annotated[
    int | Choose | None, Number(SEPARATION, whole=True, choose=True), ASKED_SEPARATION, CALLED_SEPARATION
]
GivenSeparation = Annotated[int | None, Number(SEPARATION, whole=True), ASKED_SEPARATION, CALLED_SEPARATION]
#: The end of the description of a field that may be a list.
CHOSEN = " With a list under `choose:`, the value with the smallest error is used."


class Spaced(Truncatable):
    """A sampler that enforces a minimum distance; `spacing` is the name of the field that states it."""

    spacing = "min_separation"
    spaced = True
    one_probability = (
        "a record that was drawn is not available for some rounds, so a record that is drawn less often is available more "
        "often, and the bound for the largest probability is not proven for it. Write one number, or draw every record "
        "independently in each round (kind: poisson, or cyclic-poisson with a matrix)"
    )

    @property
    def stated_separation(self) -> object:
        """The value of the field: a number, a choice, or None if it is omitted."""
        return getattr(self, self.spacing)

    def separation(self, body: StatedBody) -> int | None:
        """Return the rounds from one chance of a record to the next: the field, or by default the number of bands."""
        b = self.stated_separation
        return body.matrix.diagonals() if b is None else b if isinstance(b, int) else None

    def problems(self, body: StatedBody) -> Iterator[Problem]:
        """Yield the problems of the distance first, since it determines most, then the others."""
        yield from self.spacing_problems(body)
        yield from super().problems(body)

    def spacing_problems(self, body: StatedBody) -> Iterator[Problem]:
        """Report a distance below the number of bands: a record's participations must not overlap in the matrix."""
        b, width = self.separation(body), body.matrix.diagonals()
        if b is not None and width is not None and width > b:
            message = (
                f"the matrix has {width} bands, so that a record's participations must be at least {width} rounds apart, but "
                f"this allows {b}: take at most {b} bands, or {self.spacing} of at least {width}"
            )
            path = body.at("sampler", self.spacing)
            yield problem("contradiction", path, message, allowed=f"at least {width}")


class SpacedByRate(Spaced):
    """A sampler whose sampling probability is not the participation rate, since a record is not always available."""

    # The sampling probability is not the share of the data set in a round.
    share_field = "participation_rate"
    #: The name of the distance in the advice to choose a smaller one.
    spacing_called = "a separation"

    @abstractmethod
    def rate_at(self, probability: float, separation: int) -> float:
        """Return the participation rate at a sampling probability."""

    @abstractmethod
    def probability_at(self, rate: float, separation: int) -> float:
        """Return the sampling probability at a participation rate; above 1 or infinite if the rate is too large."""

    def rate_of(self, body: StatedBody, probability: float) -> float | None:
        """Return the participation rate at a sampling probability; None while the separation is a choice."""
        b = self.separation(body)
        return None if b is None else self.rate_at(probability, b)

    def sampling_probability(self, body: StatedBody) -> float:
        """Return the probability with which a record is drawn when it has a chance."""
        stated, rate = number_or_none(body.training.sampling_probability), self.participation_rate(body)
        b = self.separation(body)
        assert b is not None  # choices are made before anything is computed
        # A rate of 1/b means a probability of 1, and rounding must not make it smaller.
        converted = 1.0 if rate * b >= 1.0 - RATE_AGREEMENT else min(1.0, self.probability_at(rate, b))
        if stated is None:
            return converted
        # Several statements agree up to rounding; the largest one is the conservative choice. A single
        # statement is not converted to a rate and back.
        return max(stated, converted) if len(stated_rates(body)) > 1 else stated

    def spacing_problems(self, body: StatedBody) -> Iterator[Problem]:
        """Report also participation rates above 1/b: a record takes part at most once in b rounds."""
        yield from super().spacing_problems(body)
        b = self.separation(body)
        if b is None:
            return
        what = "bands" if self.stated_separation is None else self.spacing_called
        for field, rate in stated_rates(body).items():
            if rate * b > 1.0 + RATE_AGREEMENT:
                records = number_or_none(body.training.dataset_size)
                size = None if records is None else math.floor(records / b) if records >= b else f"{records / b:.10g}"
                batch = "" if size is None else f", that is a batch of at most {size}"
                message = (
                    f"this is a participation rate of {rate:.10g}, but a record takes part at most once in {b} rounds: at most "
                    f"1/{b} = {1.0 / b:.6g} is feasible{batch}; or {what} of at most {math.floor(1.0 / rate * (1 + 1e-12))}"
                )
                allowed = largest_rate(field, b, records)
                yield problem("infeasible-rate", body.at("training", field), message, allowed=allowed)

    def epoch_problems(self, body: StatedBody) -> Iterator[Problem]:
        """Report epochs while the separation, or the number of bands that determines it, is still a choice."""
        if self.separation(body) is None and number_or_none(body.training.sampling_probability) is not None:
            what = "bands that are" if self.stated_separation is None else f"{self.spacing} that is"
            message = f"how many iterations this is depends on the {what} chosen: give iterations instead"
            path = body.at("training", "epochs")
            yield problem("contradiction", path, message, allowed="iterations instead")

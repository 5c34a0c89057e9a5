"""What samplers have in common that keep the participations of a record a number of rounds apart: by default as many as the
matrix has bands.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Annotated

from pyaccount.document.asking import AlsoCalled, Asked
from pyaccount.document.fields import Choose, Number
from pyaccount.document.fitting import largest_rate
from pyaccount.document.ranges import RATE_AGREEMENT, SEPARATION
from pyaccount.document.samplers.base import Truncatable
from pyaccount.document.stated import number, stated_rates
from pyaccount.errors import Problem

if TYPE_CHECKING:
    from pyaccount.document.stated import StatedBody
    from pyaccount.document.written import Written

ASKED_SEPARATION = Asked("Minimum distance between two participations of a record, in rounds", trial="8", metavar="B")
CALLED_SEPARATION = AlsoCalled("min_sep separation b")

#: The distance as a field of its own; where it costs nothing to the order, which no choice can make.
MinSeparation = Annotated[
    int | Choose | None, Number(SEPARATION, whole=True, choose=True), ASKED_SEPARATION, CALLED_SEPARATION
]
GivenSeparation = Annotated[int | None, Number(SEPARATION, whole=True), ASKED_SEPARATION, CALLED_SEPARATION]
#: What a description says of a field that may be a list.
CHOSEN = " With a list under `choose:`, the value with the smallest error is used."


class Spaced(Truncatable):
    """A sampler that keeps participations apart; `spacing` is the name of the field that states the distance."""

    spacing = "min_separation"
    spaced = True

    @property
    def stated_separation(self) -> object:
        """What the field says: a number, or None where it is omitted."""
        return getattr(self, self.spacing)

    def separation(self, body: StatedBody) -> int | None:
        """The rounds between two chances of a record."""
        b = self.stated_separation
        return body.matrix.diagonals() if b is None else b if isinstance(b, int) else None

    def problems(self, document: Written, body: StatedBody) -> Iterator[Problem]:
        """The distance first: more follows from it than from the rest."""
        yield from self.spacing_problems(document, body)
        yield from super().problems(document, body)

    def spacing_problems(self, document: Written, body: StatedBody) -> Iterator[Problem]:
        """Participations of a record must not overlap in the matrix: at least `bands` rounds lie between them."""
        b, width = self.separation(body), body.matrix.diagonals()
        if b is not None and width is not None and width > b:
            message = (
                f"the matrix has {width} bands, so that a record's participations must be at least {width} rounds apart, but "
                f"this allows {b}: take at most {b} bands, or {self.spacing} of at least {width}"
            )
            path = body.at("sampler", self.spacing)
            yield document.problem("contradiction", path, message, allowed=f"at least {width}")

    @classmethod
    def questions(cls, answers: Collection[str], blank: str) -> set[str]:
        """The distance as well: who keeps participations apart knows by how much."""
        return super().questions(answers, blank) | {cls.spacing}


class SpacedByRate(Spaced):
    """A sampler whose sampling probability is not the participation rate, since a record is not available in most rounds."""

    # The probability to be drawn is not the share of the data set.
    share_field = "participation_rate"
    #: What the distance is called where a smaller one would do.
    spacing_called = "a separation"

    @abstractmethod
    def rate_at(self, probability: float, separation: int) -> float:
        """The participation rate at a sampling probability."""

    @abstractmethod
    def probability_at(self, rate: float, separation: int) -> float:
        """The sampling probability at a participation rate; infinite or above 1 where rounding made the rate too large."""

    def rate_of(self, body: StatedBody, probability: float) -> float | None:
        """The participation rate that goes with a sampling probability."""
        b = self.separation(body)
        return None if b is None else self.rate_at(probability, b)

    def sampling_probability(self, body: StatedBody) -> float:
        """What the sampler draws with: the probability where a record has a chance."""
        stated, rate = number(body.training.sampling_probability), self.participation_rate(body)
        b = self.separation(body)
        assert b is not None  # choices are made before anything is computed
        # A rate of 1/b means a probability of 1; rounding must not leave it below.
        converted = 1.0 if rate * b >= 1.0 - RATE_AGREEMENT else min(1.0, self.probability_at(rate, b))
        if stated is None:
            return converted
        # Several statements agree to rounding; the largest is safe. One alone is not converted there and back.
        return max(stated, converted) if len(stated_rates(body)) > 1 else stated

    def spacing_problems(self, document: Written, body: StatedBody) -> Iterator[Problem]:
        """Also: a record that takes part at most every b rounds has a participation rate of at most 1/b."""
        yield from super().spacing_problems(document, body)
        b = self.separation(body)
        if b is None:
            return
        what = "bands" if self.stated_separation is None else self.spacing_called
        for field, rate in stated_rates(body).items():
            if rate * b > 1.0 + RATE_AGREEMENT:
                records = number(body.training.dataset_size)
                size = None if records is None else math.floor(records / b) if records >= b else f"{records / b:.10g}"
                batch = "" if size is None else f", that is a batch of at most {size}"
                message = (
                    f"this is a participation rate of {rate:.10g}, but a record takes part at most once in {b} rounds: at most "
                    f"1/{b} = {1.0 / b:.6g} is feasible{batch}; or {what} of at most {math.floor(1.0 / rate * (1 + 1e-12))}"
                )
                allowed = largest_rate(field, b, records)
                yield document.problem("infeasible-rate", body.at("training", field), message, allowed=allowed)

    def epoch_problems(self, document: Written, body: StatedBody) -> Iterator[Problem]:
        """The separation is still to be chosen, or the bands that are the separation."""
        if self.separation(body) is None and number(body.training.sampling_probability) is not None:
            what = "bands that are" if self.stated_separation is None else f"{self.spacing} that is"
            message = f"how many iterations this is depends on the {what} chosen: give iterations instead"
            path = body.at("training", "epochs")
            yield document.problem("contradiction", path, message, allowed="iterations instead")

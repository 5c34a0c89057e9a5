"""A sampler that pyaccount does not have: what somebody who adds one writes in the document room.

`extended` copies this file to where a sampler's module belongs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from pyaccount.document.samplers.base import SamplerKind
from pyaccount.document.stated import RATE_FIELDS, number_or_none
from pyaccount.errors import Problem, problem
from pyaccount.reading.fields import Number
from pyaccount.reading.kinds import AlsoCalled, Asked
from pyaccount.reading.numerals import Range

if TYPE_CHECKING:
    from pyaccount.document.stated import StatedBody


class CoinFlips(SamplerKind):
    """Coin flips: a record joins a round if all flips of its coin show heads."""

    aliases = "coins heads"

    kind: Literal["coin-flips"] = Field(description="A record joins if all flips of its coin show heads.")
    flips: Annotated[
        int,
        Number(Range(1, 30, measure="flips"), whole=True),
        Asked("Flips of a record's coin", trial="7"),
        AlsoCalled("tosses"),
    ] = Field(description="How often a coin is flipped.")

    def participation_rate(self, body: StatedBody) -> float:
        """Return the probability that all flips show heads."""
        return 0.5**self.flips

    def epoch(self, body: StatedBody, *, bins: int | None = None) -> Fraction | None:
        """Return the rounds of an epoch: the number of outcomes of the flips."""
        flips = number_or_none(self.flips)
        return None if flips is None else Fraction(2 ** int(flips))

    def rate_problems(self, body: StatedBody) -> Iterator[Problem]:
        """Refuse other statements of the rate, and flips by which less than one record joins a round."""
        for field in ("expected_batch_size", *RATE_FIELDS):
            if getattr(body.training, field) is not None:
                message = "the coin says how many records join a round: leave this out"
                yield problem("contradiction", body.at("training", field), message)
        flips, records = number_or_none(self.flips), number_or_none(body.training.dataset_size)
        if flips is not None and records is not None and 2**flips > records:
            message = f"of {records:_} records less than one joins a round"
            yield problem("contradiction", body.at("sampler", "flips"), message, allowed="fewer flips")

    @classmethod
    def questions(cls, answers: Collection[str], blank: str) -> set[str]:
        """Return the questions of `pyaccount init` for this sampler: the flips alone."""
        return cls.required()

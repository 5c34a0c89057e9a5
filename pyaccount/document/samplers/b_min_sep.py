"""b-min-sep sampling."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import Field

from pyaccount.document.asking import AlsoCalled
from pyaccount.document.fields import Choice
from pyaccount.document.samplers.spaced import MinSeparation, SpacedByRate


class BMinSep(SpacedByRate):
    """b-min-sep sampling: after a participation a record sits out the next b − 1 rounds; while available, it joins each
    round with the sampling probability.

    The sampling probability is conditional on availability. The participation rate, the long-run share of rounds that a
    record takes part in, is 1/(b − 1 + 1/p); it is at most 1/b.
    """

    aliases = "bminsep min-sep b-minsep b-min-separation"

    kind: Literal["b-min-sep"] = Field(description="A record joins at random, at least b rounds after its last time.")
    min_separation: MinSeparation = Field(
        default=None, description="b: the least distance, in rounds, between two participations. Omitted: the bands."
    )
    start: Annotated[Literal["warm", "cold"], Choice(("warm", "cold")), AlsoCalled("warm_start")] = Field(
        default="warm",
        description="Whether the process is in its stationary state in the first round (warm), or every record is "
        "available in it (cold).",
    )

    def rate_at(self, probability: float, separation: int) -> float:
        """Rounds sat out, and the mean wait for a draw."""
        return 1.0 / (separation - 1.0 + 1.0 / probability)

    def probability_at(self, rate: float, separation: int) -> float:
        """The rate among the rounds in which a record is available."""
        free = 1.0 - rate * (separation - 1)
        return rate / free if free > 0.0 else math.inf

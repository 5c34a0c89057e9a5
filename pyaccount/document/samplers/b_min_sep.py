"""b-min-sep sampling."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from pyaccount.document.samplers.spaced import CHOSEN, MinSeparation, SpacedByRate
from pyaccount.errors import Problem, problem
from pyaccount.reading.asking import AlsoCalled
from pyaccount.reading.fields import Choice

if TYPE_CHECKING:
    from fractions import Fraction

    from pyaccount.document.stated import StatedBody


class BMinSep(SpacedByRate):
    """b-min-sep sampling: an available record joins a round with the sampling probability p. After it took part, it is
    unavailable for the next b − 1 rounds.

    The sampling probability is that of an available record. The participation rate, that is, the long-run share of rounds in
    which a record takes part, is 1/(b − 1 + 1/p); it is at most 1/b.
    """

    aliases = "bminsep min-sep b-minsep b-min-separation"
    drawn = "for an available record"

    kind: Literal["b-min-sep"] = Field(
        description="Each record joins at random, but not until b rounds after its last participation."
    )
    min_separation: MinSeparation = Field(
        default=None,
        description="The minimum distance b between two participations of a record, in rounds. Default: the number "
        f"of bands of the matrix.{CHOSEN}",
    )
    start: Annotated[Literal["warm", "cold"], Choice(("warm", "cold")), AlsoCalled("warm_start")] = Field(
        default="warm",
        description="Whether the sampler is in its stationary state in the first round (warm), or every record is "
        "available then (cold).",
    )

    def spacing_problems(self, body: StatedBody) -> Iterator[Problem]:
        """Report also a missing separation if the matrix is not banded, since then there is no default."""
        yield from super().spacing_problems(body)
        if self.min_separation is None and not body.matrix.banded:
            message = f"a {body.matrix.kind} matrix has no number of bands that could be the separation: give it"
            yield problem("missing-key", body.at("sampler", "min_separation"), message)

    def between_chances(self, body: StatedBody, chances: Fraction) -> Fraction | None:
        """Return b − 1 + 1/p: the rounds in which a record is unavailable, and those in which it may be drawn."""
        b = self.separation(body)
        return None if b is None else b - 1 + chances

    def rate_at(self, probability: float, separation: int) -> float:
        """Return p₀ = 1/(b − 1 + 1/p): b − 1 rounds of waiting, then 1/p rounds on average until the next draw."""
        return 1.0 / (separation - 1.0 + 1.0 / probability)

    def probability_at(self, rate: float, separation: int) -> float:
        """Return p = p₀/(1 − p₀(b − 1)), the rate among the rounds in which a record is available; inf without any."""
        free = 1.0 - rate * (separation - 1)
        return rate / free if free > 0.0 else math.inf

    def one_round(self, body: StatedBody, probability: Any) -> dict[str, Any] | None:
        """Return that a record is drawn with a probability, if it need not wait."""
        apart = self.separation(body) == 1 and self.truncation(body) is None
        return {"kind": "poisson", "draws": "1", "probability": probability} if apart else None

    def pattern(self, body: StatedBody, probability: Any) -> dict[str, Any]:
        """Return how likely a free record joins, and how long it waits then."""
        limit = self.truncation(body)
        form = {
            "kind": "spaced",
            "probability": probability,
            "separation": str(self.separation(body)),
            "start": self.start,
        }
        if limit is None:
            return form
        return form | {"kind": "truncated-spaced", "records": str(body.training.dataset_size), "size": str(limit)}

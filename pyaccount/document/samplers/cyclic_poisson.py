"""Cyclic Poisson sampling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from pyaccount.document.ranges import PARTITIONS
from pyaccount.document.samplers.spaced import CHOSEN, SpacedByRate
from pyaccount.reading.fields import Choice, Choose, Number
from pyaccount.reading.kinds import Asked

if TYPE_CHECKING:
    from fractions import Fraction

    from pyaccount.document.stated import StatedBody


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

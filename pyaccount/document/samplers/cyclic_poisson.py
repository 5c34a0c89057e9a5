"""Cyclic Poisson sampling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from pyaccount.document.asking import Asked
from pyaccount.document.fields import Choice, Choose, Number
from pyaccount.document.ranges import PARTITIONS
from pyaccount.document.samplers.spaced import CHOSEN, SpacedByRate

if TYPE_CHECKING:
    from fractions import Fraction

    from pyaccount.document.stated import StatedBody


class CyclicPoisson(SpacedByRate):
    """Cyclic Poisson sampling: the data set is cut into b parts, by a rule that ignores the records' contents; round i samples
    part i mod b, every record of it with the sampling probability.

    The participation rate is the sampling probability over b.
    """

    aliases = "cyclicpoisson cyclic"
    spacing = "partitions"
    spacing_called = "partitions"

    kind: Literal["cyclic-poisson"] = Field(description="Poisson sampling from b fixed parts that take turns.")
    partitions: Annotated[
        int | Choose | None,
        Number(PARTITIONS, whole=True, choose=True),
        Asked("Parts of the data set that take turns", trial="8", metavar="B"),
    ] = Field(default=None, description=f"b: the number of parts. Omitted: the bands of the matrix.{CHOSEN}")
    phase: Annotated[Literal["fixed", "random"], Choice(("fixed", "random"))] = Field(
        default="fixed",
        description="Whether the parts are fixed and may be known, or every record is put in a part at random, independently "
        "of the others, in secret and for this run only.",
    )

    def between_chances(self, body: StatedBody, chances: Fraction) -> Fraction | None:
        """Return b/p: a record may be drawn in every b-th round."""
        b = self.separation(body)
        return None if b is None else b * chances

    def rate_at(self, probability: float, separation: int) -> float:
        """A record's part has every b-th turn."""
        return probability / separation

    def probability_at(self, rate: float, separation: int) -> float:
        """The other way round."""
        return rate * separation

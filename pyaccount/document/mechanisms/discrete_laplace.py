"""Discrete Laplace noise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from pyaccount.document.mechanisms.discrete import OnLattice
from pyaccount.document.ranges import SCALE
from pyaccount.reading.fields import Number, Solve
from pyaccount.rounding import positional

if TYPE_CHECKING:
    from pyaccount.document.words import Adjacency


class DiscreteLaplace(OnLattice):
    """Integers, or multiples of a step, with discrete Laplace (two-sided geometric) noise."""

    aliases = "geometric two-sided-geometric double-geometric laplace-discrete discretelaplace"

    kind: Literal["discrete-laplace"] = Field(description="Integers with discrete Laplace noise.")
    scale: Annotated[float | Solve, Number(SCALE, blank=True)] = Field(
        description="The scale b of the noise, in the unit of the number: x has probability proportional to exp(−|x|/b)."
    )

    def normal_form(self, adjacency: Adjacency) -> dict[str, Any]:
        """Return the mechanism with all of its numbers."""
        return {
            "kind": self.kind,
            "moved": str(self.moved),
            "scale": positional(float(self.scale)),
            "sensitivity": positional(self.sensitivity),
            "step": positional(self.step),
        }

"""The Gaussian mechanism."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from pyaccount.document.mechanisms.base import MechanismKind, Sensitivity
from pyaccount.document.ranges import SCALE
from pyaccount.reading.fields import Number, Solve
from pyaccount.rounding import positional

if TYPE_CHECKING:
    from pyaccount.document.words import Adjacency


class GaussianMechanism(MechanismKind):
    """Numbers, or a vector, with independent Gaussian noise, in their own unit."""

    aliases = "gaussian-mechanism normal gauss"

    kind: Literal["gaussian"] = Field(description="Numbers, or a vector, with Gaussian noise.")
    sigma: Annotated[float | Solve, Number(SCALE, blank=True)] = Field(
        description="The standard deviation σ of the noise on each number, in its unit."
    )
    sensitivity: Sensitivity = Field(
        default=1.0,
        description="The maximum change of the released vector, in Euclidean norm, if one record changes.",
    )

    @property
    def bounded_loss(self) -> bool:
        """Return False: the privacy loss of Gaussian noise has no bound."""
        return False

    def normal_form(self, adjacency: Adjacency) -> dict[str, Any]:
        """Return the mechanism with all of its numbers."""
        return {"kind": self.kind, "sensitivity": positional(self.sensitivity), "sigma": positional(float(self.sigma))}

"""Discrete Gaussian noise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from pyaccount.document.mechanisms.discrete import OnLattice
from pyaccount.document.ranges import SCALE
from pyaccount.reading.fields import Number
from pyaccount.rounding import positional

if TYPE_CHECKING:
    from pyaccount.document.words import Adjacency

_UNSOLVED = (
    "no search is implemented for discrete Gaussian noise, because it is not proven that more of it is always more private: "
    "solve for the sigma of a gaussian mechanism, which is nearly the same from a few steps on, and claim this ε and δ with it"
)


class DiscreteGaussian(OnLattice):
    """Integers, or multiples of a step, with discrete Gaussian noise (Canonne, Kamath & Steinke 2020)."""

    aliases = "gaussian-discrete discrete-normal dgauss discretegaussian"

    kind: Literal["discrete-gaussian"] = Field(description="Integers with discrete Gaussian noise.")
    sigma: Annotated[float, Number(SCALE, unsolved=_UNSOLVED)] = Field(
        description="The parameter σ of the noise, in the unit of the number: x has probability proportional to "
        "exp(−x²/(2σ²)). The noise must be drawn from this law itself: a sum of discrete Gaussians of several parties "
        "does not have it."
    )

    @property
    def bounded_loss(self) -> bool:
        """Return False: the privacy loss of Gaussian noise has no bound."""
        return False

    def normal_form(self, adjacency: Adjacency) -> dict[str, Any]:
        """Return the mechanism with all of its numbers."""
        return {
            "kind": self.kind,
            "moved": str(self.moved),
            "sensitivity": positional(self.sensitivity),
            "sigma": positional(float(self.sigma)),
            "step": positional(self.step),
        }

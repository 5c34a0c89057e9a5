"""The kinds of noise."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pyaccount.document.fields import Number, Solve
from pyaccount.document.kinds import Kinds, Section
from pyaccount.document.ranges import NOISE_MULTIPLIER


class Gaussian(Section):
    """Gaussian noise on the sum of the clipped contributions of a round."""

    kind: Literal["gaussian"] = Field(default="gaussian", description="Gaussian noise; the default.")
    multiplier: Annotated[float | Solve, Number(NOISE_MULTIPLIER, blank=True)] = Field(
        description="The noise multiplier σ: the noise's standard deviation relative to the clip norm and, "
        "with a matrix, to unit maximum column norm."
    )


Noise = Annotated[Gaussian, Kinds("noise", (Gaussian,), default="gaussian")]

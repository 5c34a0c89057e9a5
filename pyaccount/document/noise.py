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


class Laplace(Section):
    """Laplace noise on a number: the sum of contributions that are clipped to [−1, 1] in units of the clip norm."""

    kind: Literal["laplace"] = Field(description="Laplace noise on a single number.")
    multiplier: Annotated[float | Solve, Number(NOISE_MULTIPLIER, blank=True)] = Field(
        description="The scale b of the Laplace noise relative to the clip norm; its standard deviation is b√2."
    )


Noise = Annotated[Gaussian | Laplace, Kinds("noise", (Gaussian, Laplace), default="gaussian")]

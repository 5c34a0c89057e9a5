"""The kinds of noise."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from pyaccount.document.fields import Items, Number, Solve, Text
from pyaccount.document.kinds import Kinds, Section
from pyaccount.document.ranges import NAME_LENGTH, NOISE_MULTIPLIER, RELEASES
from pyaccount.document.unimplemented import NOISES


class Release(Section):
    """Another sum over the records of every batch, released beside the main one with Gaussian noise of its own."""

    multiplier: Annotated[float, Number(NOISE_MULTIPLIER)] = Field(
        description="The standard deviation of this release's noise relative to its own clip norm: the most by which one record "
        "moves it when added, removed or set to zero. A count that is centred moves by ½, so that noise of standard deviation "
        "σ_b is a multiplier of 2σ_b."
    )
    what: Annotated[str, Text(NAME_LENGTH)] = Field(description="What is released, in words for the certificate.")


class Gaussian(Section):
    """Gaussian noise on the sum of the clipped contributions of a round."""

    #: Whether the privacy loss is bounded, whatever is released: then some ε holds at δ = 0.
    bounded_loss: ClassVar[bool] = False

    kind: Literal["gaussian"] = Field(default="gaussian", description="Gaussian noise; the default.")
    multiplier: Annotated[float | Solve, Number(NOISE_MULTIPLIER, blank=True)] = Field(
        description="The noise multiplier σ: the noise's standard deviation relative to the clip norm and, "
        "with a matrix, to unit maximum column norm."
    )
    also: Annotated[tuple[Release, ...], Items(RELEASES)] = Field(
        default=(),
        description="What else every round releases of the same batch: sums with Gaussian noise of their own, such as the counts "
        "of adaptive clipping. All releases of a batch together are one with the multiplier (Σ σ_i⁻²)^(−1/2). Without a matrix.",
    )


class Laplace(Section):
    """Laplace noise on a number: the sum of contributions that are clipped to [−1, 1] in units of the clip norm."""

    bounded_loss: ClassVar[bool] = True
    #: A round releases one number.
    also: ClassVar[tuple[Release, ...]] = ()

    kind: Literal["laplace"] = Field(description="Laplace noise on a single number.")
    multiplier: Annotated[float | Solve, Number(NOISE_MULTIPLIER, blank=True)] = Field(
        description="The scale b of the Laplace noise relative to the clip norm; its standard deviation is b√2."
    )


AnyNoise = Annotated[Gaussian | Laplace, Kinds("noise", (Gaussian, Laplace), default="gaussian", refused=NOISES)]

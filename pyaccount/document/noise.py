"""The kinds of noise, and the effective multiplier of several releases of one batch, which are analysed as one release.

Each release i is a sum over the records of the batch to which a record contributes at most its own clip norm c_i, with
independent Gaussian noise of standard deviation σ_i·c_i. Divided by that standard deviation, a record's contribution to
release i has norm at most 1/σ_i, and the noise is standard. All releases stacked are one sum of vectors, with standard
noise, to which a record contributes at most (Σ σ_i⁻²)^(1/2) in norm. This is the Gaussian release of multiplier **(Σ
σ_i⁻²)^(−1/2)**, of the same batch, and therefore the equivalence holds under every sampler. Stacking loses nothing:
records that contribute their clip norm to every release attain the privacy loss of that single release (Andrew et al.
2021, arXiv:1905.03871, Theorem 1, for two releases).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from pyaccount.document.ranges import NAME_LENGTH, NOISE_MULTIPLIER, NOISE_SCALE, RELEASES
from pyaccount.document.schedules import NumberOrMapping, ScheduledMultiplier
from pyaccount.reading.fields import SOLVE, Items, Number, Solve, Text
from pyaccount.reading.kinds import Kinds, Section
from pyaccount.reading.unknown_kinds import NOISES

Multiplier = Annotated[
    float | Solve | ScheduledMultiplier,
    NumberOrMapping(NOISE_MULTIPLIER, blank=True, shapes={"a schedule": ScheduledMultiplier}),
]


class Release(Section):
    """Another sum over the records of every batch, which is released in addition to the main one, with Gaussian noise of its
    own.
    """

    multiplier: Annotated[float, Number(NOISE_MULTIPLIER)] = Field(
        description="The standard deviation of the noise of this release, in units of its own clip norm: the most by "
        "which one record changes the sum if it is added, removed or set to zero. A centred count changes by ½, "
        "so noise of standard deviation σ_b is a multiplier of 2σ_b."
    )
    what: Annotated[str, Text(NAME_LENGTH)] = Field(description="A description of the release, for the certificate.")


class Gaussian(Section):
    """Gaussian noise on the sum of the clipped contributions of a round."""

    #: Whether the privacy loss is bounded for every output. If it is, some ε holds at δ = 0.
    bounded_loss: ClassVar[bool] = False
    #: Whether the error of prefix sums is reported; it is the variance of the noise times the error of the matrix.
    sums_have_error: ClassVar[bool] = True

    kind: Literal["gaussian"] = Field(default="gaussian", description="Gaussian noise; the default.")
    multiplier: Multiplier = Field(
        description="The noise multiplier σ: the standard deviation of the noise, in units of the clip norm. With a "
        "matrix C, training adds C⁻¹Z, and σ is the standard deviation of Z; C has a largest column norm of 1, "
        "unless `normalize` is false. A mapping with a `schedule` gives each round its own σ."
    )
    also: Annotated[tuple[Release, ...], Items(RELEASES)] = Field(
        default=(),
        description="Other sums that each round releases from the same batch, with Gaussian noise of their own, such "
        "as the counts of adaptive clipping. All releases of a batch together are as private as one release with "
        "the multiplier (Σ σ_i⁻²)^(−1/2). Not allowed with a matrix.",
    )


class Laplace(Section):
    """Laplace noise on a number: a sum of contributions that are clipped to [−1, 1], in units of the clip norm."""

    bounded_loss: ClassVar[bool] = True
    sums_have_error: ClassVar[bool] = False
    #: A round releases one number.
    also: ClassVar[tuple[Release, ...]] = ()

    kind: Literal["laplace"] = Field(description="Laplace noise on a single number.")
    multiplier: Multiplier = Field(
        description="The scale b of the Laplace noise, in units of the clip norm. The standard deviation of the "
        "noise is b√2. A mapping with a `schedule` gives each round its own b."
    )


_ALONE = (
    "A number alone does not say its unit; multiplier is the standard deviation, or scale, divided by the clip norm"
)

AnyNoise = Annotated[
    Gaussian | Laplace, Kinds("noise", (Gaussian, Laplace), default="gaussian", of_a_number=_ALONE, refused=NOISES)
]


class SharedNoise(Section):
    """One factor for the noise of all phases."""

    scale: Annotated[float | Solve, Number(NOISE_SCALE, blank=True)] = Field(
        description="The factor by which the noise multiplier of every training run is multiplied, so that `scale: solve` finds "
        "the least noise of several phases at once. Mechanisms and the releases of `noise.also` are not multiplied."
    )


def scaled(noise: Gaussian | Laplace, scale: float | Solve) -> Gaussian | Laplace:
    """Return the noise with its multiplier times a factor, rounded to the nearest double; the factor may be the blank.

    A value that was reported as wrong, or is itself the blank, is left as it is: then another rule reports it.
    """
    multiplier = getattr(noise, "multiplier", None)
    if isinstance(multiplier, ScheduledMultiplier):
        own = multiplier.scale
        factor = _product(own, scale)
        return noise.model_copy(update={"multiplier": multiplier.model_copy(update={"scale": factor})})
    if not isinstance(multiplier, int | float):
        return noise
    return noise.model_copy(update={"multiplier": _product(multiplier, scale)})


def _product(one: float | Solve, other: float | Solve) -> float | Solve:
    return SOLVE if SOLVE in (one, other) else float(one) * float(other)


#: A relative margin of 8 units of rounding u = ε/2. The square, reciprocal, sum, root, reciprocal and final product
#: lose less than 5.
_MARGIN = 4.0 * sys.float_info.epsilon


def beside(multiplier: float, further: Sequence[float]) -> float:
    """Return Σ (σ/σ_i)², what other releases of multipliers σ_i add for each round to the square of what moves.

    It is in squared units of the main release's noise σ = `multiplier`. If a matrix C correlates that noise, a record with
    the participations x moves C x there and x in every other release, whose rounds are independent. Divided by their
    standard deviations and stacked, that is the encoder [C/σ; I/σ_1; …] with standard noise, of Gram matrix
    CᵀC/σ² + Σ σ_i⁻²·I. So σ² times the square of what moves is ‖Cx‖² + Σ (σ/σ_i)²·(number of rounds of x): the same
    pattern x moves all releases. Rounded to nearest: the relative error is at most 4 + (number of releases) units of
    rounding.
    """
    return math.fsum((multiplier / sigma) ** 2 for sigma in further)


def effective(multipliers: Sequence[float]) -> tuple[float, float]:
    """Return a lower and an upper bound on (Σ σ_i⁻²)^(−1/2) for positive finite σ_i; exact for a single release."""
    if len(multipliers) == 1:
        return multipliers[0], multipliers[0]
    together = 1.0 / math.sqrt(math.fsum(1.0 / (sigma * sigma) for sigma in multipliers))
    return together * (1.0 - _MARGIN), together * (1.0 + _MARGIN)

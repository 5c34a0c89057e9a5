"""Noise added to numbers or a vector, as a document states it: Gaussian, Laplace, both on a lattice (discrete), and Skellam.

In a mixture of Gaussians, a record moves the vector by a random amount.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import Field

from pyaccount.document.mechanisms.base import (
    MOVED_TEXT,
    SENSITIVITY_TEXT,
    TOTAL_TEXT,
    MechanismKind,
    Moved,
    Sensitivity,
)
from pyaccount.document.ranges import CONTRIBUTION, MIXTURE, MIXTURE_PROBABILITY, PARTIES, SCALE, SHIFT, VARIANCE
from pyaccount.document.stated import Placed, number_or_none
from pyaccount.errors import Problem, problem
from pyaccount.reading.fields import Items, Number, Solve
from pyaccount.rounding import decimal_beside


class GaussianMechanism(MechanismKind):
    """Numbers, or a vector, with independent Gaussian noise, in their own unit."""

    aliases = "gaussian-mechanism normal gauss"
    form_fields = "sensitivity sigma"
    bounded_loss = False

    kind: Literal["gaussian"] = Field(description="Numbers, or a vector, with Gaussian noise.")
    sigma: Annotated[float | Solve, Number(SCALE, blank=True)] = Field(
        description="The standard deviation σ of the noise on each number, in its unit."
    )
    sensitivity: Sensitivity = Field(
        default=1.0, description="The maximum change of the released vector, in Euclidean norm, if one record changes."
    )


class LaplaceMechanism(MechanismKind):
    """Numbers with Laplace noise, in their own unit."""

    aliases = "laplace-mechanism laplacian double-exponential"
    form_fields = "moved scale sensitivity"

    kind: Literal["laplace"] = Field(description="Numbers with Laplace noise.")
    scale: Annotated[float | Solve, Number(SCALE, blank=True)] = Field(
        description="The scale b of the noise, in the unit of the number; its standard deviation is b√2."
    )
    sensitivity: Sensitivity = Field(default=1.0, description=f"{SENSITIVITY_TEXT} {TOTAL_TEXT}")
    moved: Moved = Field(default=1, description=MOVED_TEXT)


class OnLattice(MechanismKind):
    """Numbers that are multiples of a step, with noise that is a multiple of it too."""

    step: Annotated[float, Number(SCALE)] = Field(
        default=1.0,
        description="The distance between neighbouring values; the released numbers and their noise are multiples of "
        "it. 1 for integers.",
    )
    sensitivity: Sensitivity = Field(default=1.0, description=f"{SENSITIVITY_TEXT} A multiple of step.")
    moved: Moved = Field(default=1, description=MOVED_TEXT)

    @property
    def step_of_noise(self) -> float | None:
        """The step of the released numbers."""
        return self.step

    def shift(self) -> int:
        """Return the sensitivity in steps."""
        return int(self._steps())

    def in_steps(self, size: float) -> float:
        """Return a size (a scale) in steps, as the double of which the decimal is next to it, below."""
        return decimal_beside(Fraction(repr(size)) / Fraction(repr(self.step)), -math.inf)

    def _steps(self) -> Fraction:
        return Fraction(repr(self.sensitivity)) / Fraction(repr(self.step))

    def problems(self, node: Placed) -> Iterator[Problem]:
        """Report a sensitivity that is no whole number of steps, or too many of them."""
        if number_or_none(self.sensitivity) is None or number_or_none(self.step) is None:
            return
        steps, path = self._steps(), node.at("mechanism", "sensitivity")
        if steps.denominator != 1:
            message = (
                f"the sensitivity is {float(steps):.6g} steps of {self.step:.6g}, but values on a lattice change by whole "
                "steps: give the largest change as a multiple of step"
            )
            yield problem("contradiction", path, message)
        elif int(steps) not in SHIFT:
            message = f"the sensitivity is {int(steps):_} steps; their number must be {SHIFT.describe()}"
            yield problem("out-of-range", path, message)


_UNSOLVED = (
    "no search is implemented for discrete Gaussian noise, because it is not proven that more of it is always more private: "
    "solve for the sigma of a gaussian mechanism, which is nearly the same from a few steps on, and claim this ε and δ with it"
)


class DiscreteGaussian(OnLattice):
    """Integers, or multiples of a step, with discrete Gaussian noise (Canonne, Kamath & Steinke 2020)."""

    aliases = "gaussian-discrete discrete-normal dgauss discretegaussian"
    form_fields = "moved sensitivity sigma step"
    bounded_loss = False

    kind: Literal["discrete-gaussian"] = Field(description="Integers with discrete Gaussian noise.")
    sigma: Annotated[float, Number(SCALE, unsolved=_UNSOLVED)] = Field(
        description="The parameter σ of the noise, in the unit of the number: x has probability proportional to "
        "exp(−x²/(2σ²)). The noise must be drawn from this law itself: a sum of discrete Gaussians of several parties "
        "does not have it."
    )


class DiscreteLaplace(OnLattice):
    """Integers, or multiples of a step, with discrete Laplace (two-sided geometric) noise."""

    aliases = "geometric two-sided-geometric double-geometric laplace-discrete discretelaplace"
    form_fields = "moved scale sensitivity step"

    kind: Literal["discrete-laplace"] = Field(description="Integers with discrete Laplace noise.")
    scale: Annotated[float | Solve, Number(SCALE, blank=True)] = Field(
        description="The scale b of the noise, in the unit of the number: x has probability proportional to exp(−|x|/b)."
    )


_PARTIES_TEXT = (
    "The number of parties that add such noise to the sum, each its own, as under secure aggregation. Parties that drop out, "
    "or share their noise with whoever sees the sum, do not count."
)


class Skellam(OnLattice):
    """Integers, or multiples of a step, with Skellam noise: the difference of two independent Poisson variables.

    The sum of the noises of several parties is Skellam noise again.
    """

    aliases = "skellam-noise symmetric-skellam poisson-difference distributed-skellam"
    bounded_loss = False

    kind: Literal["skellam"] = Field(description="Integers with Skellam noise, of one or several parties.")
    variance: Annotated[float | Solve, Number(VARIANCE, blank=True)] = Field(
        description="The variance of the noise of one party, in the squared unit of the number: in steps, the noise is the "
        "difference of two independent Poisson variables with a mean of half the variance each."
    )
    parties: Annotated[int, Number(PARTIES, whole=True)] = Field(default=1, description=_PARTIES_TEXT)

    def total(self, variance: float) -> float:
        """Return the variance of all parties' noise in squared steps from that of one, as the double next to it, below."""
        return decimal_beside(self.parties * Fraction(repr(variance)) / Fraction(repr(self.step)) ** 2, -math.inf)

    def searched(self, blank: str) -> tuple[float, float]:
        """Return the variances of one party that are tried: those for which the core has the profile of all of them."""
        least, most = (end * self.step**2 / self.parties for end in (1e-6, 1e8 * (1.0 - 1e-12)))
        return max(least, VARIANCE.minimum), min(most, VARIANCE.maximum)


class DistributedDiscreteGaussian(OnLattice):
    """A sum of integers, or of multiples of a step, to which several parties add discrete Gaussian noise each.

    The sum of their noises is not discrete Gaussian (Kairouz, Liu & Steinke 2021).
    """

    aliases = "ddgauss sum-of-discrete-gaussians distributed-gaussian distributed-discrete-normal ddg"
    bounded_loss = False

    kind: Literal["distributed-discrete-gaussian"] = Field(
        description="A sum of integers with the discrete Gaussian noise of several parties."
    )
    sigma: Annotated[float, Number(SCALE, unsolved=_UNSOLVED)] = Field(
        description="The parameter σ of the noise of one party, in the unit of the number: x has probability proportional to "
        "exp(−x²/(2σ²))."
    )
    parties: Annotated[int, Number(PARTIES, whole=True)] = Field(description=_PARTIES_TEXT)


#: How far the sum of the probabilities may be from 1; they are divided by it.
_WITHIN = 1e-9


class MixtureOfGaussians(MechanismKind):
    """A vector with Gaussian noise, to which a record contributes at most s_j in norm with probability p_j."""

    aliases = "gaussian-mixture mixture-of-gaussian mog mixture-gaussian mixtureofgaussians"
    form_fields = "probabilities sensitivities sigma"
    bounded_loss = False

    kind: Literal["mixture-of-gaussians"] = Field(
        description="A vector with Gaussian noise, to which a record contributes a random amount."
    )
    sigma: Annotated[float | Solve, Number(SCALE, blank=True)] = Field(
        description="The standard deviation σ of the noise on each number, in its unit."
    )
    sensitivities: Annotated[tuple[Annotated[float, Number(CONTRIBUTION)], ...], Items(MIXTURE)] = Field(
        description="The possible contributions of a record: each is a bound on their Euclidean norm. 0 is none."
    )
    probabilities: Annotated[tuple[Annotated[float, Number(MIXTURE_PROBABILITY)], ...], Items(MIXTURE)] = Field(
        description="The probability of each contribution. They add up to 1."
    )

    def problems(self, node: Placed) -> Iterator[Problem]:
        """Report lists of different lengths, probabilities that do not add up to 1, and no contribution at all."""
        path, lists = node.at("mechanism", "probabilities"), (self.sensitivities, self.probabilities)
        if not all(isinstance(one, tuple) and None not in map(number_or_none, one) for one in lists):
            # An entry that is no number has a problem of its own.
            return
        if len(self.probabilities) != len(self.sensitivities):
            message = (
                f"there are {len(self.sensitivities)} sensitivities and {len(self.probabilities)} probabilities: give one "
                "probability for each sensitivity"
            )
            yield problem("contradiction", path, message, allowed=f"{len(self.sensitivities)} probabilities")
            return
        total = math.fsum(self.probabilities)
        if abs(total - 1.0) > _WITHIN:
            message = (
                f"the probabilities add up to {total:.10g}, and must add up to 1: if a record may contribute nothing, give this "
                "as sensitivity 0 with its probability"
            )
            yield problem("contradiction", path, message, allowed="probabilities that add up to 1")
        if not any(self.sensitivities):
            message = "every sensitivity is 0, so that nothing of a record is released: leave this phase out"
            yield problem("contradiction", node.at("mechanism", "sensitivities"), message)

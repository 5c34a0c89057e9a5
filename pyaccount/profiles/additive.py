"""Profiles of numbers and vectors that are released with noise."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from pyaccount.profiles.base import Graded, ProfileKind, Rounds


@dataclass(frozen=True, slots=True)
class GaussianProfile(ProfileKind):
    """N(s, σ²) against N(0, σ²)."""

    constructor: ClassVar[str] = "gaussian"
    closed: ClassVar[bool] = True

    sensitivity: float
    noise_multiplier: float

    def graded(self) -> Graded:
        """Return the sensitivity and the noise; every record takes part."""
        return Graded(self.sensitivity, 1.0, self.noise_multiplier)

    def regraded(self, rate: float, noise: float) -> GaussianProfile:
        """Return the profile with other noise."""
        return GaussianProfile(self.sensitivity, noise)


@dataclass(frozen=True, slots=True)
class LaplaceProfile(ProfileKind):
    """Lap(s, b) against Lap(0, b)."""

    constructor: ClassVar[str] = "laplace"
    called: ClassVar[str | None] = "Laplace noise"

    sensitivity: float
    scale: float


@dataclass(frozen=True, slots=True)
class DiscreteLaplaceProfile(ProfileKind):
    """The law proportional to e^(−|x|/b) on the integers, moved by a number of steps."""

    constructor: ClassVar[str] = "discrete_laplace"
    called: ClassVar[str | None] = "discrete Laplace noise"

    shift: int
    scale: float


@dataclass(frozen=True, slots=True)
class DiscreteGaussianProfile(ProfileKind):
    """The law proportional to e^(−x²/2σ²) on the integers, moved by a number of steps."""

    constructor: ClassVar[str] = "discrete_gaussian"
    called: ClassVar[str | None] = "discrete Gaussian noise"

    shift: int
    sigma: float


@dataclass(frozen=True, slots=True)
class MixtureProfile(ProfileKind):
    """Σ_j p_j N(s_j, σ²) against N(0, σ²); `reverse` is the direction add."""

    constructor: ClassVar[str] = "mixture"
    called: ClassVar[str | None] = "a random contribution with Gaussian noise"

    probabilities: tuple[float, ...]
    sensitivities: tuple[float, ...]
    sigma: float
    reverse: bool


def multiplier_of(rounds: tuple[Rounds, ...]) -> Fraction:
    """Return σ/s, exactly, of rounds that are one Gaussian mechanism."""
    (only,) = rounds
    assert isinstance(only.profile, GaussianProfile)
    assert only.count == 1
    return Fraction(only.profile.noise_multiplier) / Fraction(only.profile.sensitivity)


def merged(rounds: tuple[Rounds, ...], *, rounding: float) -> tuple[Rounds, ...]:
    """Return the rounds with all Gaussian ones as one, rounded up (`rounding` is 1) or down (−1).

    The composition of Gaussian mechanisms with sensitivities s_i and noise σ_i is exactly the Gaussian mechanism with (s/σ)² =
    Σ (s_i/σ_i)² (Dong, Roth & Su 2022, Corollary 3.3).
    """
    gaussians = [(item.profile, item.count) for item in rounds if isinstance(item.profile, GaussianProfile)]
    if not gaussians:
        return rounds
    squares = math.fsum(count * (one.sensitivity / one.noise_multiplier) ** 2 for one, count in gaussians)
    # Quotient, square, product, sum, root and the last product err by less than 5 units of rounding; the ratio is moved by 8
    # to the safe side.
    ratio = math.sqrt(squares) * (1.0 + rounding * 4.0 * sys.float_info.epsilon)
    rest = tuple(item for item in rounds if not isinstance(item.profile, GaussianProfile))
    return (Rounds(GaussianProfile(ratio, 1.0), 1), *rest)

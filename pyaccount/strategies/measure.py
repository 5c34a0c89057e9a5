"""How good a strategy matrix is: the error of the prefix sums."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PrefixSumError:
    """The error of the noisy prefix sums at σ = 1; multiply by σ². Not a privacy figure: a measure of utility.

    `mean_square` is (1/n)‖AC⁻¹‖_F², A the all-ones lower triangle: the mean over rounds of the variance of the summed noise.
    `max_square` is the largest squared row norm of AC⁻¹: the largest of these variances.
    """

    mean_square: float
    max_square: float

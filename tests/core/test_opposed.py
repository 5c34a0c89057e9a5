"""One record set to zero while the rest of a fixed-size batch opposes it: the lower end against quadrature."""

import math
from collections.abc import Sequence

import mpmath
import numpy as np
import pytest
from scipy.special import ndtr  # type: ignore[import-untyped]

from pyaccount import _core

DATASET, BATCH = 100, 7


def densities(y: np.ndarray, noise_multiplier: float) -> tuple[np.ndarray, np.ndarray]:
    """Return P and Q of one round, from the data sets: the batch's sum plus what the other records always add."""
    drawn = BATCH / DATASET

    def normal(at: float) -> np.ndarray:
        return np.exp(-0.5 * ((y - at) / noise_multiplier) ** 2) / (noise_multiplier * math.sqrt(2.0 * math.pi))

    with_record = (1.0 - drawn) * normal(-BATCH) + drawn * normal(-(BATCH - 1) + 1)
    zeroed = (1.0 - drawn) * normal(-BATCH) + drawn * normal(-(BATCH - 1))
    return with_record, zeroed


@pytest.mark.parametrize("noise_multiplier", [0.4, 1.0, 4.0])
def test_one_round_is_that_of_the_two_data_sets(noise_multiplier: float) -> None:
    profile = _core.RoundProfile.opposed(DATASET, BATCH, noise_multiplier)
    share, drawn, c = BATCH / DATASET, mpmath.mpf(BATCH) / DATASET, 1 / mpmath.mpf(noise_multiplier)

    def difference(tails: Sequence[float], alpha: float) -> float:
        return float((1 - drawn) * tails[0] + drawn * tails[2] - alpha * ((1 - drawn) * tails[0] + drawn * tails[1]))

    # Take thresholds of a grid, in doubles first, and those that may be the best at high precision.
    thresholds = np.linspace(-8.0, 12.0, 1201)
    tails_of = ndtr(np.arange(3) / noise_multiplier - thresholds[:, None])
    for epsilon in (-0.2, -0.05, -0.01, -1e-3, 0.0, 0.01, 0.3, 1.0, 3.0):
        alpha = math.exp(epsilon)
        roughly = tails_of @ [(1.0 - alpha) * (1.0 - share), -alpha * share, share]
        near = thresholds[roughly >= roughly.max() - 1e-12]
        exact = (difference([mpmath.ncdf(k * c - threshold) for k in range(3)], alpha) for threshold in near)
        best = max(-math.expm1(epsilon), *exact)
        delta, error, _, _ = _core.Inspection.profile(profile, epsilon)
        # The oracle uses a rounded α.
        assert delta + error >= best - 1e-15
        # The best half-line of a grid has an error of second order in the grid's spacing.
        assert delta - error <= best + 1e-4


def test_a_supporting_line_lies_below_the_profile() -> None:
    profile = _core.RoundProfile.opposed(DATASET, BATCH, 1.0)
    points = {epsilon: _core.Inspection.profile(profile, epsilon) for epsilon in np.linspace(-1.0, 3.0, 81)}
    for at, (delta, error, slope, slope_error) in points.items():
        for there, (other, other_error, _, _) in points.items():
            line = delta - error - (slope - math.copysign(slope_error, there - at)) * math.expm1(there - at)
            assert line <= other + other_error + 2.0 * slope_error * abs(math.expm1(there - at)) + 1e-15


@pytest.mark.parametrize("noise_multiplier", [0.7, 1.5])
def test_two_rounds_stay_below_the_truth_and_near_it(noise_multiplier: float) -> None:
    profile = _core.RoundProfile.opposed(DATASET, BATCH, noise_multiplier)
    # Use the trapezoidal rule on outcomes of both rounds; the tails are beyond the grid.
    y, step = np.linspace(-BATCH - 10.0 * noise_multiplier, -BATCH + 2.0 + 10.0 * noise_multiplier, 1501, retstep=True)
    p, q = densities(y, noise_multiplier)
    for epsilon in (0.0, 0.2, 1.0, 2.0):
        exact = float(np.maximum(np.outer(p, p) - math.exp(epsilon) * np.outer(q, q), 0.0).sum() * step * step)
        found = _core.answer_all([([(profile, 2)], epsilon, None, 1e-5)], threads=2)[0]
        assert found.lower <= exact * (1.0 + 1e-4)
        # Half-lines ignore what losses below zero would add, which is little.
        assert found.lower >= 0.98 * exact

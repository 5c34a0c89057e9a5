"""One record set to zero while the rest of a fixed-size batch opposes it: the lower end against quadrature."""

import math

import numpy as np
import pytest

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


def hockey_stick(p: np.ndarray, q: np.ndarray, step: float, epsilon: float) -> float:
    """Return ∫(p − e^ε q)_+ on a grid; the error is of second order in the step, where the difference changes sign."""
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum() * step)


@pytest.mark.parametrize("noise_multiplier", [0.4, 1.0, 4.0])
def test_one_round_is_that_of_the_two_data_sets(noise_multiplier: float) -> None:
    """In both orders, on both sides of ε = 0: of {P > αQ} a half-line or what is outside of an interval."""
    profile = _core.RoundProfile.opposed(DATASET, BATCH, noise_multiplier)
    reverse = profile.reversed()
    assert reverse is not None
    wide = 12.0 * noise_multiplier
    y, step = np.linspace(-BATCH - wide, -BATCH + 2.0 + wide, 400_001, retstep=True)
    p, q = densities(y, noise_multiplier)
    for epsilon in (-0.4, -0.1, -0.05, -0.01, -1e-3, 0.0, 1e-3, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0):
        for one, (first, second) in ((profile, (p, q)), (reverse, (q, p))):
            delta, error, _, _ = _core.Inspection.profile(one, epsilon)
            assert error < 1e-12
            assert delta == pytest.approx(hockey_stick(first, second, step, epsilon), abs=1e-9 + error)


@pytest.mark.parametrize("noise_multiplier", [0.4, 4.0])
def test_the_largest_loss_of_an_added_record_is_where_the_ratio_is_least(noise_multiplier: float) -> None:
    reverse = _core.RoundProfile.opposed(DATASET, BATCH, noise_multiplier).reversed()
    assert reverse is not None
    y = np.linspace(-BATCH - 4.0 * noise_multiplier, -BATCH + 2.0 + 4.0 * noise_multiplier, 400_001)
    p, q = densities(y, noise_multiplier)
    largest = float(np.log(q / p).max())
    before, after = (_core.Inspection.profile(reverse, largest * (1.0 + change)) for change in (-1e-3, 1e-6))
    assert before[0] > before[1]
    assert after == (0.0, 0.0, 0.0, 0.0)


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
        assert exact * (1.0 - 1e-3) <= found.lower <= exact * (1.0 + 1e-4)

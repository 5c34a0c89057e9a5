"""All rounds of fixed-size batches as one: the largest δ over adaptive gradients lies between what was known before.

Two concrete data sets are below it, and the composition of the supremum at each α is above it. The core's own tests have the
theorem's oracles: quadrature over triangles, a simulated attack, and every strategy of small games.
"""

import math

import numpy as np
import pytest

from pyaccount import _core
from pyaccount.errors import DomainError
from pyaccount.profiles import (
    CompositionProfile,
    CopiesProfile,
    DisplacedProfile,
    FixedSizeRunProfile,
    GaussianProfile,
    OpposedProfile,
    ProfileKind,
    Rounds,
)

SETTINGS = [(100, 1, 1.0, 100), (20, 1, 2.0, 100), (2, 1, 3.0, 20), (1000, 3, 0.6, 50)]


def _phase(dataset: int, batch: int, noise: float, count: int) -> tuple[str, int, int, int, int, float, int]:
    """Return so many rounds of a fixed size, of one record."""
    return ("fixed-size", 1, dataset, batch, 0, noise, count)


def _epsilon(rounds: list[tuple[ProfileKind, int]], delta: float) -> _core.ProvenInterval:
    """Return the interval for ε of a composition."""
    built = [(profile.build(), count) for profile, count in rounds]
    (answer,) = _core.answer_all([(built, None, delta, 1e-4)])
    return answer


@pytest.mark.nightly(but=["0.001-20-1-2.0-100", "1e-05-100-1-1.0-100", "1e-10-2-1-3.0-20"])
@pytest.mark.parametrize(("dataset", "batch", "noise", "count"), SETTINGS)
@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-10])
def test_the_run_lies_between_two_data_sets_and_the_envelope(
    dataset: int, batch: int, noise: float, count: int, delta: float
) -> None:
    """The intervals are in order, and the new one is narrow."""
    run = (_phase(dataset, batch, noise, count),)
    pair = CopiesProfile("fixed-size", 1, dataset, batch, 0, 2.0, noise, reverse=False)
    envelope = DisplacedProfile("replaced", "fixed-size", 1, dataset, batch, 0, noise, reverse=False)
    fixed, above = _epsilon([(pair, count)], delta), _epsilon([(envelope, count)], delta)
    low = _epsilon([(FixedSizeRunProfile(run, delta, None, below=True), 1)], delta).lower
    high = _epsilon([(FixedSizeRunProfile(run, delta, None, below=False), 1)], delta).upper
    # From below a step of the lattice may be lost.
    assert fixed.lower * (1 - 2e-3) <= low <= high <= above.upper * (1 + 5e-3)
    assert high - low <= 0.01 * high


@pytest.mark.nightly(but=["0.001-20-1-2.0-100", "1e-05-100-1-1.0-100", "1e-10-2-1-3.0-20"])
@pytest.mark.parametrize(("dataset", "batch", "noise", "count"), SETTINGS)
@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-10])
def test_that_of_a_record_set_to_zero_does_too(
    dataset: int, batch: int, noise: float, count: int, delta: float
) -> None:
    """In both directions; the interval of the larger one is narrow."""
    run = (_phase(dataset, batch, noise, count),)
    aligned = CopiesProfile("fixed-size", 1, dataset, batch, 0, 1.0, noise, reverse=False)
    found = []
    for add, pair in ((False, OpposedProfile(dataset, batch, noise)), (True, aligned)):
        envelope = DisplacedProfile("zeroed", "fixed-size", 1, dataset, batch, 0, noise, reverse=add)
        fixed, above = _epsilon([(pair, count)], delta), _epsilon([(envelope, count)], delta)
        low = _epsilon([(FixedSizeRunProfile(run, delta, None, True, True, add), 1)], delta).lower
        high = _epsilon([(FixedSizeRunProfile(run, delta, None, False, True, add), 1)], delta).upper
        assert low <= high
        found.append((low, high, fixed.lower, above.upper))
    # The lattice is that of the larger direction.
    low, high, least, most = max(found)
    assert least * (1 - 2e-3) <= low <= high <= most * (1 + 5e-3)
    assert high - low <= 0.01 * high


def test_a_run_composes_with_other_rounds() -> None:
    """From above the run is a profile as any other: it can be composed with a Gaussian mechanism, and that costs more."""
    run, other = FixedSizeRunProfile((_phase(100, 1, 1.0, 20),), 1e-5, None, below=False), GaussianProfile(1.0, 2.0)
    both = CompositionProfile.of((Rounds(run, 1), Rounds(other, 1)), below=False)
    alone = _epsilon([(run, 1)], 1e-5).upper
    together = _epsilon([(run, 1), (other, 1)], 1e-5)
    assert alone < together.upper
    assert _epsilon([(both, 1)], 1e-5).upper == pytest.approx(together.upper, rel=5e-3)


def test_every_error_is_counted_and_small() -> None:
    """A curve states its errors in units of δ, and falls."""
    curve = _core.FixedSizeCurve([_phase(100, 1, 1.0, 50)], zeroed=False, delta=1e-6, below=False)
    errors, (spacing, tilt, length, laws) = curve.errors(5.0), curve.lattice
    (points,) = curve.points
    values = [delta for _, delta in points]
    assert values == sorted(values, reverse=True)
    assert all(0.0 <= error < 1e-9 for error in errors)
    assert spacing > 0.0
    assert tilt > 0.0
    assert math.log2(length).is_integer()
    assert laws >= 4


@pytest.mark.parametrize("phase", [(10, 10, 1.0, 1), (10, 0, 1.0, 1), (10, 1, 0.0, 1), (10, 1, 1.0, 0)])
def test_what_the_theorem_does_not_cover_is_refused(phase: tuple[int, int, float, int]) -> None:
    """A batch that is the whole data set, an empty one, no noise, and no round."""
    with pytest.raises(DomainError):
        FixedSizeRunProfile((_phase(*phase),), 1e-5, None, below=False).build()


# ---- One record set to zero while the rest of a fixed-size batch opposes it: the lower end against quadrature


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

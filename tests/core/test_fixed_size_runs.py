"""All rounds of fixed-size batches as one: the largest δ over adaptive gradients lies between what was known before.

Two concrete data sets are below it, and the composition of the supremum at each α is above it. The core's own tests have the
theorem's oracles: quadrature over triangles, a simulated attack, and every strategy of small games.
"""

import math

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

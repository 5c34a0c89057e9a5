"""How many samples a search for the lowest certified value takes, with tests whose samples are known beforehand."""

from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pyaccount.execute.sampling.fixed_sequence import CHEAP, GridSearch, SequenceResult, fixed_sequence_test, grids
from pyaccount.execute.sampling.tests_of_claims import Acceptance

#: The samples of a test at a distance of 1; nearer values take more, by the square of the inverse distance.
EASIEST = 2000.0


def searched(tolerance: float, cost: float) -> SequenceResult:
    """Return a search whose tests all accept, with that many samples."""

    def claim(value: float) -> tuple[Any, float, Acceptance]:
        raise AssertionError("asked by no test here")

    def test(value: float, budget: float | None) -> tuple[Any, ...]:
        samples = round(EASIEST / (value - 1.0) ** 2)
        if budget is not None and samples > budget:
            return ()
        return (SimpleNamespace(samples=samples, accepted=True),)

    return fixed_sequence_test(GridSearch(1.0, 1e9, grids(tolerance, starts=2), claim, cost), test)


def spent(found: SequenceResult) -> int:
    return sum(cast("Any", one).samples for one in found.tests)


@pytest.mark.parametrize("cost", [10.0, 1e3, 1e5])
def test_a_wider_tolerance_takes_no_longer(cost: float) -> None:
    """Without a limit, each test below the tolerance would take as many samples as all tests before it."""
    cheap = CHEAP * 1e9 / cost
    tolerances = [0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.5]
    for tolerance in tolerances:
        found = searched(tolerance, cost)
        assert found.value is not None
        assert found.value <= 1.0 + tolerance * (1 + 1e-12)
        asked = sum(round(EASIEST / distance**2) for distance in grids(tolerance, starts=2)[0].asked)
        assert asked <= spent(found) <= asked + max(asked, cheap)
    totals = [spent(searched(tolerance, cost)) for tolerance in tolerances]
    assert all(wide <= 1.01 * max(narrow, 2 * cheap) for narrow, wide in pairwise(totals))


def test_what_is_cheap_is_tested_down_to_the_least_distance() -> None:
    found = searched(0.1, 1.0)
    assert found.value == pytest.approx(1.00625)
    # A test this near is expensive here, and the ones before it count.
    dear = searched(0.1, 1e9 / (EASIEST / 0.05**2 + EASIEST / 0.025**2))
    assert dear.value == pytest.approx(1.025)

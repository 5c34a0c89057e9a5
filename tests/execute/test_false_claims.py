"""A small share of `benchmarks/false_claims.py`: false claims are accepted no more often than q, and true ones are accepted."""

import pytest
from false_claims import SETTINGS, accepted, most

RUNS, SOME = 100, 10


@pytest.mark.parametrize("name", SETTINGS)
def test_false_claims_are_seldom_accepted(name: str) -> None:
    assert accepted(SETTINGS[name](), 1.0 - 1e-6, RUNS, 3) <= most(RUNS)


@pytest.mark.parametrize("name", SETTINGS)
def test_true_claims_are_accepted_by_the_same_bets(name: str) -> None:
    """Without this the test above would prove nothing."""
    assert accepted(SETTINGS[name](), 1.5, SOME, 4) == SOME

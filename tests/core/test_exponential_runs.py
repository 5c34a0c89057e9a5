"""Mechanisms of bounded range in a row: between choices of t on a lattice, which need no interpolation, and other bounds."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from snapshots import Snapshot

from pyaccount._core import Deadline, RoundProfile, answer_all, most_exponential_runs
from pyaccount.errors import LimitError


def attained(r: float, runs: int, parts: int) -> NDArray[np.float64]:
    """Return δ at ε = i·r/parts, i ≥ 0, of the best choices of t among the multiples of r/parts: a bound from below.

    After each run α is at a node again, so nothing is interpolated. Nodes below 0 are computed as well, without reflection.
    """
    step = r / parts
    least, most = -parts * runs, parts * runs
    alphas = np.exp(step * np.arange(least - parts, most + parts + 1))
    values = np.maximum(0.0, 1.0 - alphas)
    for _ in range(runs):
        best = values.copy()
        inside = np.arange(parts, len(values) - parts)
        for j in range(parts + 1):
            t = j * step
            p = math.expm1(t - r) / math.expm1(-r)
            chosen = p * values[inside - j] + (1.0 - p) * values[inside + parts - j]
            best[inside] = np.maximum(best[inside], chosen)
        values = best
    return values[parts - least :][: most + 1]


@pytest.mark.parametrize(
    ("r", "runs", "parts"), [(0.2, 50, 32), (1.0, 2, 96), (0.01, 9, 64), (3.0, 6, 96), (0.7, 20, 48)]
)
def test_the_bound_is_just_above_what_choices_of_t_attain(r: float, runs: int, parts: int) -> None:
    profile, least = RoundProfile.exponential_runs(r, runs), attained(r, runs, parts)
    for i in range(0, len(least), max(1, len(least) // 150)):
        upper = profile.delta(i * r / parts)[1]
        assert least[i] * (1.0 - 1e-12) <= upper
        # Near the largest loss both lattices have only a few nodes left.
        if least[i] > 1e-4 and i + parts // 4 < len(least):
            assert upper <= 1.02 * least[i], (i, upper, least[i])


def test_fifty_runs_are_far_below_the_composition_and_zcdp() -> None:
    (composed,) = answer_all([([(RoundProfile.exponential(0.2), 50)], 3.0, None, 1e-3)])
    together = RoundProfile.exponential_runs(0.2, 50).delta(3.0)[1]
    assert composed.upper == pytest.approx(7.9e-5, rel=0.02)
    assert RoundProfile.zcdp(0.25).delta(3.0)[1] == pytest.approx(3.1e-5, rel=0.02)
    assert together == pytest.approx(6.8e-6, rel=0.02)


@pytest.mark.parametrize(("r", "runs"), [(0.02, 512), (0.2, 500), (0.5, 300), (5.0, 40), (0.001, 150)])
def test_far_losses_are_bounded_by_zcdp_and_by_the_largest_loss(r: float, runs: int) -> None:
    profile, known = RoundProfile.exponential_runs(r, runs), RoundProfile.zcdp(runs * r * r / 8.0)
    before = 1.0
    for share in np.linspace(0.0, 1.0, 300):
        upper = profile.delta(share * share * runs * r)[1]
        assert upper <= before
        # Chords between points beyond the nodes are a little above.
        assert upper <= known.delta(share * share * runs * r)[1] * 1.2 + 1e-299
        before = upper
    assert profile.delta(runs * r * (1.0 + 1e-12))[1] == 0.0


def test_blocks_compose_to_a_little_more_than_one_block() -> None:
    def epsilon(runs: int, count: int) -> float:
        (answer,) = answer_all([([(RoundProfile.exponential_runs(0.05, runs), count)], None, 1e-6, 1e-4)])
        return answer.upper

    one, two, many = epsilon(256, 1), epsilon(128, 2), epsilon(16, 16)
    assert one < two < 1.01 * one
    assert two < many < 1.05 * one


def test_what_cannot_be_computed_is_refused(snapshot: Snapshot) -> None:
    assert most_exponential_runs(0.2) == 512
    assert most_exponential_runs(1e5) == 1
    for r, runs in ((0.2, 513), (0.2, 0), (0.0, 3), (-1.0, 3), (math.nan, 3), (math.inf, 3), (1e5, 2)):
        snapshot.raised(RoundProfile.exponential_runs, r, runs)
    with Deadline(0.0), pytest.raises(LimitError):
        RoundProfile.exponential_runs(0.123, 500)

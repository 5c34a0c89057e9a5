"""Two branches of one run together are at least as private as the certified mechanism at σ/√2, checked by brute force.

The likelihood ratios of small runs are integrated on a grid. The rows before the branching are released once, later rows twice,
with the same participations and independent noise (the proof is at the head of pyaccount/training/key.py).
"""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from plain_documents import doc

import pyaccount

#: The points of a grid on each axis, by the number of axes, and how far the grid extends beyond the means, in units of σ.
POINTS, REACH = {1: 20001, 2: 1501, 3: 161}, 7.0
#: The relative error of the grids, whose largest step is a tenth of a standard deviation.
LEFT = 1e-3
Pattern = tuple[float, tuple[int, ...]]


def divergence(
    patterns: list[Pattern], matrix: Any, sigma: float, epsilon: float, *, rows: list[int], add: bool
) -> float:
    """Return H_{e^ε} of Σ_s π_s N(rows of Cs, σ²) against N(0, σ²), or reversed, by the trapezoidal rule."""
    means = [(chance, [float((matrix @ np.array(pattern))[row]) for row in rows]) for chance, pattern in patterns]
    largest = [max(mean[place] for _, mean in means) for place in range(len(rows))]
    axes = [np.linspace(-REACH * sigma, top + REACH * sigma, POINTS[len(rows)]) for top in largest]

    def density(mean: list[float]) -> Any:
        found = np.ones(())
        for axis, center in zip(axes, mean, strict=True):
            one = np.exp(-np.square((axis - center) / sigma) / 2.0) / (sigma * math.sqrt(2.0 * math.pi))
            found = np.multiply.outer(found, one * (axis[1] - axis[0]))
        return found

    with_record = sum(chance * density(mean) for chance, mean in means)
    without = density([0.0] * len(rows))
    p, q = (without, with_record) if add else (with_record, without)
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


def poisson(rounds: int, rate: float) -> list[Pattern]:
    return [
        (math.prod(rate if taken else 1.0 - rate for taken in pattern), pattern)
        for pattern in itertools.product((0, 1), repeat=rounds)
    ]


#: The patterns of a record, C, and the round from which there are two branches.
CASES: dict[str, tuple[list[Pattern], Any, int]] = {
    "one round": (poisson(1, 0.3), np.eye(1), 0),
    "the second of two rounds": (poisson(2, 0.3), np.eye(2), 1),
    "one of two rounds, correlated": ([(0.5, (1, 0)), (0.5, (0, 1))], np.array([[0.8, 0.0], [0.6, 0.8]]), 1),
    "b-min-sep, correlated": ([(0.3, (1, 0)), (0.21, (0, 1)), (0.49, (0, 0))], np.array([[0.8, 0.0], [0.6, 1.0]]), 1),
}


@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_two_branches_are_what_is_certified_at_a_smaller_noise(name: str, add: bool) -> None:
    patterns, matrix, parted = CASES[name]
    rounds = list(range(len(matrix)))
    sigma = 1.0
    for epsilon in (0.0, 0.3, 1.5):
        both = divergence(patterns, matrix, sigma, epsilon, rows=[*rounds, *rounds[parted:]], add=add)
        bound = divergence(patterns, matrix, sigma / math.sqrt(2.0), epsilon, rows=rounds, add=add)
        single = divergence(patterns, matrix, sigma, epsilon, rows=rounds, add=add)
        # The loss of an added record has a maximum, beyond which δ is 0.
        assert single < both or (add and both == 0.0)
        assert both <= bound * (1.0 + LEFT)
        # If every round is released twice, both are equal.
        if parted == 0:
            assert both == pytest.approx(bound, rel=LEFT)


def delta(sigma: float, rounds: int) -> float:
    found = pyaccount.certify(
        doc(
            "name=branches adjacency=add-remove epsilon=1.0 delta=solve sampling_probability=0.01 sampler=poisson",
            iterations=rounds,
            multiplier=sigma,
        )
    ).delta
    assert found is not None
    return found


def test_two_branches_are_not_two_independent_rounds() -> None:
    """The numbers in docs/training.md are right: one batch in both branches is much worse than separate batches."""
    branches = divergence(poisson(1, 0.01), np.eye(1), 1.0, 1.0, rows=[0, 0], add=False)
    assert branches == pytest.approx(4.9e-6, rel=0.02)
    assert delta(1.0 / math.sqrt(2.0), 1) == pytest.approx(branches, rel=1e-2)
    assert delta(1.0, 2) == pytest.approx(5.5e-9, rel=0.01)

"""Strategies for records that take part so far apart: against the enumeration of all patterns and a search without gradients."""

import math
from itertools import combinations, pairwise

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize  # type: ignore[import-untyped]

from pyaccount.strategies.measure import Workload
from pyaccount.strategies.toeplitz import optimal_spaced, optimal_toeplitz

Array = NDArray[np.float64]

N = 6
RATES = (1.0, 3.0, 0.5, 2.0, 1.0, 4.0)


def matrix_of(c: Array) -> Array:
    return np.array([[c[i - j] if 0 <= i - j < len(c) else 0.0 for j in range(N)] for i in range(N)])


def enumerated(c: Array, apart: int, most: int, workload: Workload) -> float:
    """ln of the error times the largest square over all patterns of rounds, by linear algebra."""
    matrix = matrix_of(c)
    patterns = [
        rounds
        for count in range(1, most + 1)
        for rounds in combinations(range(N), count)
        if all(later - earlier >= apart for earlier, later in pairwise(rounds))
    ]
    moved = max(float(np.square(matrix[:, rounds].sum(axis=1)).sum()) for rounds in patterns)
    sums = np.tril(np.ones((N, N))) * (workload.learning_rates or 1.0)
    rows = np.square(sums @ np.linalg.inv(matrix)).sum(axis=1)
    return math.log(moved * float(rows.max() if workload.largest else rows.mean()))


def least(bands: int, apart: int, most: int, workload: Workload) -> float:
    """The least over columns c_j = Σ_{i≥j} d_i² (overlapping) or c_j = d_j², by a search without gradients."""

    def value(roots: Array) -> float:
        squares = np.square(roots) + 1e-12
        c = np.cumsum(squares[::-1])[::-1] if bands > apart else np.concatenate(([1.0], squares[1:]))
        return enumerated(c, apart, most, workload)

    starts = np.random.default_rng(3).random((2, bands)) + 0.1
    options = {"xatol": 1e-4, "fatol": 1e-7, "maxfev": 400}
    return min(float(optimize.minimize(value, one, method="Nelder-Mead", options=options).fun) for one in starts)


@pytest.mark.parametrize(
    ("bands", "apart", "most", "workload"),
    [
        (3, 3, 2, Workload()),
        (2, 4, 2, Workload()),
        (3, 1, 2, Workload()),
        (4, 2, 2, Workload()),
        (4, 2, 3, Workload(largest=True)),
        (2, 3, 2, Workload(learning_rates=RATES)),
    ],
)
def test_the_error_is_the_least_that_a_plain_search_finds(
    bands: int, apart: int, most: int, workload: Workload
) -> None:
    found = optimal_spaced(N, bands, apart, most, workload)
    assert math.isclose(float(np.square(found.column).sum()), 1.0, rel_tol=1e-12)
    assert found.gradient_norm < 1e-6
    value = enumerated(found.column, apart, most, workload)
    assert math.isclose(value, least(bands, apart, most, workload), abs_tol=1e-4)
    assert value <= enumerated(optimal_toeplitz(N, bands, workload), apart, most, workload) + 1e-9
    if bands > apart:
        assert all(later <= earlier for earlier, later in pairwise(found.column.tolist()))


def test_the_optimum_for_the_norm_is_optimal_where_all_columns_are_whole() -> None:
    found = optimal_spaced(40, 5, 10, 4)
    assert np.allclose(found.column, optimal_toeplitz(40, 5), rtol=1e-5)


def test_a_descent_can_be_stopped() -> None:
    def stop() -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        optimal_spaced(40, 10, 5, 3, step=stop)

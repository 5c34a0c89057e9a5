"""Errors under workloads: against the optimizer's recursion run on the noise, and searches against plain ones."""

import math
from collections.abc import Callable

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize  # type: ignore[import-untyped]
from snapshots import Snapshot

from pyaccount.strategies.dense import dense_error
from pyaccount.strategies.inverse import blt, optimal_blt
from pyaccount.strategies.measure import PREFIX_SUMS, Workload
from pyaccount.strategies.toeplitz import (
    banded_square_root,
    log_objective,
    normalized,
    optimal_toeplitz,
    toeplitz_error,
)

Array = NDArray[np.float64]

N = 24
#: Warm-up and cosine decay; also one that goes up and down with a pause.
COSINE = tuple(min(1.0, (t + 1) / 5) * (1.01 + math.cos(math.pi * t / N)) for t in range(N))
BUMPY = tuple(0.0 if t % 7 == 3 else 0.3 + (t * 5 % 8) for t in range(N))
WORKLOADS = {
    "prefix": Workload(),
    "momentum": Workload(momentum=0.9),
    "average": Workload(ema_decay=0.95),
    "both": Workload(momentum=0.5, ema_decay=0.8),
    "rates": Workload(learning_rates=COSINE),
    "bumpy": Workload(learning_rates=BUMPY),
    "all": Workload(momentum=0.7, ema_decay=0.9, learning_rates=COSINE),
}


def matrix_of(c: Array, n: int = N) -> Array:
    return np.array([[c[i - j] if 0 <= i - j < len(c) else 0.0 for j in range(n)] for i in range(n)])


def trained(workload: Workload, noise: Array) -> Array:
    """What the optimizer has after each round, if the sums are nothing but noise: SGD as a training loop has it."""
    rates = workload.learning_rates or (1.0,) * len(noise)
    step, iterate, average = (np.zeros(noise.shape[1]) for _ in range(3))
    seen = []
    for rate, row in zip(rates, noise, strict=True):
        step = workload.momentum * step + row
        iterate = iterate + rate * step
        average = workload.ema_decay * average + (1.0 - workload.ema_decay) * iterate
        seen.append(average)
    return np.array(seen)


def variances(workload: Workload, matrix: Array) -> Array:
    """The variance after each round: every independent number of the noise runs through C⁻¹ and the loop by itself."""
    return np.asarray(np.square(trained(workload, np.linalg.inv(matrix))).sum(axis=1))


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("c", [[1.0], [0.8, 0.4, 0.3], banded_square_root(N)], ids=["identity", "banded", "full"])
def test_errors_are_those_of_the_loop(name: str, c: Array) -> None:
    workload, matrix = WORKLOADS[name], matrix_of(np.array(c))
    expected = variances(workload, matrix)
    for error in (toeplitz_error(c, N, workload), dense_error(matrix, workload)):
        assert math.isclose(error.mean_square, expected.mean(), rel_tol=1e-12)
        assert math.isclose(error.max_square, expected.max(), rel_tol=1e-12)


def test_the_largest_variance_need_not_be_the_last() -> None:
    """Where a rate falls from one round to the next, anticorrelated noise takes back what it added."""
    found = variances(WORKLOADS["bumpy"], matrix_of(banded_square_root(N)))
    assert found.max() > found[-1]


@pytest.mark.parametrize("name", WORKLOADS)
def test_errors_of_a_matrix_without_structure(name: str) -> None:
    generator = np.random.default_rng(3)
    matrix = np.tril(generator.random((N, N)) * 0.3) + np.eye(N)
    expected, found = variances(WORKLOADS[name], matrix), dense_error(matrix, WORKLOADS[name])
    assert math.isclose(found.mean_square, expected.mean(), rel_tol=1e-10)
    assert math.isclose(found.max_square, expected.max(), rel_tol=1e-10)


def test_independent_noise_has_closed_forms() -> None:
    """Momentum β: Σ_s ((1 − β^{s+1})/(1 − β))²; averages with decay γ: Σ_s (1 − γ^{s+1})²; in 40 digits."""
    with mpmath.workdps(40):
        for workload, factor, scale in (
            (Workload(momentum=0.99), mpmath.mpf(0.99), 1 - mpmath.mpf(0.99)),
            (Workload(ema_decay=0.999), mpmath.mpf(0.999), mpmath.mpf(1)),
        ):
            squares = [((1 - factor ** (s + 1)) / scale) ** 2 for s in range(500)]
            mean = mpmath.fsum((500 - s) * one for s, one in enumerate(squares)) / 500
            found = toeplitz_error([1.0], 500, workload)
            assert math.isclose(found.mean_square, float(mean), rel_tol=1e-12)
            assert math.isclose(found.max_square, float(mpmath.fsum(squares)), rel_tol=1e-12)


def test_constant_rates_scale_the_error() -> None:
    one = toeplitz_error([0.8, 0.4], N, Workload(momentum=0.3))
    other = toeplitz_error([0.8, 0.4], N, Workload(momentum=0.3, learning_rates=(0.1,) * N))
    assert math.isclose(other.mean_square, 0.01 * one.mean_square, rel_tol=1e-12)
    assert math.isclose(other.max_square, 0.01 * one.max_square, rel_tol=1e-12)


def differences(function: Callable[[Array], float], at: Array, h: float) -> Array:
    return np.array([(function(at + one) - function(at - one)) / (2.0 * h) for one in h * np.eye(len(at))])


LARGEST = {"prefix, largest": Workload(largest=True), "both, largest": Workload(0.5, 0.8, largest=True)}


@pytest.mark.parametrize("name", WORKLOADS | LARGEST)
def test_the_objective_is_the_error_and_its_gradient(name: str) -> None:
    workload, c = (WORKLOADS | LARGEST)[name], np.array([0.9, 0.5, 0.2, 0.3])
    objective = log_objective(N, 4, workload=workload)
    value, gradient = objective(c)
    found = variances(workload, matrix_of(c))
    expected = found.max() if workload.largest else found.sum()
    assert math.isclose(value, math.log(expected) + math.log(float(c @ c)), rel_tol=1e-12)
    slopes = differences(lambda at: objective(at)[0], c, 1e-5)
    assert np.abs(slopes).max() > 0.05, "the test says something"
    assert np.allclose(gradient, slopes, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("name", WORKLOADS | LARGEST)
def test_the_optimum_is_that_of_a_plain_search(name: str) -> None:
    """Nelder and Mead on the variances of the loop, without gradients or power series."""
    workload = (WORKLOADS | LARGEST)[name]

    def error(tail: Array) -> float:
        c = np.array([1.0, *np.abs(tail)])
        found = variances(workload, matrix_of(c))
        return math.log((found.max() if workload.largest else found.mean()) * float(c @ c))

    least = optimize.minimize(error, [0.4, 0.2], method="Nelder-Mead", options={"xatol": 1e-5, "fatol": 1e-9})
    c = optimal_toeplitz(N, 3, workload)
    assert math.isclose(float(c @ c), 1.0, rel_tol=1e-12)
    assert math.isclose(error(c[1:] / c[0]), least.fun, abs_tol=1e-7)
    if workload != PREFIX_SUMS:
        usual = optimal_toeplitz(N, 3)
        assert error(usual[1:] / usual[0]) > least.fun + 1e-4, "workloads differ in what is optimal"


@pytest.mark.parametrize("name", ["momentum", "all"])
def test_blts_are_optimised_for_it(name: str) -> None:
    workload = WORKLOADS[name]

    def error(columns: Array) -> float:
        return toeplitz_error(normalized(columns), N, workload).mean_square

    found = error(blt(*optimal_blt(N, 2, workload=workload), N))
    assert found < error(blt(*optimal_blt(N, 2), N)) - 1e-4
    # No Toeplitz matrix has less.
    assert found > error(optimal_toeplitz(N, N, workload)) * (1.0 - 1e-9)


def test_errors_beyond_a_double_are_refused(snapshot: Snapshot) -> None:
    snapshot.raised(lambda: toeplitz_error([1.0], 3, Workload(learning_rates=(1e-200,) * 3)))


def test_words() -> None:
    assert {name: workload.words for name, workload in WORKLOADS.items()} == {
        "prefix": "prefix sums",
        "momentum": "iterates under momentum 0.9",
        "average": "moving averages of the iterates with decay 0.95",
        "both": "moving averages of the iterates with decay 0.8 under momentum 0.5",
        "rates": "iterates under the learning rates listed",
        "bumpy": "iterates under the learning rates listed",
        "all": "moving averages of the iterates with decay 0.9 under momentum 0.7 and the learning rates listed",
    }

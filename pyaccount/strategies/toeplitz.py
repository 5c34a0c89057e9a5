"""Banded Toeplitz strategies: the square root, the optimum, and the error of any of them.

C is lower triangular with C[i, j] = c_{i−j}, and A is the lower triangle of ones. Products of such matrices are
products of power series, so A·C⁻¹ is Toeplitz with the coefficients s of 1/((1 − x)·c(x)), and everything about an n×n
matrix follows from n numbers.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from pyaccount import _core
from pyaccount.strategies.measure import PREFIX_SUMS, Workload, WorkloadError
from pyaccount.strategies.sums import norm, quotient
from pyaccount.strategies.workload import mean_and_largest, numerator, quadratic

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    Vector = NDArray[np.float64]
    Objective = Callable[[Vector], tuple[float, Vector]]


def banded_square_root(bands: int) -> Vector:
    """Return the first coefficients of (1 − x)^{−1/2}, the square root of the matrix of prefix sums.

    c_0 = 1, c_j = c_{j−1}·(2j − 1)/(2j) for 0 < j < bands.

    Takes bands ≥ 1; returns `bands` coefficients, positive and strictly decreasing, not normalised. The relative error
    of c_j is at most about 3j·1.1e−16. Raises ValueError if bands < 1. Source: Kalinin and Lampert 2024
    (arXiv:2405.13763).
    """
    if bands < 1:
        raise ValueError(f"a strategy needs at least 1 band, got {bands}")
    j = np.arange(1, bands, dtype=np.float64)
    return np.concatenate(([1.0], np.cumprod((2.0 * j - 1.0) / (2.0 * j))))


def normalized(coefficients: ArrayLike) -> Vector:
    """Return c/‖c‖₂: the same strategy with largest column norm 1.

    Takes a vector of finite coefficients ≥ 0 with c_0 > 0, no longer than the matrix (‖c‖ is the norm of the first
    column only if that contains all of them); returns one of the same length. Accurate to a few units in the last place
    at any scale. Raises ValueError if the coefficients are not as described.
    """
    c = _checked(coefficients)
    c = c / c.max()  # the squares can neither overflow nor all underflow
    return np.asarray(c / norm(c))


def toeplitz_error(coefficients: ArrayLike, iterations: int, workload: Workload = PREFIX_SUMS) -> WorkloadError:
    """Return the error of the Toeplitz strategy with these coefficients, not normalised, for prefix sums or a workload.

    With s the series of 1/((1 − x)·c(x)) and n = iterations: mean_square = (1/n)·Σ_{j<n} (n − j)·s_j², max_square =
    Σ_{j<n} s_j² (the last row is the largest). For other workloads see `workload`.

    Takes a vector of finite coefficients ≥ 0 with c_0 > 0 and n ≥ 1; coefficients beyond the n-th are not in the matrix
    and are ignored. Time O(n·bands), with learning rates O(n²). Exact except for rounding, near n·1e−16 relative for a
    non-increasing c. Raises ValueError if the arguments are not as described, or if an error is outside the range of a
    double.
    """
    _at_least_one_iteration(iterations)
    c = _checked(coefficients)[:iterations]
    with np.errstate(over="ignore", invalid="ignore"):
        # Scaled to c_0 = 1, so that only a strategy with an extreme error leaves the range of a double.
        series = quotient(numerator(workload, iterations), c / c[0])
        return in_range(*mean_and_largest(workload, series), float(c[0]))


def in_range(mean_square: float, max_square: float, scale: float) -> WorkloadError:
    """Return the errors of scale·C from those of C: each is divided by scale².

    Raises ValueError if a result is not a positive finite double. A strategy with such an error, or so far from any
    usual normalisation, is a mistake, and an error of zero or infinity would be false.
    """
    mean_square, max_square = mean_square / scale / scale, max_square / scale / scale
    if not (0.0 < mean_square < math.inf and 0.0 < max_square < math.inf):
        raise ValueError(
            "the error of this strategy is outside the range of a double: "
            "the matrix is too close to singular, or scaled by an extreme factor"
        )
    return WorkloadError(mean_square, max_square)


def optimal_toeplitz(iterations: int, bands: int, workload: Workload = PREFIX_SUMS) -> Vector:
    """Return the non-negative banded Toeplitz strategy with the least error of a workload at unit column norm.

    Minimises (1/n)·‖A·C⁻¹‖_F²·‖c‖² over c ≥ 0 with `bands` coefficients, n = iterations, A the matrix of the workload
    (prefix sums: the lower triangle of ones); with `workload.largest` the largest squared row norm in place of the
    mean.

    Takes 1 ≤ bands ≤ iterations; returns `bands` coefficients with ‖c‖₂ = 1. Every result is a valid strategy and never
    worse than the banded square root. It is a stationary point of the logarithm of the objective (derivatives with
    respect to c, at c_0 = 1, below about 1e−7), found by a deterministic descent from the banded square root: the
    objective is within about 1e−12, relative, of its value at the exact stationary point, the coefficients within about
    1e−7 of it. That no other stationary point is lower is observed, not proven. Time O(n·bands) per step, with learning
    rates O(n²), some tens of steps. Raises ValueError if the arguments are out of range. Source: McKenna 2024
    (arXiv:2405.15913); the gradient is derived in `log_objective`.
    """
    from scipy import optimize  # type: ignore[import-untyped]  # known matrices do not need it

    _at_least_one_iteration(iterations)
    if not 1 <= bands <= iterations:
        raise ValueError(f"the bands of a strategy of {iterations} iterations are 1 to {iterations}, got {bands}")
    start = banded_square_root(bands)
    if bands == 1:
        return start
    objective = log_objective(iterations, bands, workload=workload)

    def free(tail: Vector) -> tuple[float, Vector]:
        # The objective does not depend on the scale of c, so c_0 = 1 is fixed.
        value, gradient = objective(np.concatenate(([1.0], tail)))
        return value, gradient[1:]

    # The descent's own status is ignored: with tolerances at the limit of rounding it may end at the optimum on a step
    # without progress.
    outcome = optimize.minimize(
        free,
        start[1:],
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, None)] * (bands - 1),
        options={"maxcor": 20, "ftol": 1e-15, "gtol": 1e-10, "maxiter": 2000, "maxfun": 4000},
    )
    best = np.concatenate(([1.0], outcome.x))
    return normalized(best if objective(best)[0] < objective(start)[0] else start)


def log_objective(
    iterations: int,
    bands: int,
    apart: int | None = None,
    participations: int = 1,
    workload: Workload = PREFIX_SUMS,
) -> Objective:
    """Return the function c ↦ (F, ∇F), F = ln Σ_{j<n} (n − j)·s_j² + ln ‖c‖², that `optimal_toeplitz` minimises.

    For another workload F = ln Q(s) + ln ‖c‖², where s is the series of a(x)/c(x), and a and the quadratic form Q are
    those of `workload`.

    With `participations` > 1, ‖Cx‖² replaces ‖c‖², where x = e_1 + e_{1+apart} + …: how far a record moves the sum that
    takes part this often and this far apart, which is the most that it can for a non-increasing c; then c has all n
    coefficients.

    With g the series of 1/c(x): ∂s/∂c_i = −x^i·(s·g), hence ∂F/∂c_i = −2·Σ_j (n − j)·s_j·(s·g)_{j−i} / Σ_j (n − j)·s_j²
    + 2c_i/‖c‖², with ½∇Q in place of (n − j)·s_j in general.

    The function takes `bands` coefficients with c_0 > 0. If c(x) has a zero well inside the unit disc, s overflows: F
    is then the logarithm of the largest double, which bounds it from below, with gradient 0. A line search that steps
    that far sees a plateau above everything else and turns back.
    """
    from scipy import fft  # known matrices do not need it

    series, form = numerator(workload, iterations), quadratic(workload, iterations)
    # The length is sufficient for the lags 0 … bands − 1 of a circular correlation not to wrap around.
    size = fft.next_fast_len(iterations + bands, real=True)
    plateau = math.log(np.finfo(np.float64).max)
    pattern = np.zeros(iterations)
    pattern[: (apart or iterations) * participations : apart or iterations] = 1.0
    several = np.count_nonzero(pattern) > 1

    def convolved(c: Vector) -> Vector:
        from scipy import signal  # many modules, needed only for several participations

        return np.asarray(signal.lfilter(c, [1.0], pattern))

    def correlated(moved: Vector) -> Vector:
        from scipy import signal  # as above

        return np.asarray(signal.correlate(moved, pattern, "full")[iterations - 1 :][:bands])

    def evaluate(c: Vector) -> tuple[float, Vector]:
        # Searches evaluate this often, and take long for many rounds, so they can be interrupted here.
        _core.Cancellation.check()
        with np.errstate(over="ignore", invalid="ignore"):
            s = quotient(series, c)
            error, weighted = form(s)
            moved = convolved(c) if several else c
            square = float(moved @ moved)
            spectrum = fft.rfft(weighted, size) * np.conj(fft.rfft(quotient(s, c), size))
            # ∂‖Cx‖²/∂c_i = 2·Σ_k (Cx)_k·x_{k−i}
            slopes = correlated(moved) if several else c
            gradient = 2.0 * slopes / square - 2.0 * fft.irfft(spectrum, size)[:bands] / error
        if not (math.isfinite(error) and np.isfinite(gradient).all()):
            return plateau, np.zeros(bands)
        return math.log(error) + math.log(square), gradient

    return evaluate


def _checked(coefficients: ArrayLike) -> Vector:
    c = np.asarray(coefficients, dtype=np.float64)
    if c.ndim != 1 or c.size == 0:
        raise ValueError(f"Toeplitz coefficients are a vector of at least one number, got shape {c.shape}")
    wrong = np.flatnonzero(~(np.isfinite(c) & (c >= 0.0)))
    if wrong.size:
        raise ValueError(f"Toeplitz coefficients are finite and ≥ 0; coefficient {wrong[0]} is {c[wrong[0]]}")
    if c[0] == 0.0:
        raise ValueError("the first Toeplitz coefficient is 0, so the matrix has no inverse")
    return c


def _at_least_one_iteration(iterations: int) -> None:
    if iterations < 1:
        raise ValueError(f"a strategy needs at least 1 iteration, got {iterations}")

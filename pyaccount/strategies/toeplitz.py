"""Banded Toeplitz strategies: the square root, the optimum, the error of any of them, and the least error without sampling.

C is lower triangular with C[i, j] = c_{i−j}, and A is the lower triangle of ones. Products of such matrices are
products of power series, so A·C⁻¹ is Toeplitz with the coefficients s of 1/((1 − x)·c(x)), and everything about an n×n
matrix follows from n numbers.

Without sampling, σ is proportional to the largest ‖Cx‖ over the patterns x of participations, given how far apart and how often
a record takes part at most. So strategies are then compared by the product of this norm and their error, whatever ε and δ are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pyaccount import _core
from pyaccount.strategies.measure import PREFIX_SUMS, Workload, WorkloadError
from pyaccount.strategies.sums import Vector, norm, quotient
from pyaccount.strategies.workload import mean_and_largest, numerator, quadratic

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


class SpacedOptimum(NamedTuple):
    """The first column, of unit norm, at which a search ended."""

    column: Vector
    #: The norm of the gradient of ln(error) in the parameters of the search, without those at their lower bound 0 that
    #: descent would push below it.
    gradient_norm: float


def optimal_spaced(  # noqa: PLR0913, PLR0917 - a pattern and an error
    iterations: int,
    bands: int,
    apart: int,
    participations: int,
    workload: Workload = PREFIX_SUMS,
    step: Callable[[], object] = lambda: None,
) -> SpacedOptimum:
    """Return the non-negative banded Toeplitz strategy of least error for at most k participations at least b rounds apart.

    Minimises Q(C)·max_x ‖Cx‖², where Q is the mean or the largest squared error, as the workload says, b = `apart`,
    k = `participations`, and C is Toeplitz with `bands` coefficients:

    - bands ≤ b: the columns C e_i of a pattern are orthogonal and the early ones are the longest, so rounds 0, b, 2b, …
      are the worst for every c ≥ 0. If the last of these columns is complete, ‖Cx‖² = k·‖c‖², and the result is
      `optimal_toeplitz`;
    - bands > b: columns overlap, and the worst rounds are known for non-increasing columns: again 0, b, 2b, …
      (Kalinin & Lampert 2024, arXiv:2405.13763, Theorem 2). The search is among these: c_j = Σ_{i≥j} d_i, d ≥ 0.

    Takes 1 ≤ bands ≤ iterations, b ≥ 1 and k ≥ 1 with (k − 1)·b < iterations; calls `step` after every step of the
    descent, which may stop it by raising. Every result is a valid strategy. How close it is to a stationary point is
    shown by its gradient norm. That no other stationary point is lower is observed, not proven. Time O(n·bands) per
    step, with learning rates O(n²); at most a few hundred steps.
    """
    from scipy import optimize  # known matrices do not need it

    overlapping = bands > apart
    objective = log_objective(iterations, bands, apart, participations, workload)

    def column(parameters: Vector) -> Vector:
        return np.cumsum(parameters[::-1])[::-1] if overlapping else parameters

    def evaluate(parameters: Vector) -> tuple[float, Vector]:
        value, gradient = objective(column(parameters))
        return value, np.cumsum(gradient) if overlapping else gradient

    starts = [optimal_toeplitz(iterations, bands, workload), normalized(banded_square_root(bands))]
    if overlapping:
        starts = [np.minimum.accumulate(one) for one in starts]
        starts = [np.append(-np.diff(one), one[-1]) for one in starts]
    # Neither factor depends on the scale of c, so the first coefficient is fixed if it is a parameter.
    first = starts[0][0]
    bounds = [(0.0, None) if overlapping else (first, first), *[(0.0, None)] * (bands - 1)]
    best = min(
        (one if overlapping else one * (first / one[0]) for one in starts), key=lambda one: float(evaluate(one)[0])
    )
    outcome = optimize.minimize(
        evaluate,
        best,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        callback=lambda _: step(),
        options={"maxcor": 30, "ftol": 1e-15, "gtol": 1e-10, "maxiter": 2000, "maxfun": 4000},
    )
    best = np.asarray(outcome.x) if outcome.fun < evaluate(best)[0] else best
    best /= np.sqrt(np.square(column(best)).sum())
    _, gradient = evaluate(best)
    free = (best > 0.0) | (gradient < 0.0)
    if not overlapping:
        free[0] = False
    return SpacedOptimum(normalized(column(best)), float(np.sqrt(np.square(gradient[free]).sum())))

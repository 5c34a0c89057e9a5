"""Toeplitz strategies that are not banded but cheap in training: banded inverses, and buffered linear Toeplitz (BLT).

Both have a full first column. Training needs only C⁻¹Z: for a banded inverse this is a sum over the last few rows of Z,
for a BLT a few running sums (buffers).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from pyaccount.strategies.measure import PREFIX_SUMS, Workload
from pyaccount.strategies.sums import Vector, quotient
from pyaccount.strategies.toeplitz import banded_square_root, log_objective

#: For inverses whose terms cancel: the binary places of the fixed-point arithmetic, the most products, and the exponent
#: of a value that is too large.
BITS = 256
MOST_PRODUCTS = 20_000_000
LARGEST = 900
#: More buffers than this improve training by nothing noticeable, and make the search slow.
MOST_BUFFERS = 16


def inverse_square_root(bands: int) -> Vector:
    """Return the first coefficients of (1 − x)^{1/2}, the inverse of the square root of the matrix of prefix sums.

    d_0 = 1, d_j = d_{j−1}·(2j − 3)/(2j) for 0 < j < bands: 1, −1/2, −1/8, −1/16, …; all but the first are negative.

    Takes bands ≥ 1. The relative error of d_j is at most about 3j·1.1e−16. Raises ValueError if bands < 1. Source: the
    banded inverse square root of Kalinin, McKenna, Upadhyay & Lampert 2025 (arXiv:2505.12128).
    """
    if bands < 1:
        raise ValueError(f"an inverse needs at least 1 band, got {bands}")
    j = np.arange(1, bands, dtype=np.float64)
    return np.concatenate(([1.0], np.cumprod((2.0 * j - 3.0) / (2.0 * j))))


def banded_inverse(coefficients: Sequence[float], iterations: int) -> Vector:
    """Return the first column of the matrix with this inverse: the series of 1/d(x), where d(x) = Σ d_j x^j.

    Takes finite coefficients with d_0 > 0; returns n = iterations terms of the inverse series, in time O(n·bands). If
    no later coefficient is positive, the sums have terms of one sign, with relative error near n·1e−16. Otherwise terms
    cancel, and the series is computed in fixed point, see `_fixed_point`. Raises ValueError if d_0 ≤ 0, if an entry of
    C is negative or not finite (the analysis here is of non-negative matrices), or if terms cancel and n·bands is above
    `MOST_PRODUCTS`. Source of the matrices: Kalinin, McKenna, Upadhyay & Lampert 2025 (arXiv:2505.12128); the
    arithmetic is our own.
    """
    d = np.asarray(coefficients, dtype=np.float64)
    if d.size == 0 or not (np.isfinite(d).all() and d[0] > 0.0):
        raise ValueError("the coefficients of an inverse are finite, and the first is greater than 0")
    impulse = np.zeros(iterations)
    impulse[0] = 1.0
    column: Vector
    if (d[1:iterations] > 0.0).any():
        column = _fixed_point(d[:iterations].tolist(), iterations)
    else:
        with np.errstate(over="ignore", invalid="ignore"):
            column = quotient(impulse, d[:iterations])
    wrong = np.flatnonzero(~(np.isfinite(column) & (column >= 0.0)))
    if wrong.size:
        raise ValueError(f"the matrix with this inverse has the entry {column[wrong[0]]:.3g} on diagonal {wrong[0]}")
    return column


def _fixed_point(coefficients: list[float], iterations: int) -> Vector:
    """Return the series c of 1/d(x) if terms cancel, computed in fixed point.

    d_0 c_i = [i = 0] − Σ_{j ≥ 1} d_j c_{i−j} in units of 2^−`BITS`, with d_0 in [1, 2). Everything is exact except the
    divisions, each of which is rounded down to a unit. The result is (1 + r(x))/d(x) with |r_i| ≤ d_0 units, so each
    entry is off by at most d_0·Σ|c_k| units, some n·2^−250 of the largest. Entries smaller than that are 0.
    """
    # Doubles are integer multiples of powers of two. d is scaled by such a power so that d_0 is near 1, and c is scaled
    # back.
    exponent = math.frexp(coefficients[0])[1] - 1
    ratios = [Fraction(value) / Fraction(2) ** exponent for value in coefficients]
    shift = max(ratio.denominator.bit_length() - 1 for ratio in ratios)
    first, *rest = (int(ratio * 2**shift) for ratio in ratios)
    later = [(j, value) for j, value in enumerate(rest, start=1) if value]
    if len(later) * iterations > MOST_PRODUCTS:
        raise ValueError(
            f"where terms cancel an inverse is computed exactly: {len(later)} coefficients for {iterations} rounds are too many"
        )
    series: list[int] = []
    for i in range(iterations):
        remainder = (1 << (BITS + shift) if i == 0 else 0) - sum(value * series[i - j] for j, value in later if j <= i)
        series.append(remainder // first)
        if series[i].bit_length() > BITS + LARGEST:
            raise ValueError(f"the matrix with this inverse has entries beyond 2^{LARGEST}, from diagonal {i} on")
    error = (sum(map(abs, series)) >> (BITS - 2)) + 1
    return np.array([math.ldexp(entry / (1 << BITS), -exponent) if abs(entry) > error else 0.0 for entry in series])


def blt(scales: Sequence[float], decays: Sequence[float], iterations: int) -> Vector:
    """Return the first column of a buffered linear Toeplitz matrix: c_0 = 1, c_i = Σ_j ω_j θ_j^{i−1}.

    Takes scales ω ≥ 0 and decays 0 ≤ θ ≤ 1 of the same length; returns n = iterations coefficients ≥ 0. Accurate to
    about i units in the last place. Source: McMahan, Xu & Zhang 2024 (arXiv:2408.08868).
    """
    column = np.zeros(max(iterations - 1, 0))
    for scale, decay in zip(scales, decays, strict=True):
        # Products are computed one by one, because `pow` differs between processors.
        powers = np.full(len(column), decay)
        powers[:1] = scale
        column += np.cumprod(powers)
    return np.concatenate(([1.0], column))[:iterations]


def optimal_blt(
    iterations: int,
    buffers: int,
    apart: int | None = None,
    participations: int = 1,
    workload: Workload = PREFIX_SUMS,
) -> tuple[Vector, Vector]:
    """Return the scales and decays of a BLT with the least mean square error, given how often a record takes part.

    Minimises (1/n)·‖A·C⁻¹‖_F²·‖Cx‖² over ω ≥ 0 and 0 < θ < 1, n = iterations, x = e_1 + e_{1+apart} + … with
    `participations` terms (one: ‖Cx‖ is the column norm), from fits of the square root's coefficients with decays
    evenly spaced in ln(1 − θ). A, and the alternative to the mean, are those of `toeplitz.optimal_toeplitz`.

    Takes 1 ≤ buffers ≤ `MOST_BUFFERS`. Every result is a valid strategy; that no other is better is observed for few
    buffers, not proven. Deterministic. Time O(n²) per step. Raises ValueError if the arguments are out of range. Source
    of the objective: McMahan, Xu & Zhang 2024 (arXiv:2408.08868), BLTs for several participations; starts and bounds of
    the search are our own.
    """
    from scipy import optimize  # type: ignore[import-untyped]  # known matrices do not need it

    if not 1 <= buffers <= MOST_BUFFERS or iterations < 1:
        raise ValueError(
            f"a BLT has 1 to {MOST_BUFFERS} buffers and at least 1 iteration, got {buffers} and {iterations}"
        )
    if iterations == 1:
        return np.zeros(buffers), np.full(buffers, 0.5)
    objective = log_objective(iterations, iterations, apart, participations, workload)
    steps = np.arange(iterations - 1.0)

    def evaluate(parameters: Vector) -> tuple[float, Vector]:
        omega, theta = np.exp(parameters[:buffers]), 1.0 - np.exp(parameters[buffers:])
        powers = np.power(theta[:, None], steps[None, :])
        value, gradient = objective(np.concatenate(([1.0], omega @ powers)))
        slopes = steps * np.power(theta[:, None], np.maximum(steps - 1.0, 0.0)[None, :])
        by_theta = omega * (slopes @ gradient[1:])
        return value, np.concatenate((omega * (powers @ gradient[1:]), -np.exp(parameters[buffers:]) * by_theta))

    bounds = [(-30.0, 3.0)] * buffers + [(-np.log(1e3 * iterations), np.log1p(-1e-3))] * buffers

    def descend(start: Vector) -> Vector:
        outcome = optimize.minimize(
            evaluate,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": 500, "ftol": 1e-13, "gtol": 1e-8},
        )
        return np.asarray(outcome.x if outcome.fun <= evaluate(start)[0] else start)

    # The matrix should forget what was before the last participation, so shorter values of the longest time are tried too.
    near = min(apart or iterations, iterations)
    starts = [_fitted(iterations, buffers, longest) for longest in sorted({iterations, near, near // 4})]
    best = min(map(descend, starts), key=lambda parameters: evaluate(parameters)[0])
    order = np.argsort(best[buffers:])
    return np.exp(best[:buffers][order]), 1.0 - np.exp(best[buffers:][order])


def _fitted(iterations: int, buffers: int, longest: int) -> Vector:
    """Return ln ω and ln(1 − θ) of a fit to the square root's coefficients, with time constants up to `longest`."""
    from scipy import optimize  # as above

    # The times are evenly spaced on a logarithmic scale, beginning at a few rounds.
    times = np.exp(np.linspace(np.log(1.5), np.log(max(2.0, float(longest))), buffers + 1)[1:])
    decays = np.exp(-1.0 / times)
    powers = np.power(decays[:, None], np.arange(iterations - 1)[None, :])
    # These weights give the tail the same influence as the head, so that the smallest entries are fitted too.
    target = banded_square_root(iterations)[1:]
    weights = 1.0 / np.sqrt(np.arange(1.0, float(iterations)))
    scales, _ = optimize.nnls((powers * weights).T, target * weights)
    return np.concatenate((np.log(np.maximum(scales, 1e-4)), np.log1p(-decays)))

"""The errors of Toeplitz strategies under a workload, as quadratic forms in one power series.

The matrix of a workload is A = E_γ·L·D_η·M_β (`measure.Workload`). Without learning rates it is Toeplitz, as is A·C⁻¹,
with the coefficients s of a(x)/c(x), a(x) = (1 − γ)/((1 − γx)(1 − x)(1 − βx)): the variance after round t is Σ_{j≤t}
s_j². With learning rates s is the series of 1/((1 − βx)·c(x)), and column r of A·C⁻¹ has, from row r on, the moving
averages of the prefix sums of η_{r+k}·s_k.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pyaccount.strategies.sums import Vector, quotient, total

if TYPE_CHECKING:
    from pyaccount.strategies.measure import Workload


def numerator(workload: Workload, iterations: int) -> Vector:
    """Return the series a in s = a/c: a(x) as in the module's docstring, with learning rates 1/(1 − βx)."""
    impulse = np.zeros(iterations)
    impulse[0] = 1.0
    series = impulse if workload.learning_rates is not None else np.ones(iterations)
    if workload.momentum != 0.0:
        series = _decayed(series, workload.momentum)
    if workload.ema_decay != 0.0 and workload.learning_rates is None:
        series = (1.0 - workload.ema_decay) * _decayed(series, workload.ema_decay)
    return series


def mean_and_largest(workload: Workload, s: Vector) -> tuple[float, float]:
    """Return the mean over rounds of the variance, and the largest one.

    Without learning rates these are (1/n)·Σ_{j<n} (n − j)·s_j² and Σ_{j<n} s_j². Exact except for rounding. Time O(n),
    with learning rates O(n²).
    """
    n = len(s)
    if workload.learning_rates is None:
        squares = np.square(s)
        return total(np.arange(n, 0.0, -1.0) * squares) / n, total(squares)
    variances = np.zeros(n)
    for r, column in enumerate(_columns(workload, s)):
        variances[r:] += np.square(column)
    return total(variances) / n, float(variances.max())


def quadratic(workload: Workload, iterations: int) -> Callable[[Vector], tuple[float, Vector]]:
    """Return the function s ↦ (Q, ½∇Q), where Q is n times the mean variance or the largest one, as the workload says.

    Without learning rates the largest variance is that of the last round. With them it may be another one, so
    `workload.largest` must not be set.
    """
    rates = workload.learning_rates
    if rates is None:
        weights = np.ones(iterations) if workload.largest else np.arange(iterations, 0.0, -1.0)

        def weighted(s: Vector) -> tuple[float, Vector]:
            slopes = weights * s
            return float(slopes @ s), slopes

        return weighted
    assert not workload.largest, "the largest variance under learning rates has no gradient everywhere"
    eta = np.array(rates)

    def scheduled(s: Vector) -> tuple[float, Vector]:
        value, slopes = 0.0, np.zeros(len(s))
        for r, column in enumerate(_columns(workload, s)):
            value += float(column @ column)
            back = column[::-1]
            if workload.ema_decay != 0.0:
                back = (1.0 - workload.ema_decay) * _decayed(back, workload.ema_decay)
            slopes[: len(s) - r] += eta[r:] * np.cumsum(back)[::-1]
        return value, slopes

    return scheduled


def dense_workload(workload: Workload, iterations: int) -> NDArray[np.float64]:
    """Return A itself as an n×n array, for strategies without structure."""
    columns = np.tril(np.ones((iterations, iterations)))
    if workload.learning_rates is not None:
        columns = columns * np.array(workload.learning_rates)
    # This is A·M_β: the columns are filtered from the last to the first.
    if workload.momentum != 0.0:
        columns = _filtered(columns[:, ::-1], workload.momentum, axis=1)[:, ::-1]
    if workload.ema_decay != 0.0:
        columns = (1.0 - workload.ema_decay) * _filtered(columns, workload.ema_decay, axis=0)
    return columns


def _filtered(columns: NDArray[np.float64], decay: float, axis: int) -> NDArray[np.float64]:
    """Return each line of an array divided by 1 − decay·x, as a series."""
    from scipy import signal  # type: ignore[import-untyped]  # many modules, needed only for such workloads

    return np.asarray(signal.lfilter([1.0], [1.0, -decay], columns, axis=axis))


def _columns(workload: Workload, s: Vector) -> Iterator[Vector]:
    """Yield the columns of A·C⁻¹ under learning rates, each from the diagonal down."""
    eta = np.array(workload.learning_rates)
    for r in range(len(s)):
        column = np.cumsum(eta[r:] * s[: len(s) - r])
        yield column if workload.ema_decay == 0.0 else (1.0 - workload.ema_decay) * _decayed(column, workload.ema_decay)


def _decayed(series: Vector, decay: float) -> Vector:
    """Return the series divided by 1 − decay·x."""
    return quotient(series, np.array([1.0, -decay]))

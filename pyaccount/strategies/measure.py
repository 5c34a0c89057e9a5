"""The error of what the optimizer computes from the noisy sums with a strategy matrix, and that optimizer: the workload.

The errors of Toeplitz strategies under a workload are quadratic forms in one power series.
The matrix of a workload is A = E_γ·L·D_η·M_β (`Workload`). Without learning rates it is Toeplitz, as is A·C⁻¹,
with the coefficients s of a(x)/c(x), a(x) = (1 − γ)/((1 − γx)(1 − x)(1 − βx)): the variance after round t is Σ_{j≤t}
s_j². With learning rates s is the series of 1/((1 − βx)·c(x)), and column r of A·C⁻¹ has, from row r on, the moving
averages of the prefix sums of η_{r+k}·s_k.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pyaccount.strategies.sums import quotient, total

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class WorkloadError:
    """The error of a strategy matrix C at σ = 1; multiply by σ². It measures utility, not privacy.

    `mean_square` is (1/n)‖AC⁻¹‖_F², where A is the matrix of a workload: the mean over rounds of the variance of the
    noise in the result of the optimizer after a round, in squared clip norms (times the squared unit of the learning
    rates). `max_square` is the largest squared row norm of AC⁻¹, that is, the largest of these variances.
    """

    mean_square: float
    max_square: float


@dataclass(frozen=True, slots=True)
class Workload:
    """The optimizer for which errors are reported, and which of the two errors is minimised.

    A round adds noise z_t to its sum, z = C⁻¹w. From the rounds up to t the optimizer computes, with momentum β,
    learning rates η and a decay γ of averages,

        v_t = β·v_{t−1} + z_t,  u_t = u_{t−1} + η_t·v_t,  y_t = γ·y_{t−1} + (1 − γ)·u_t,  all 0 before the first round:

    y = Az with A = E_γ·L·D_η·M_β, where M_β and E_γ are the lower-triangular Toeplitz matrices with the series 1/(1 −
    βx) and (1 − γ)/(1 − γx), D_η = diag(η), and L is the lower triangle of ones. With β = γ = 0 and no rates (η = 1)
    these are prefix sums. The recursion is that of SGD with heavy-ball momentum (Polyak 1964) without dampening (θ ← θ
    − η_t·v_t), and of an exponential moving average of the iterates θ that starts at the initial ones and is not
    debiased.
    """

    momentum: float = 0.0
    ema_decay: float = 0.0
    #: One learning rate for each round; None if all are 1.
    learning_rates: tuple[float, ...] | None = None
    #: Whether to minimise the largest variance instead of the mean over rounds.
    largest: bool = False

    @property
    def words(self) -> str:
        """The quantity with the error, in words."""
        steps = [] if self.momentum == 0.0 else [f"momentum {self.momentum!r}"]
        if self.learning_rates is not None:
            steps.append("the learning rates listed")
        under = f" under {' and '.join(steps)}" if steps else ""
        if self.ema_decay != 0.0:
            return f"moving averages of the iterates with decay {self.ema_decay!r}{under}"
        return f"iterates{under}" if steps else "prefix sums"

    def chosen(self, error: WorkloadError) -> float:
        """Return the one of the two errors that is minimised."""
        return error.max_square if self.largest else error.mean_square


PREFIX_SUMS = Workload()


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

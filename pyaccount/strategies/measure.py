"""How good a strategy matrix is: the error of what the optimizer makes of the noisy sums, and which optimizer that is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WorkloadError:
    """The error of a strategy matrix C at σ = 1; multiply by σ². Not a privacy figure: a measure of utility.

    `mean_square` is (1/n)‖AC⁻¹‖_F², A the matrix of a workload: the mean over rounds of the variance of the noise in what the
    optimizer has after a round, in squared clip norms (times the square of what learning rates are in). `max_square` is the
    largest squared row norm of AC⁻¹: the largest of these variances.
    """

    mean_square: float
    max_square: float


@dataclass(frozen=True, slots=True)
class Workload:
    """What errors are of, and which of them is to be small.

    A round adds noise z_t to its sum, z = C⁻¹w, and the optimizer makes of the rounds up to t, with momentum β, learning rates η
    and a decay γ of averages,

        v_t = β·v_{t−1} + z_t,  u_t = u_{t−1} + η_t·v_t,  y_t = γ·y_{t−1} + (1 − γ)·u_t,  all 0 before the first round:

    y = Az with A = E_γ·L·D_η·M_β, M_β and E_γ the lower-triangular Toeplitz matrices with the series 1/(1 − βx) and
    (1 − γ)/(1 − γx), D_η = diag(η) and L the lower triangle of ones. With β = γ = 0 and no rates (η = 1) these are prefix sums.
    The recursion is that of SGD with heavy-ball momentum (Polyak 1964) without dampening (θ ← θ − η_t·v_t), and of an exponential
    moving average of the iterates θ that starts at the initial ones and is not debiased.
    """

    momentum: float = 0.0
    ema_decay: float = 0.0
    #: One for each round; None: all 1.
    learning_rates: tuple[float, ...] | None = None
    #: Whether the largest variance is what is to be small, and not the mean over rounds.
    largest: bool = False

    @property
    def words(self) -> str:
        """What errors are of."""
        steps = [] if self.momentum == 0.0 else [f"momentum {self.momentum!r}"]
        if self.learning_rates is not None:
            steps.append("the learning rates listed")
        under = f" under {' and '.join(steps)}" if steps else ""
        if self.ema_decay != 0.0:
            return f"moving averages of the iterates with decay {self.ema_decay!r}{under}"
        return f"iterates{under}" if steps else "prefix sums"

    def chosen(self, error: WorkloadError) -> float:
        """The one of the two that is to be small."""
        return error.max_square if self.largest else error.mean_square


PREFIX_SUMS = Workload()

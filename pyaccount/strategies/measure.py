"""The error of what the optimizer computes from the noisy sums with a strategy matrix, and that optimizer. Without numpy."""

from __future__ import annotations

from dataclasses import dataclass


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

"""ln(σ²·(1/n)‖AC⁻¹‖_F²) at the σ that C needs for (ε, δ), and its gradient, computed from the same samples throughout.

A is the matrix of the workload; if that asks for the largest error, the largest squared row norm replaces the mean.

With fixed samples the estimate of δ is a smooth function of c and σ, and its derivatives are exact (the core's
`montecarlo::gradients`). σ(c) is the root of ln δ̂(c, σ) = ln δ, by Newton's method in ln σ, and by the implicit
function theorem ∂ ln σ/∂c = −(∂δ̂/∂c)/(σ·∂δ̂/∂σ): mathematics of Choquette-Choo et al. 2025 (arXiv:2410.06266), Section
4.2. All numbers are estimates.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pyaccount import _core
from pyaccount.directions import Direction
from pyaccount.execute.optimal.parametrisation import ColumnFamily
from pyaccount.execute.sampling.jobs import Component
from pyaccount.execute.sampling.shards import Sampler, Stream
from pyaccount.plan.samplers.base import Differentiable
from pyaccount.strategies.measure import Workload
from pyaccount.strategies.sums import Vector
from pyaccount.strategies.toeplitz import Objective, log_objective

#: The number of Newton's steps in ln σ, and the largest of them.
STEPS, LARGEST_STEP = 12, 0.3
#: The value for a matrix for which no sample sees a loss above ε: far above all other values, with gradient 0.
PLATEAU = 1e3


@dataclass(frozen=True, slots=True)
class FrozenSamples:
    """Fixed samples of one mechanism, `origin`, from a mixture for each direction that matters."""

    sampler: Sampler
    origin: _core.Sampled
    mixtures: Mapping[Direction, tuple[Component, ...]]
    #: The candidate number of their streams, and the number of shards.
    candidate: int = 0
    shards: int = 1


class LogSquares(NamedTuple):
    """ln((1/n)‖AC⁻¹‖_F²), or ln of the largest squared row norm, for columns of unit norm: `objective` less `constant`.

    The objective also contains ln ‖c‖², which is 0 for these columns, and so is its gradient along them.
    """

    objective: Objective
    constant: float


def log_squares(iterations: int, bands: int, workload: Workload) -> LogSquares:
    """Return ln of the error at σ = 1, for columns with this number of coefficients."""
    objective = log_objective(iterations, bands, workload=workload)
    return LogSquares(objective, 0.0 if workload.largest else math.log(iterations))


class _Root(NamedTuple):
    log_noise: float
    #: ∂ ln σ/∂c.
    slopes: Vector


class LogError:
    """The objective for a family of columns, from fixed samples. Called with a, it returns the value and ∇_a."""

    def __init__(  # noqa: PLR0913, PLR0917 - the objective depends on all of them
        self,
        columns: ColumnFamily,
        differentiable: Differentiable,
        samples: FrozenSamples,
        target: tuple[float, float],
        error: LogSquares,
        noise: float,
        close: float,
    ) -> None:
        """`target` is (ε, δ), `error` ln of the squared error at σ = 1, and `noise` is near the σ that a = 0 needs.

        σ is found until ln δ̂ is within `close`; a last linear step removes the rest.
        """
        self.columns, self.samples, self._mechanism = columns, samples, differentiable
        self._epsilon, self._delta = target
        self._error, self._close = error, close
        self._near = (columns.start, math.log(noise), np.zeros(len(columns.start)))

    def __call__(self, a: Vector, noise: float | None = None) -> tuple[float, Vector]:
        """Return ln of the squared error and its gradient; a plateau if no sample sees a loss above ε.

        The search for σ starts from `noise`, if that is given.
        """
        c = self.columns.at(a)
        if noise is not None:
            self._near = (c, math.log(noise), np.zeros(len(c)))
        found = self._root(c)
        if found is None:
            return PLATEAU, np.zeros(len(a))
        self._near = (c, found.log_noise, found.slopes)
        value, gradient = self._error.objective(c)
        return (
            2.0 * found.log_noise + value - self._error.constant,
            self.columns.pulled(a, 2.0 * found.slopes + gradient),
        )

    def noise(self, a: Vector) -> float:
        """Return σ(c), or the last σ tried if no sample sees a loss above ε."""
        found = self._root(self.columns.at(a))
        return math.exp(self._near[1] if found is None else found.log_noise)

    def _root(self, c: Vector) -> _Root | None:
        """Find σ(c), starting from where the last gradient leads to; None if it is not found."""
        before, log_noise, slopes = self._near
        log_noise += min(max(float((slopes * (c - before)).sum()), -LARGEST_STEP), LARGEST_STEP)
        for _ in range(STEPS):
            worst = self._worst(c, math.exp(log_noise))
            if worst is None:
                # With less noise the losses are larger.
                log_noise -= LARGEST_STEP
                continue
            by_noise = worst.log_noise[0] / worst.delta[0]
            excess = math.log(worst.delta[0] / self._delta)
            step = -excess / by_noise
            if abs(excess) <= self._close:
                break
            log_noise += min(max(step, -LARGEST_STEP), LARGEST_STEP)
        else:
            return None
        by_column = self._mechanism.slopes(c, math.exp(log_noise), worst)
        return _Root(log_noise + step, -by_column / worst.log_noise[0])

    def _worst(self, c: Vector, sigma: float) -> _core.DeltaGradient | None:
        """Return the larger of the directions' δ̂, with its gradient; None if it is 0 or does not decrease with σ."""
        core, samples = self._mechanism.core(c, sigma), self.samples
        found = [
            samples.sampler.gradient(
                core,
                direction,
                mixture,
                self._epsilon,
                origin=samples.origin,
                stream=Stream("matrix", samples.shards, samples.candidate),
            )
            for direction, mixture in samples.mixtures.items()
        ]
        worst = max(found, key=lambda one: one.delta[0])
        return worst if worst.delta[0] > 0.0 > worst.log_noise[0] else None

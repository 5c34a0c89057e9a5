"""Rounds of a quasi-Newton method, each from where the one before ended, with samples of its own.

A round fits its parameters to some samples, and others, in `SETS` independent sets, tell whether ln of the error fell, with a
standard error, and the gradient where it ended. What a round promises by its own samples is too much by what it fitted to
their noise: where even that is not worth a round, or rounds in succession do not keep it although samples are doubled, nothing
is left that so many samples could find.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy import optimize  # type: ignore[import-untyped]

from pyaccount.execute.optimal.objective import LogError

if TYPE_CHECKING:
    from pyaccount.execute.optimal.judge import Judge
    from pyaccount.execute.optimal.parametrisation import ColumnFamily, Vector

#: Steps and evaluations of one round at most.
STEPS, EVALUATIONS = 8, 12
#: Shards of the samples that the first rounds fit to, and the sets, with their shards, that a round is judged by.
SHARDS, SETS, SET_SHARDS = 8, 8, 2
#: How closely σ is found by the samples that are fitted to, as ln δ̂, and by a set, of which only the difference between two
#: matrices counts: a linear step does the rest, and errs as the square of this.
CLOSE, NEAR = 1e-2, 0.1
#: A gain of ln of the error that is worth no round.
WORTH = 5e-4
#: So many rounds in succession without a gain beyond the noise are the end.
PATIENCE = 2
#: A gradient within so many times its error is not told from 0: the column itself was fitted to fewer samples than tell it.
STATIONARY = 3.0


@dataclass(frozen=True, slots=True)
class Slope:
    """The gradient of ln of the error in the parameters of the search: its norm, and the norm of its components' standard errors.

    The latter is what the former would be, in root mean square, if the gradient were 0.
    """

    norm: float
    error: float

    @property
    def flat(self) -> bool:
        """Whether samples do not tell it from 0."""
        return self.norm <= STATIONARY * self.error


class Improvement:
    """A matrix with the σ that it needs, and the way down from it."""

    def __init__(self, judge: Judge, columns: ColumnFamily, noise: float) -> None:
        self.columns, self.noise = columns, noise
        self.rounds = 0
        #: How far ln of the error fell in all, by samples that nothing was fitted to.
        self.gain = 0.0
        #: Where the first round began, and where it is now.
        self.first = self.slope = Slope(math.inf, math.inf)
        self._judge = judge
        self._shards, self._weak, self._settled, self._sets = SHARDS, 0, False, 0

    @property
    def ended(self) -> bool:
        """Whether another round is not worth it."""
        return self._settled or self._weak == PATIENCE

    def step(self) -> None:
        """One round. Raises `LimitError`."""
        columns = self.columns
        samples = self._judge.samples(columns, self.noise)
        squares = self._judge.log_error(len(columns.start))

        def objective(shards: int, close: float) -> LogError:
            self._sets += 1
            drawn = replace(samples, candidate=self._sets, shards=shards)
            judge = self._judge
            return LogError(columns, judge.differentiable, drawn, judge.target, squares, self.noise, close)

        fitted = objective(self._shards, CLOSE)
        promised, a, noise = _improved(fitted)
        held = [objective(SET_SHARDS, NEAR) for _ in range(SETS)]
        before, after = ([one(*at) for one in held] for at in ((columns.zero, self.noise), (a, noise)))
        told = _mean(np.array([one[0] - other[0] for one, other in zip(before, after, strict=True)]))
        gain, error = (float(one) for one in told)
        here, there = (np.array([gradient for _, gradient in ones]) for ones in (before, after))
        if self.rounds == 0:
            self.first = _slope(columns, here)
        if gain > 0.0:
            self.columns, self.noise, self.gain = columns.moved(a), noise, self.gain + gain
            self.slope = _slope(self.columns, there)
        else:
            self.slope = _slope(columns, here)
        self.rounds += 1
        self._settled = promised < WORTH
        if gain > max(error, WORTH):
            self._weak = 0
        else:
            self._weak, self._shards = self._weak + 1, 2 * self._shards


def _improved(objective: LogError) -> tuple[float, Vector, float]:
    """Some steps of L-BFGS within reach: how far ln of the error falls by the samples that are fitted to, where, and σ there."""
    zero = objective.columns.zero
    before, _ = objective(zero)
    found = optimize.minimize(
        objective,
        zero,
        jac=True,
        method="L-BFGS-B",
        bounds=objective.columns.bounds,
        options={"maxiter": STEPS, "maxfun": EVALUATIONS},
    )
    # From the last step's σ on: that of the first may be so far off that no sample sees a loss above ε.
    return before - float(found.fun), np.asarray(found.x), objective.noise(found.x)


def _mean(rows: Vector) -> tuple[Vector, Vector]:
    """The mean over the sets, and its standard error."""
    return rows.mean(axis=0), rows.std(axis=0, ddof=1) / math.sqrt(len(rows))


def _slope(columns: ColumnFamily, gradients: Vector) -> Slope:
    """Of the gradients of each set, without the parameters that can go no further down."""
    mean, error = _mean(gradients)
    downhill = columns.downhill(mean)
    return Slope(*(math.sqrt(float(np.square(one[downhill]).sum())) for one in (mean, error)))

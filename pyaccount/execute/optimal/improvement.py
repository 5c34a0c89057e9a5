"""Rounds of a quasi-Newton method: each starts where the previous one ended, with its own samples.

A round fits its parameters to some samples. Other samples, in `SETS` independent sets, measure whether ln of the error
fell, with a standard error, and the gradient where the round ended. The gain in a round's own samples is too large,
since it includes what was fitted to their noise. The search therefore ends if even that gain is too small for another
round, or if several rounds in succession show no gain in the other samples although the number of samples is doubled.

The pilot estimates the error of a matrix at the σ that it needs. All matrices are judged with the same random numbers, which
differ from those of the search, so that a matrix that fits the search's samples by chance gains nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
from scipy import optimize  # type: ignore[import-untyped]

from pyaccount.execute.engine import NOISE_RANGE
from pyaccount.execute.optimal.objective import FrozenSamples, LogError, LogSquares, log_squares
from pyaccount.execute.optimal.parametrisation import ColumnFamily
from pyaccount.execute.options import RunOptions
from pyaccount.execute.sampling.calibrate import pilot_noise
from pyaccount.execute.sampling.fixed_sequence import root
from pyaccount.execute.sampling.session import Session, open_session
from pyaccount.execute.sampling.tests_of_claims import FAILURE_SHARE
from pyaccount.plan.common import number
from pyaccount.plan.compiled import CompiledDocument, Proposed
from pyaccount.plan.compiling import compile_document
from pyaccount.plan.matrices import proposed
from pyaccount.plan.matrices.base import workload_of
from pyaccount.plan.samplers import sampler_plan
from pyaccount.plan.samplers.base import Differentiable
from pyaccount.strategies.sums import Vector

#: The relative precision of σ by which matrices are judged, and the shards of an estimate.
PRECISION, ESTIMATED = 3e-3, 8
#: The shards by which mixtures are chosen; and the share of the larger δ up to which a direction is ignored in a round.
SCOUTED, NEGLIGIBLE = 4, 0.1


@dataclass(frozen=True, slots=True)
class JudgedMatrix:
    """A matrix with the family around it, its plan, and the σ that it needs with its error."""

    columns: ColumnFamily
    plan: CompiledDocument
    proposed: Proposed

    @property
    def error(self) -> float:
        """The squared error, an estimate: the search minimises it."""
        return self.proposed.squared_error


@dataclass(frozen=True, slots=True)
class Judge:
    """Estimates the errors of the matrices of one search, and draws the samples of its rounds."""

    plan: CompiledDocument
    options: RunOptions
    #: The compiled plans, by the bytes of the column.
    _plans: dict[bytes, CompiledDocument] = field(default_factory=dict)

    @property
    def target(self) -> tuple[float, float]:
        """The document's ε, and the δ that is tested in place of its own."""
        privacy = self.plan.document.privacy
        return number(privacy.epsilon), number(privacy.delta) * (1.0 - FAILURE_SHARE)

    def log_error(self, bands: int) -> LogSquares:
        """Return ln of the squared error at σ = 1, for columns of unit norm, with its gradient."""
        body = self.plan.document.run
        return log_squares(number(body.training.iterations), bands, workload_of(body))

    @property
    def differentiable(self) -> Differentiable:
        """The derivatives of δ in the column."""
        found = sampler_plan(self.plan.only_run).differentiable()
        assert found is not None, "compiling refuses samplers without"
        return found

    def __call__(self, columns: ColumnFamily, near: float | None = None) -> JudgedMatrix:
        """Find σ, starting from `near` if that is given, and judge the matrix. Raises `DocumentError`, `LimitError`."""
        plan, session = self._opened(columns)
        epsilon, delta = self.target
        if near is None:
            sigma, _ = pilot_noise(session, delta, precision=PRECISION, shards=ESTIMATED)
        else:
            sigma = root(
                lambda one: session.excess(session.mechanism(plan.at(one)), epsilon, delta, shards=ESTIMATED),
                near,
                *NOISE_RANGE,
                precision=PRECISION,
            )
        return JudgedMatrix(columns, plan, proposed(plan.only_run, sigma))

    def samples(self, columns: ColumnFamily, noise: float) -> FrozenSamples:
        """Return samples around a matrix at a σ, from the mixtures that estimates there use. Raises `LimitError`."""
        plan, session = self._opened(columns)
        mechanism = session.mechanism(plan.at(noise))
        estimates = session.estimate(mechanism, self.target[0], shards=SCOUTED)
        largest = max(one.value for one in estimates.values())
        mixtures = {side: one.components for side, one in estimates.items() if one.value > NEGLIGIBLE * largest}
        return FrozenSamples(session.sampler, mechanism.core, mixtures)

    def _opened(self, columns: ColumnFamily) -> tuple[CompiledDocument, Session]:
        key = columns.start.tobytes()
        if key not in self._plans:
            self._plans[key] = compile_document(columns.written(self.plan.document))
        plan = self._plans[key]
        return plan, open_session(plan, self.options)


#: The largest numbers of steps and of evaluations in one round.
STEPS, EVALUATIONS = 8, 12
#: The shards that the first rounds fit to, and the number of sets that measure a round, with the shards of each.
SHARDS, SETS, SET_SHARDS = 8, 8, 2
#: How precisely σ is found, as ln δ̂: by the samples that are fitted to, and by a set, where only the difference
#: between two matrices counts. A linear step removes the rest, with an error of the order of its square.
CLOSE, NEAR = 1e-2, 0.1
#: A gain of ln of the error that is too small for another round.
WORTH = 5e-4
#: The search ends after this many rounds in succession without a gain beyond the noise.
PATIENCE = 2
#: A gradient within this many standard errors cannot be distinguished from 0: the column was fitted to fewer samples.
STATIONARY = 3.0


@dataclass(frozen=True, slots=True)
class Slope:
    """The gradient of ln of the error in the parameters of the search: its norm, and the norm of its standard errors.

    The latter is the root mean square of the former if the gradient is 0.
    """

    norm: float
    error: float

    @property
    def flat(self) -> bool:
        """Whether the samples cannot distinguish the gradient from 0."""
        return self.norm <= STATIONARY * self.error


class Improvement:
    """The search for a better matrix: the current one with the σ that it needs, and the rounds that improve it."""

    def __init__(self, judge: Judge, columns: ColumnFamily, noise: float) -> None:
        self.columns, self.noise = columns, noise
        self.rounds = 0
        #: How far ln of the error fell in total, as measured by samples that nothing was fitted to.
        self.gain = 0.0
        #: The gradient where the first round began, and the current one.
        self.first = self.slope = Slope(math.inf, math.inf)
        self._judge = judge
        self._shards, self._weak, self._settled, self._sets = SHARDS, 0, False, 0

    @property
    def ended(self) -> bool:
        """Whether another round is not worthwhile."""
        return self._settled or self._weak == PATIENCE

    def step(self) -> None:
        """Do one round. Raises `LimitError`."""
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
        measured = _mean(np.array([one[0] - other[0] for one, other in zip(before, after, strict=True)]))
        gain, error = (float(one) for one in measured)
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
    """Do some steps of L-BFGS; return the fall of ln of the error in the fitted samples, the parameters, and σ."""
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
    # σ is found from that of the last step: from the first one, samples may see no loss above ε at all.
    return before - float(found.fun), np.asarray(found.x), objective.noise(found.x)


def _mean(rows: Vector) -> tuple[Vector, Vector]:
    """Return the mean over the sets, and its standard error."""
    return rows.mean(axis=0), rows.std(axis=0, ddof=1) / math.sqrt(len(rows))


def _slope(columns: ColumnFamily, gradients: Vector) -> Slope:
    """Return the slope from each set's gradient, without the parameters that cannot go further down."""
    mean, error = _mean(gradients)
    downhill = columns.downhill(mean)
    return Slope(*(math.sqrt(float(np.square(one[downhill]).sum())) for one in (mean, error)))

"""Estimate the error of a matrix at the σ that it needs, by the pilot, to compare the candidates of a search.

All matrices are judged with the same random numbers, which differ from those of the search, so that a matrix that fits
the search's samples by chance gains nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyaccount.execute.engine import NOISE_RANGE
from pyaccount.execute.optimal.objective import FrozenSamples, LogSquares, log_squares
from pyaccount.execute.sampling.calibrate import pilot_noise
from pyaccount.execute.sampling.error_probability import FAILURE_SHARE
from pyaccount.execute.sampling.fixed_sequence import root
from pyaccount.execute.sampling.session import Session, open_session
from pyaccount.plan.common import number
from pyaccount.plan.compiling import compile_document
from pyaccount.plan.matrices import proposed
from pyaccount.plan.matrices.base import workload_of
from pyaccount.plan.samplers import sampler_plan

if TYPE_CHECKING:
    from pyaccount.execute.optimal.parametrisation import ColumnFamily
    from pyaccount.execute.options import RunOptions
    from pyaccount.plan.compiled import CompiledDocument, Proposed
    from pyaccount.plan.samplers.base import Differentiable

#: The relative precision of σ, and the shards of an estimate.
PRECISION, SHARDS = 3e-3, 8
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
            sigma, _ = pilot_noise(session, delta, precision=PRECISION, shards=SHARDS)
        else:
            sigma = root(
                lambda one: session.excess(session.mechanism(plan.at(one)), epsilon, delta, shards=SHARDS),
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

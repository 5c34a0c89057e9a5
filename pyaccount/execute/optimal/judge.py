"""The error of a matrix at the σ that it needs, by the pilot: what candidates of a search are told apart by.

All are judged with the same random numbers, which are not those of the search: what fitted these by chance does not pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyaccount.execute.engine import NOISE_RANGE
from pyaccount.execute.progress import left, silent
from pyaccount.execute.sampling.acceptance import FAILURE_SHARE
from pyaccount.execute.sampling.calibrate import pilot_noise
from pyaccount.execute.sampling.fixed_sequence import root
from pyaccount.execute.sampling.session import open_session
from pyaccount.plan.compiled import Proposed
from pyaccount.plan.compiling import compile_document
from pyaccount.plan.matrices import strategy

if TYPE_CHECKING:
    from pyaccount.execute.optimal.parametrisation import Vector
    from pyaccount.execute.sampling.session import Session
    from pyaccount.plan.compiled import CompiledDocument

#: How closely σ is found, relatively, and the shards of an estimate.
PRECISION, SHARDS = 3e-3, 8


@dataclass(frozen=True, slots=True)
class JudgedMatrix:
    """A first column, its plan, what it needs, and the session that found out."""

    column: Vector
    plan: CompiledDocument
    session: Session
    proposed: Proposed

    @property
    def mse(self) -> float:
        """The prefix-sum error, an estimate."""
        return self.proposed.prefix_sum_mse


@dataclass(frozen=True, slots=True)
class Judge:
    """Judges the matrices of one search."""

    plan: CompiledDocument
    threads: int
    deadline: float | None
    seed: int

    @property
    def target(self) -> tuple[float, float]:
        """The document's ε, and the δ that is tested for its own."""
        privacy = self.plan.document.privacy
        assert privacy.epsilon != "solve"
        assert privacy.delta != "solve"
        return privacy.epsilon, privacy.delta * (1.0 - FAILURE_SHARE)

    def __call__(self, column: Vector, near: float | None = None) -> JudgedMatrix:
        """Find σ, beginning at one that is `near` if such a one is known. Raises `DocumentError`, `LimitError`."""
        document = self.plan.document.with_coefficients(column)
        plan = compile_document(document)
        session = open_session(
            plan, threads=self.threads, time_limit=left(self.deadline), report=silent, seed=self.seed
        )
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
        mse = sigma * sigma * strategy(document, document.bodies[0]).error.mean_square
        return JudgedMatrix(column, plan, session, Proposed(sigma, mse))

"""The search: rounds of a quasi-Newton method, each from the best matrix so far with samples of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from scipy import optimize  # type: ignore[import-untyped]

from pyaccount.execute.optimal.judge import Judge, JudgedMatrix
from pyaccount.execute.optimal.objective import FrozenSamples, LogError
from pyaccount.execute.optimal.parametrisation import around, positive
from pyaccount.execute.progress import knowing
from pyaccount.plan.common import whole
from pyaccount.plan.compiled import Searched
from pyaccount.plan.compiling import compile_document
from pyaccount.plan.samplers import sampler_plan
from pyaccount.strategies import banded_square_root, optimal_toeplitz

if TYPE_CHECKING:
    from pyaccount.execute.optimal.parametrisation import Vector
    from pyaccount.execute.progress import Report
    from pyaccount.plan.compiled import CompiledDocument

#: Rounds at most, and steps and evaluations of one.
ROUNDS, STEPS, EVALUATIONS = 5, 8, 12
#: Shards of the samples of a round.
SHARDS = 8
#: A relative gain that is not worth another round: it is within the noise of what is gained.
WORTH = 1e-3
#: A direction whose δ is so much smaller than the other's decides nothing.
NEGLIGIBLE = 1e-3


def optimise(
    plan: CompiledDocument, *, threads: int, deadline: float | None, seed: int, report: Report
) -> CompiledDocument:
    """The plan of the document with the coefficients found, and what is to be said of the search; for one band the identity.

    The search begins with the better of the column that is optimal for its norm and the banded square root, and ends with the
    best that the judge has seen: never with a worse one than these, by its estimate. The same seed gives the same
    coefficients on one machine, on any number of threads. Raises `DocumentError` where no σ reaches the target, `LimitError`.
    """
    body = plan.document.bodies[0]
    iterations, bands = whole(body.training.iterations), body.matrix.diagonals()
    assert bands is not None
    if bands == 1:
        return compile_document(plan.document.with_coefficients((1.0,)))
    steering = sampler_plan(body).steering(plan.document, body)
    assert steering is not None, "compiling refuses samplers without"
    judge = Judge(plan, threads, deadline, seed)
    report("optimising the matrix: where to begin", 0, ROUNDS + 1)
    known = [judge(positive(column)) for column in (optimal_toeplitz(iterations, bands), banded_square_root(bands))]
    start = best = min(known, key=lambda one: one.mse)
    note, ended, rounds, norm = None, False, 0, 0.0
    with knowing(lambda: [f"a matrix with prefix-sum MSE near {best.mse:.4g} was found, an estimate"]):
        while True:
            report(f"optimising the matrix: prefix-sum MSE near {best.mse:.5g}", rounds + 1, ROUNDS + 1)
            columns = around(best.column)
            samples = _samples(best, judge.target[0], candidate=rounds)
            objective = LogError(columns, steering, samples, judge.target, iterations, best.proposed.noise_multiplier)
            slopes = columns.free(objective(columns.zero)[1])
            norm = float(np.sqrt(np.square(slopes).sum()))
            if ended or rounds == ROUNDS:
                break
            rounds += 1
            a = _improved(objective)
            found = judge(columns.at(a), objective.noise(a))
            ended = found.mse >= (1.0 - WORTH) * best.mse
            best = min(best, found, key=lambda one: one.mse)
    if not ended:
        note = f"the search was ended after {ROUNDS} rounds, while the last one still gained more than {WORTH:.0e}"
    elif best is start:
        note = "no better matrix was found than those known without sampling"
    return replace(best.plan, searched=Searched(start.proposed, best.proposed, norm, rounds, note))


def _samples(judged: JudgedMatrix, epsilon: float, *, candidate: int) -> FrozenSamples:
    """New samples around a matrix, from the mixtures that its estimates use."""
    session, sigma = judged.session, judged.proposed.noise_multiplier
    mechanism = session.mechanism(judged.plan.at(sigma))
    estimates = session.estimate(mechanism, epsilon)
    largest = max(one.value for one in estimates.values())
    mixtures = {side: one.components for side, one in estimates.items() if one.value > NEGLIGIBLE * largest}
    return FrozenSamples(session.sampler, mechanism.core, mixtures, candidate, SHARDS)


def _improved(objective: LogError) -> Vector:
    """Some steps of L-BFGS within reach."""
    found = optimize.minimize(
        objective,
        objective.columns.zero,
        jac=True,
        method="L-BFGS-B",
        bounds=objective.columns.bounds,
        options={"maxiter": STEPS, "maxfun": EVALUATIONS},
    )
    return np.asarray(found.x)

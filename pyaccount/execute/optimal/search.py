"""Run the search: choose where it begins, improve the matrix, and judge the result.

No samples are needed
where σ is proportional to how far a record moves the sums: without sampling, and under cyclic Poisson sampling from fixed parts.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from pyaccount.errors import TIME_IS_UP, LimitError
from pyaccount.execute.engine import Engine
from pyaccount.execute.optimal.improvement import Improvement, Judge
from pyaccount.execute.optimal.parametrisation import family, positive
from pyaccount.execute.options import RunOptions
from pyaccount.execute.progress import knowing, silent
from pyaccount.execute.solve import solve
from pyaccount.plan.common import given, number
from pyaccount.plan.compiled import CompiledDocument, Proposed, Searched
from pyaccount.plan.compiling import compile_document
from pyaccount.plan.matrices import matrix_plan, proposed, strategy, workload_error
from pyaccount.plan.matrices.base import workload_of
from pyaccount.plan.samplers import sampler_plan
from pyaccount.strategies.toeplitz import optimal_spaced

if TYPE_CHECKING:
    from pyaccount.strategies.sums import Vector


#: A relative gain that is not distinguished from rounding.
ROUNDING = 1e-9
#: A gradient of ln(error) that is not distinguished from 0.
STATIONARY = 1e-4


def _optimise_unsampled(plan: CompiledDocument, options: RunOptions) -> CompiledDocument:
    """Return the plan with the coefficients of least error at the σ that they need, and a report of the search.

    The result is never worse than the better of the column that is optimal for its norm and the banded square root.
    `optimal_spaced` says which columns are searched and which of them it finds. Raises `DocumentError` if no σ reaches
    the target, and `LimitError`.
    """
    case = plan.only_run
    body = case.node
    iterations, bands = number(body.training.iterations), body.matrix.diagonals()
    pattern = sampler_plan(case).spaced_pattern()
    workload = workload_of(body)
    options.report("optimising the matrix", 0, 2)
    remaining = options.remaining
    deadline = None if remaining is None else time.monotonic() + remaining
    engine = Engine(threads=options.threads, time_limit=options.remaining)

    def planned(column: Vector) -> CompiledDocument:
        return compile_document(plan.document.with_coefficients(column))

    def in_time() -> None:
        if deadline is not None and time.monotonic() >= deadline:
            raise LimitError(TIME_IS_UP, stage="optimising the matrix")

    def priced(one: CompiledDocument) -> Proposed:
        return proposed(one.only_run, float(solve(one, engine, silent).value))

    known = [positive(column) for (column,) in matrix_plan(case).search_starts()]
    start = min(map(planned, known), key=_error)
    optimum = optimal_spaced(iterations, given(bands), *given(pattern), workload, in_time)
    found = planned(positive(optimum.column))
    options.report("optimising the matrix: the noise that it needs", 1, 2)
    gained = _error(found) < _error(start) * (1.0 - ROUNDING)
    best = found if gained else start
    if optimum.gradient_norm > STATIONARY:
        note = "the search ended where the gradient had not vanished: the best matrix that it saw is taken"
    elif not gained:
        note = "no better matrix was found than those known without sampling"
    else:
        note = None
    first = priced(start)
    searched = Searched(first, priced(best) if gained else first, optimum.gradient_norm, 0.0, 1, note)
    return replace(best, searched=searched)


def _error(plan: CompiledDocument) -> float:
    """Return the squared error at the σ that the matrix needs, up to a factor that all matrices share."""
    case = plan.only_run
    pattern = sampler_plan(case).spaced_pattern()
    built = strategy(case)
    moved = built.sensitivity(*given(pattern))[0]
    return moved * moved * workload_of(case.node).chosen(workload_error(case))


#: The largest number of rounds.
ROUNDS = 10


def optimise(plan: CompiledDocument, options: RunOptions) -> CompiledDocument:
    """Return the plan with the coefficients found, and with a report of the search; for one band, the identity.

    The search begins with the better of the matrices that are known without it (for bands: the column that is optimal
    for its norm, and the square root). It returns the best matrix that was judged, which by that estimate is never
    worse than these. The same seed gives the same coefficients on one machine, on any number of threads. Raises
    `DocumentError` if no σ reaches the target, and `LimitError`.
    """
    body = plan.document.run
    iterations = number(body.training.iterations)
    if body.matrix.diagonals() == 1:
        return compile_document(plan.document.with_coefficients((1.0,)))
    if sampler_plan(plan.only_run).spaced_pattern() is not None:
        return _optimise_unsampled(plan, options)
    judge, report = Judge(plan, replace(options, report=silent)), options.report
    report("optimising the matrix: where to begin", 0, ROUNDS + 2)
    first, *rest = (family(listed, iterations) for listed in matrix_plan(plan.only_run).search_starts())
    one = judge(first)
    starts = [one, *(judge(other, one.proposed.noise_multiplier) for other in rest)]
    start = min(starts, key=lambda it: it.error)
    improvement = Improvement(judge, start.columns, start.proposed.noise_multiplier)

    def near() -> float:
        return start.error * math.exp(-improvement.gain)

    with knowing(lambda: [f"a matrix with a squared error near {near():.4g} was found, an estimate"]):
        while not improvement.ended and improvement.rounds < ROUNDS:
            report(f"optimising the matrix: squared error near {near():.5g}", improvement.rounds + 1, ROUNDS + 2)
            improvement.step()
        report("optimising the matrix: what was found", ROUNDS + 1, ROUNDS + 2)
        found = judge(improvement.columns, improvement.noise)
    best = min(start, found, key=lambda one: one.error)
    slope = improvement.first if best is start else improvement.slope
    if not improvement.ended:
        note = f"the search was ended after {ROUNDS} rounds, while the last one still gained"
    elif best is start or improvement.gain == 0.0:
        note = "no better matrix was found than those known without sampling"
        if not slope.flat:
            note += ", although samples tell the gradient there from 0"
    elif not slope.flat:
        note = "the search ended where samples still tell the gradient from 0"
    else:
        note = None
    searched = Searched(start.proposed, best.proposed, slope.norm, slope.error, improvement.rounds, note)
    return replace(best.plan, searched=searched)

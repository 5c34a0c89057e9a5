"""Run the search: choose where it begins, improve the matrix, and judge the result."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from pyaccount.execute.optimal.improvement import Improvement
from pyaccount.execute.optimal.judge import Judge
from pyaccount.execute.optimal.parametrisation import family
from pyaccount.execute.optimal.unsampled import optimise_unsampled
from pyaccount.execute.progress import knowing, silent
from pyaccount.plan.common import number
from pyaccount.plan.compiled import CompiledDocument, Searched
from pyaccount.plan.compiling import compile_document
from pyaccount.plan.matrices import matrix_plan
from pyaccount.plan.samplers import sampler_plan

if TYPE_CHECKING:
    from pyaccount.execute.options import RunOptions

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
        return optimise_unsampled(plan, options)
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

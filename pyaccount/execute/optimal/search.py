"""The search: where it begins, its improvement, and the judge's word on what was found."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from pyaccount.execute.optimal.improvement import Improvement
from pyaccount.execute.optimal.judge import Judge
from pyaccount.execute.optimal.parametrisation import positive
from pyaccount.execute.progress import knowing
from pyaccount.plan.common import whole
from pyaccount.plan.compiled import Searched
from pyaccount.plan.compiling import compile_document
from pyaccount.plan.workload import workload_of
from pyaccount.strategies import banded_square_root, optimal_toeplitz

if TYPE_CHECKING:
    from pyaccount.execute.progress import Report
    from pyaccount.plan.compiled import CompiledDocument

#: Rounds at most.
ROUNDS = 6


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
    judge = Judge(plan, threads, deadline, seed)
    report("optimising the matrix: where to begin", 0, ROUNDS + 2)
    one = judge(positive(optimal_toeplitz(iterations, bands, workload_of(body))))
    start = min(one, judge(positive(banded_square_root(bands)), one.proposed.noise_multiplier), key=lambda it: it.error)
    improvement = Improvement(judge, start.column, start.proposed.noise_multiplier)

    def near() -> float:
        return start.error * math.exp(-improvement.gain)

    with knowing(lambda: [f"a matrix with a squared error near {near():.4g} was found, an estimate"]):
        while not improvement.ended and improvement.rounds < ROUNDS:
            report(f"optimising the matrix: squared error near {near():.5g}", improvement.rounds + 1, ROUNDS + 2)
            improvement.step()
        report("optimising the matrix: what was found", ROUNDS + 1, ROUNDS + 2)
        found = judge(improvement.column, improvement.noise)
    best = min(start, found, key=lambda one: one.error)
    slope = improvement.first if best is start else improvement.slope
    if not improvement.ended:
        note = f"the search was ended after {ROUNDS} rounds, while the last one still gained"
    elif best is start or improvement.gain == 0.0:
        note = "no better matrix was found than those known without sampling"
    elif not slope.flat:
        note = "the search ended where samples still tell the gradient from 0"
    else:
        note = None
    searched = Searched(start.proposed, best.proposed, slope.norm, slope.error, improvement.rounds, note)
    return replace(best.plan, searched=searched)

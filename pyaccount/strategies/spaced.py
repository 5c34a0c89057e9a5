"""The banded Toeplitz strategy of least error, given how far apart and how often a record takes part at most.

Without sampling, σ is proportional to the largest ‖Cx‖ over the patterns x of participations. So strategies are
compared by the product of this norm and their error, whatever ε and δ are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import optimize  # type: ignore[import-untyped]

from pyaccount.strategies.measure import PREFIX_SUMS, Workload
from pyaccount.strategies.toeplitz import banded_square_root, log_objective, normalized, optimal_toeplitz

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyaccount.strategies.toeplitz import Vector


class SpacedOptimum(NamedTuple):
    """The first column, of unit norm, at which a search ended."""

    column: Vector
    #: The norm of the gradient of ln(error) in the parameters of the search, without those at their lower bound 0 that
    #: descent would push below it.
    gradient_norm: float


def optimal_spaced(  # noqa: PLR0913, PLR0917 - a pattern and an error
    iterations: int,
    bands: int,
    apart: int,
    participations: int,
    workload: Workload = PREFIX_SUMS,
    step: Callable[[], object] = lambda: None,
) -> SpacedOptimum:
    """Return the non-negative banded Toeplitz strategy of least error for at most k participations at least b rounds apart.

    Minimises Q(C)·max_x ‖Cx‖², where Q is the mean or the largest squared error, as the workload says, b = `apart`,
    k = `participations`, and C is Toeplitz with `bands` coefficients:

    - bands ≤ b: the columns C e_i of a pattern are orthogonal and the early ones are the longest, so rounds 0, b, 2b, …
      are the worst for every c ≥ 0. If the last of these columns is complete, ‖Cx‖² = k·‖c‖², and the result is
      `optimal_toeplitz`;
    - bands > b: columns overlap, and the worst rounds are known for non-increasing columns: again 0, b, 2b, …
      (Kalinin & Lampert 2024, arXiv:2405.13763, Theorem 2). The search is among these: c_j = Σ_{i≥j} d_i, d ≥ 0.

    Takes 1 ≤ bands ≤ iterations, b ≥ 1 and k ≥ 1 with (k − 1)·b < iterations; calls `step` after every step of the
    descent, which may stop it by raising. Every result is a valid strategy. How close it is to a stationary point is
    shown by its gradient norm. That no other stationary point is lower is observed, not proven. Time O(n·bands) per
    step, with learning rates O(n²); at most a few hundred steps.
    """
    overlapping = bands > apart
    objective = log_objective(iterations, bands, apart, participations, workload)

    def column(parameters: Vector) -> Vector:
        return np.cumsum(parameters[::-1])[::-1] if overlapping else parameters

    def evaluate(parameters: Vector) -> tuple[float, Vector]:
        value, gradient = objective(column(parameters))
        return value, np.cumsum(gradient) if overlapping else gradient

    starts = [optimal_toeplitz(iterations, bands, workload), normalized(banded_square_root(bands))]
    if overlapping:
        starts = [np.minimum.accumulate(one) for one in starts]
        starts = [np.append(-np.diff(one), one[-1]) for one in starts]
    # Neither factor depends on the scale of c, so the first coefficient is fixed if it is a parameter.
    first = starts[0][0]
    bounds = [(0.0, None) if overlapping else (first, first), *[(0.0, None)] * (bands - 1)]
    best = min(
        (one if overlapping else one * (first / one[0]) for one in starts), key=lambda one: float(evaluate(one)[0])
    )
    outcome = optimize.minimize(
        evaluate,
        best,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        callback=lambda _: step(),
        options={"maxcor": 30, "ftol": 1e-15, "gtol": 1e-10, "maxiter": 2000, "maxfun": 4000},
    )
    best = np.asarray(outcome.x) if outcome.fun < evaluate(best)[0] else best
    best /= np.sqrt(np.square(column(best)).sum())
    _, gradient = evaluate(best)
    free = (best > 0.0) | (gradient < 0.0)
    if not overlapping:
        free[0] = False
    return SpacedOptimum(normalized(column(best)), float(np.sqrt(np.square(gradient[free]).sum())))

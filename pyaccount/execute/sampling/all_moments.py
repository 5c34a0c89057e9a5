"""Find the polynomial by which several moments bound δ(ε) best; `risk.polynomials` proves why a polynomial bounds it.

The least Σ a_k e^{(1−k)ε} Z_k with p ≥ (x − 1)₊ on a grid of x is a linear programme. Each coefficient of its solution
is rounded up by a little more than what the grid leaves open between its points. Whether the result is a bound is then
checked exactly, so that nothing rests on the solver. If it is not, its coefficients are raised further.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from pyaccount.risk.polynomials import MomentPolynomial

#: Points of the grid on each side of 1.
POINTS = 400
#: What coefficients are raised by, in units of what one moment's bound would be for each; and the grid to which they
#: are rounded, so that the solver's last digits, which may differ between machines, do not matter.
RAISED, ROUNDED = (2.0**-13, 2.0**-10, 2.0**-7), 2.0**-20
#: The fewest moments worth combining; the most, beyond which terms nearly cancel; and the solver's most steps.
FEWEST, MOST, MOST_STEPS = 4, 12, 2000


def best_polynomial(log_moments: Sequence[tuple[float, float]], epsilon: float) -> MomentPolynomial | None:
    """Return a polynomial that bounds δ(ε) nearly best, from bounds on ln Z_0, ln Z_1, …; None if none was found.

    That it dominates (x − 1)₊ has been proven. The last moments are left out if the solver finds nothing with them, or
    a worse polynomial. Takes tens of milliseconds.
    """
    found: list[MomentPolynomial] = []
    for most in range(len(log_moments), FEWEST, -1):
        one = _of_all(log_moments[:most], epsilon)
        found += [one] if one else []
        if len(found) == 2:
            break
    return min(found, key=lambda one: one.bound(epsilon), default=None)


def _of_all(log_moments: Sequence[tuple[float, float]], epsilon: float) -> MomentPolynomial | None:
    """Return such a polynomial from all of these moments."""
    # The import takes a tenth of a second, and only moments need it.
    from scipy.optimize import linprog  # type: ignore[import-untyped]

    uppers = [upper for _, upper in log_moments]
    # ln of the cost of a coefficient of 1, and the unit: ln of the cost of the best single power.
    costs = np.array([upper + (1 - k) * epsilon for k, upper in enumerate(uppers)])
    unit = min(costs[m] + (m - 1) * math.log(m - 1) - m * math.log(m) for m in range(2, len(uppers)))
    if not np.all(np.isfinite(costs)) or np.ptp(np.append(costs, unit)) > 600.0:
        return None
    scales = np.exp(unit - costs)
    grid = _grid()
    rows = grid[:, np.newaxis] ** np.arange(len(uppers)) * scales
    largest = rows.max(axis=1)
    found = linprog(
        np.ones(len(uppers)),
        A_ub=-rows / largest[:, np.newaxis],
        b_ub=-np.maximum(grid - 1.0, 0.0) / largest,
        bounds=(None, None),
        method="highs",
        options={"maxiter": MOST_STEPS},
    )
    if found.status != 0:
        return None
    rounded = np.ceil(found.x / ROUNDED) * ROUNDED
    for raised in RAISED:
        coefficients = tuple(float(one) for one in (rounded + raised) * scales)
        polynomial = MomentPolynomial(coefficients, tuple(log_moments))
        if polynomial.dominates:
            return polynomial
    return None


@cache
def _grid() -> NDArray[np.float64]:
    """Return points x ≥ 0, denser towards 0 and 1; those beyond 1 are inverses of as many below 1."""
    half = 0.5 - 0.5 * np.cos(np.pi * np.arange(POINTS + 1) / POINTS)
    found: NDArray[np.float64] = np.concatenate([half, 1.0 / half[1:-1]])
    return found

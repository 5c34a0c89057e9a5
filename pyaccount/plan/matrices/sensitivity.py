"""The largest ‖Σ_i C e_i‖ over rounds at least so far apart: exact where the worst rounds are known, enclosed elsewhere."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def toeplitz_sensitivity(coefficients: tuple[float, ...], n: int, b: int, most: int) -> tuple[float, float]:
    """From above and from below, for at most `most` rounds at least b apart; see `Strategy.sensitivity`."""
    if len(coefficients) == 1:
        return (coefficients[0] * math.sqrt(most),) * 2
    import numpy as np  # noqa: PLC0415

    from pyaccount.strategies import sums  # noqa: PLC0415

    column = np.asarray(coefficients)
    spaced = sums.norm(sums.spaced_sum(column, n, b, most))
    decreasing = all(later <= earlier for earlier, later in pairwise(coefficients))
    if decreasing or len(coefficients) <= b or (b == 1 and most == n):
        return spaced, spaced
    products = sums.autocorrelation(column)
    # Whatever the distances, the m-th neighbour on either side is at least m·b away.
    envelope = np.maximum.accumulate(products[::-1])[::-1]
    neighbours = envelope[b : (most - 1) * b + 1 : b]
    return max(spaced, math.sqrt(most * (float(products[0]) + 2.0 * sums.total(neighbours)))), spaced


def dense_sensitivity(matrix: NDArray[np.float64], b: int, most: int) -> tuple[float, float]:
    """The same for a matrix without structure."""
    import numpy as np  # noqa: PLC0415

    from pyaccount.strategies import sums  # noqa: PLC0415

    n = len(matrix)
    spaced = sums.norm(matrix[:, : most * b : b].sum(axis=1))
    if b == 1 and most == n:
        return spaced, spaced
    gram = sums.gram(matrix.T)
    # For each column the largest sum of products with columns that a pattern through it may hold, on either side.
    off_diagonals = _best_separated(np.tril(gram, -b), b) + _best_separated(np.triu(gram, b), b)
    worth = gram.diagonal() + off_diagonals
    # best[j + b]: the largest worth of at most so many columns up to j, at least b apart.
    best = np.zeros(n + b)
    for _ in range(most):
        taken = np.concatenate([np.zeros(b), worth + best[:n]])
        following = np.maximum.accumulate(taken)
        if np.array_equal(following, best):
            break
        best = following
    return max(spaced, math.sqrt(float(best[-1]))), spaced


def _best_separated(weights: NDArray[np.float64], b: int) -> NDArray[np.float64]:
    """For each row of non-negative weights, the largest sum of entries at least b apart."""
    import numpy as np  # noqa: PLC0415

    rows, n = weights.shape
    # best[:, j + b] is over the first j + 1 entries.
    best = np.zeros((rows, n + b))
    for j in range(n):
        best[:, j + b] = np.maximum(best[:, j + b - 1], weights[:, j] + best[:, j])
    return np.asarray(best[:, -1])

"""The largest ‖Σ_i C e_i‖ over separated rounds: exact if the worst rounds are known or found, else enclosed."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


#: Entries of a Gram matrix that the search for the worst rounds may read: some tenths of a second.
SEARCH_WORK = 100_000_000
#: The longest Toeplitz run whose worst rounds are searched for if they are not known.
SEARCHED_ROUNDS = 512


def toeplitz_sensitivity(coefficients: tuple[float, ...], n: int, b: int, most: int) -> tuple[float, float]:
    """Return an upper and a lower bound for at most `most` rounds, at least b apart; see `Strategy.sensitivity`."""
    if len(coefficients) == 1:
        return (coefficients[0] * math.sqrt(most),) * 2
    import numpy as np

    from pyaccount.strategies import sums

    column = np.asarray(coefficients)
    spaced = sums.norm(sums.spaced_sum(column, n, b, most))
    decreasing = all(later <= earlier for earlier, later in pairwise(coefficients))
    # With one participation the first column is the worst, since it is the longest.
    if most == 1 or decreasing or len(coefficients) <= b or (b == 1 and most == n):
        return spaced, spaced
    if n <= SEARCHED_ROUNDS:
        padded = np.zeros(n)
        padded[: len(column)] = column[:n]
        return _searched(np.array([np.concatenate([np.zeros(i), padded[: n - i]]) for i in range(n)]), b, most, spaced)
    products = sums.autocorrelation(column)
    # Whatever the distances, most − m of the pairs are m participations apart, and so at least m·b rounds apart.
    envelope = np.maximum.accumulate(products[::-1])[::-1]
    upper = math.sqrt(most * float(products[0]) + 2.0 * _pairs(envelope, b, most))
    # The lower bound takes the distance at which evenly spaced rounds share most, if that many rounds fit.
    farthest = min(len(products) - 1, (n - 1) // (most - 1))
    best = max(range(b, farthest + 1), key=lambda d: _pairs(products, d, most), default=b)
    lower = max(spaced, sums.norm(sums.spaced_sum(column, n, best, most)))
    return max(upper, lower), lower


def _pairs(products: NDArray[np.float64], d: int, most: int) -> float:
    """Return Σ_m (most − m) products[m·d]: for `most` rounds, most − m pairs are m participations apart."""
    import numpy as np

    from pyaccount.strategies import sums

    shared = products[d : (most - 1) * d + 1 : d]
    return sums.total(np.arange(most - 1, most - 1 - len(shared), -1.0) * shared)


def dense_sensitivity(matrix: NDArray[np.float64], b: int, most: int) -> tuple[float, float]:
    """Return the same bounds for a matrix without known structure; a Toeplitz structure is detected."""
    # Scaling by a power of two is exact, and keeps squares from underflowing or overflowing.
    scale = math.ldexp(1.0, math.frexp(float(matrix.max()))[1] - 1)
    above, below = _of_scaled(matrix / scale, b, most)
    return above * scale, below * scale


def _of_scaled(matrix: NDArray[np.float64], b: int, most: int) -> tuple[float, float]:
    """Return the bounds for a matrix whose largest entry is near 1."""
    import numpy as np

    from pyaccount.strategies import sums

    n = len(matrix)
    first = matrix[:, 0]
    if all(np.array_equal(matrix[j:, j], first[: n - j]) for j in range(1, n)):
        return toeplitz_sensitivity(tuple(np.trim_zeros(first, "b").tolist()), n, b, most)
    spaced = sums.norm(matrix[:, : most * b : b].sum(axis=1))
    if b == 1 and most == n:
        return spaced, spaced
    return _searched(np.ascontiguousarray(matrix.T), b, most, spaced)


def _searched(columns: NDArray[np.float64], b: int, most: int, spaced: float) -> tuple[float, float]:
    """Search for the worst rounds with the core's `participation::worst`; `columns` has one column in each row."""
    from pyaccount import _core
    from pyaccount.strategies import sums

    upper, lower, _ = _core.worst_rounds(sums.gram(columns), len(columns), b, most, SEARCH_WORK)
    if upper == lower:
        return (math.sqrt(upper),) * 2
    return max(math.sqrt(upper), spaced), max(math.sqrt(lower), spaced)

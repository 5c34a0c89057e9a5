"""The largest ‖Σ_i C e_i‖ over separated rounds: exact if the worst rounds are known or found, else enclosed.

For bins that have no coordinate in common, the modes say how far a record of each bin moves what is released:
m_t = Σ_e c_{eT+t} sums the columns of the rounds of bin t of T. numpy is imported only for matrices that need it.
"""

from __future__ import annotations

import math
from collections import Counter
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pyaccount.strategies.tree import BlockTree

#: Entries of a Gram matrix that the search for the worst rounds may read: some tenths of a second.
SEARCH_WORK = 100_000_000

#: The longest Toeplitz run whose worst rounds are searched for if they are not known.
SEARCHED_ROUNDS = 512


def toeplitz_sensitivity(
    coefficients: tuple[float, ...], n: int, b: int, most: int, each_round: float = 0.0
) -> tuple[float, float]:
    """Return an upper and a lower bound for at most `most` rounds, at least b apart; see `Strategy.sensitivity`.

    `most` is at most ⌈n/b⌉, so that so many rounds fit. All patterns whose norms are known here have so many rounds, the
    most that there can be, and so they are also the worst with other releases beside (`each_round`).
    """
    if len(coefficients) == 1:
        return (_joined(coefficients[0] * math.sqrt(most), each_round, most),) * 2
    import numpy as np

    from pyaccount.strategies import sums

    column = np.asarray(coefficients)
    spaced = sums.norm(sums.spaced_sum(column, n, b, most))
    decreasing = all(later <= earlier for earlier, later in pairwise(coefficients))
    # With one participation the first column is the worst, since it is the longest.
    if most == 1 or decreasing or len(coefficients) <= b or (b == 1 and most == n):
        return (_joined(spaced, each_round, most),) * 2
    if n <= SEARCHED_ROUNDS:
        padded = np.zeros(n)
        padded[: len(column)] = column[:n]
        columns = np.array([np.concatenate([np.zeros(i), padded[: n - i]]) for i in range(n)])
        return _searched(columns, b, most, spaced, each_round)
    products = sums.autocorrelation(column)
    # Whatever the distances, most − m of the pairs are m participations apart, and so at least m·b rounds apart.
    envelope = np.maximum.accumulate(products[::-1])[::-1]
    upper = math.sqrt(most * float(products[0]) + 2.0 * _pairs(envelope, b, most))
    # The lower bound takes the distance at which evenly spaced rounds share most, if that many rounds fit.
    farthest = min(len(products) - 1, (n - 1) // (most - 1))
    best = max(range(b, farthest + 1), key=lambda d: _pairs(products, d, most), default=b)
    lower = max(spaced, sums.norm(sums.spaced_sum(column, n, best, most)))
    upper, lower = _joined(upper, each_round, most), _joined(lower, each_round, most)
    return max(upper, lower), lower


def _joined(norm: float, each_round: float, most: int) -> float:
    """Return the norm of what moves with other releases beside; unchanged if there are none."""
    return norm if each_round == 0.0 else math.sqrt(norm * norm + each_round * most)


def _pairs(products: NDArray[np.float64], d: int, most: int) -> float:
    """Return Σ_m (most − m) products[m·d]: for `most` rounds, most − m pairs are m participations apart."""
    import numpy as np

    from pyaccount.strategies import sums

    shared = products[d : (most - 1) * d + 1 : d]
    return sums.total(np.arange(most - 1, most - 1 - len(shared), -1.0) * shared)


def dense_sensitivity(matrix: NDArray[np.float64], b: int, most: int, each_round: float = 0.0) -> tuple[float, float]:
    """Return the same bounds for a matrix without known structure; a Toeplitz structure is detected.

    The matrix may have more rows than columns: it enters through its Gram matrix alone.
    """
    # Scaling by a power of two is exact, and keeps squares from underflowing or overflowing.
    largest = max(float(matrix.max()), math.sqrt(each_round))
    scale = math.ldexp(1.0, math.frexp(largest)[1] - 1)
    above, below = _of_scaled(matrix / scale, b, most, each_round / scale / scale)
    return above * scale, below * scale


def _of_scaled(matrix: NDArray[np.float64], b: int, most: int, each_round: float) -> tuple[float, float]:
    """Return the bounds for a matrix whose largest entry is near 1."""
    import numpy as np

    from pyaccount.strategies import sums

    rows, n = matrix.shape
    first = matrix[:, 0]
    if rows == n and all(np.array_equal(matrix[j:, j], first[: n - j]) for j in range(1, n)):
        return toeplitz_sensitivity(tuple(np.trim_zeros(first, "b").tolist()), n, b, most, each_round)
    spaced = sums.norm(matrix[:, : most * b : b].sum(axis=1))
    if b == 1 and most == n:
        return (_joined(spaced, each_round, most),) * 2
    return _searched(np.ascontiguousarray(matrix.T), b, most, spaced, each_round)


def tree_sensitivity(tree: BlockTree, b: int, most: int, each_round: float = 0.0) -> tuple[float, float]:
    """Return the same bounds for a tree: the roots of the largest sums of squared counts of its nodes."""
    from pyaccount.strategies.tree_patterns import worst_square  # numpy

    upper, lower = worst_square(tree, b, most, each_round)
    return math.sqrt(upper), math.sqrt(lower)


def _searched(columns: NDArray[np.float64], b: int, most: int, spaced: float, each_round: float) -> tuple[float, float]:
    """Search for the worst rounds with the core's `participation::worst`; `columns` has one column in each row.

    `spaced` is the norm for the earliest evenly spaced rounds, of which there are `most`.
    """
    import numpy as np

    from pyaccount import _core
    from pyaccount.strategies import sums

    products = sums.gram(columns)
    if each_round != 0.0:
        products = products + each_round * np.eye(len(columns))
        spaced = _joined(spaced, each_round, most)
    upper, lower, _ = _core.worst_rounds(products, len(columns), b, most, SEARCH_WORK)
    if upper == lower:
        return (math.sqrt(upper),) * 2
    return max(math.sqrt(upper), spaced), max(math.sqrt(lower), spaced)


#: Distinct values in ascending order, each with the number of bins that have it.
Counted = tuple[tuple[float, int], ...]


def turns_of(bin: int, iterations: int, bins: int) -> int:
    """Return the number of rounds of a bin, counted from 0: those that are `bin` modulo `bins`."""
    return max(0, -(-(iterations - bin) // bins))


def toeplitz_modes(coefficients: tuple[float, ...], iterations: int, bins: int, each_round: float = 0.0) -> Counted:
    """Return ‖m_t‖² for a Toeplitz matrix of which only the coefficients at multiples of T are not 0.

    `each_round` is added for each round of the bin, for other releases beside the matrix.

    The row of each turn sums one more of these coefficients. Domain: non-negative coefficients, the first one positive;
    at least as many rounds as bins. The relative error of every value is at most (2n + 8)u for n rounds: it sums
    squares of sums of at most n terms.
    """
    rows = tuple(accumulate(coefficients[::bins]))
    turns, more = divmod(iterations, bins)

    def square(turns: int) -> float:
        return math.fsum(row * row for row in rows[:turns]) + max(0, turns - len(rows)) * rows[-1] ** 2

    return tuple(
        (square(taken) + each_round * taken, count)
        for taken, count in ((turns, bins - more), (turns + 1, more))
        if count
    )


def dense_modes(matrix: NDArray[np.float64], bins: int, each_round: float = 0.0) -> Counted:
    """Return ‖m_t‖² for any matrix with disjoint modes, equal values together; the error is as in `toeplitz_modes`."""
    import numpy as np

    squares = (
        math.fsum(np.square(matrix[:, t::bins].sum(axis=1)).tolist()) + each_round * turns_of(t, matrix.shape[1], bins)
        for t in range(bins)
    )
    return tuple(sorted(Counter(squares).items()))


def disjoint(matrix: NDArray[np.float64], bins: int) -> bool:
    """Whether no row has entries in columns of two bins: the diagonal entry of row i is in bin i mod T."""
    rows, columns = matrix.nonzero()
    return bool(((rows - columns) % bins == 0).all())

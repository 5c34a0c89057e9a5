"""The modes of bins that have no coordinate in common: how far a record of each bin moves what is released.

m_t = Σ_e c_{eT+t} sums the columns of the rounds of bin t of T. numpy is imported only for matrices that need it.
"""

from __future__ import annotations

import math
from collections import Counter
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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

"""The modes of bins that move no coordinate in common: how far a record of each bin moves what is released.

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

#: Values, each with the number of bins that have it; ascending.
Counted = tuple[tuple[float, int], ...]


def toeplitz_modes(coefficients: tuple[float, ...], iterations: int, bins: int) -> Counted:
    """‖m_t‖² of a Toeplitz matrix, of whose coefficients only multiples of T are not 0: each turn's row sums one more of these.

    Domain: non-negative coefficients, the first one positive; at least as many rounds as bins. Every value is off by at most
    (2n + 8)u of itself, n the rounds: it sums squares of sums of at most n terms.
    """
    rows = tuple(accumulate(coefficients[::bins]))
    turns, more = divmod(iterations, bins)

    def square(turns: int) -> float:
        return math.fsum(row * row for row in rows[:turns]) + max(0, turns - len(rows)) * rows[-1] ** 2

    return tuple((square(taken), count) for taken, count in ((turns, bins - more), (turns + 1, more)) if count)


def dense_modes(matrix: NDArray[np.float64], bins: int) -> Counted:
    """‖m_t‖² of any matrix with disjoint modes; equal values together. Off as those of `toeplitz_modes`."""
    import numpy as np

    squares = (math.fsum(np.square(matrix[:, t::bins].sum(axis=1)).tolist()) for t in range(bins))
    return tuple(sorted(Counter(squares).items()))


def disjoint(matrix: NDArray[np.float64], bins: int) -> bool:
    """Whether no row has entries in columns of two bins: row i has one on the diagonal, in bin i mod T."""
    rows, columns = matrix.nonzero()
    return bool(((rows - columns) % bins == 0).all())

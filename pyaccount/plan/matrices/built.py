"""A built matrix: its coefficients, its error, and how far one record can move what is released.

numpy and scipy are imported only for matrices that need them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from pyaccount.plan.common import given
from pyaccount.plan.matrices.sensitivity import (
    Counted,
    dense_modes,
    dense_sensitivity,
    toeplitz_modes,
    toeplitz_sensitivity,
    tree_sensitivity,
    turns_of,
)
from pyaccount.strategies.measure import Workload, WorkloadError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pyaccount.strategies.tree import BlockTree

#: The unit roundoff of double precision.
_UNIT = 2.0**-53


# Compared by identity: the same matrix is built once and kept, and a dense one cannot be hashed.
@dataclass(frozen=True, slots=True, eq=False)
class Strategy:
    """A strategy matrix: entrywise non-negative; Toeplitz, given by its first column, dense, or a tree.

    Toeplitz and square matrices are lower triangular. A dense matrix may also have more rows than columns, in any order, and
    a tree has a row for each node: then what is analysed is the release of all rows of CG + Z, each as soon as its last
    round is over. `error` is that of the prefix sums at σ = 1; `column_norm` is the largest norm of a column.

    **Why the Gram matrix is all that matters, with gradients that depend on earlier releases.** Sort the rows by their last
    round; row r is then released before any later gradient is computed, its noise is independent of the other rows',
    and a record with the participations x moves it by Δ_r = Σ_j C_rj x_j u_j with vectors ‖u_j‖ ≤ 1, which may depend on
    earlier releases. Whatever they are, Σ_r ‖Δ_r‖² = Σ_ij (CᵀC)_ij x_i x_j ⟨u_i, u_j⟩ ≤ ‖Cx‖², since C ≥ 0. Gaussian steps
    chosen adaptively, with squares that never sum to more than μ², are together no worse than one of sensitivity μ
    (Smith & Thakurta 2022, arXiv:2210.17520). It is attained with all u_j equal. Whatever is computed of the
    released rows, such as running sums, is no less private. Training with C⁺Z, C⁺ = (CᵀC)⁻¹Cᵀ, is covered too: its noise
    has the law of L·Z′ with a square lower-triangular L and LLᵀ = (CᵀC)⁻¹ (Denisov et al. 2022, arXiv:2202.08312,
    Theorem 2.1), so it is training with the encoder L⁻¹, whose Gram matrix is CᵀC as well, and only the signs of that
    matrix were used.
    """

    iterations: int
    coefficients: tuple[float, ...] | None
    dense: NDArray[np.float64] | None
    error: WorkloadError
    column_norm: float
    fingerprint: str | None = None
    #: Scales and decays of a BLT, before the matrix is normalised.
    buffers: tuple[tuple[float, ...], tuple[float, ...]] | None = None
    #: The factor by which the matrix that the document describes was multiplied.
    normalization: float = 1.0
    #: The first column of C⁻¹, if the matrix is given by it.
    inverse: tuple[float, ...] | None = None
    #: The tree, if the matrix is one; then neither coefficients nor entries are kept.
    tree: BlockTree | None = None

    @property
    def rows(self) -> int:
        """Return the number of rows: of rounds, or of a dense matrix or nodes of a tree if these are more."""
        if self.tree is not None:
            return self.tree.nodes
        return self.iterations if self.dense is None else len(self.dense)

    @property
    def square(self) -> bool:
        """Whether the matrix has a row for each round, so that training can solve for its noise row by row."""
        return self.tree is None and self.rows == self.iterations

    @property
    def bands(self) -> int | None:
        """Return the number of non-zero diagonals; None if the matrix is not square."""
        if not self.square:
            return None
        if self.coefficients is not None:
            return len(self.coefficients)
        from pyaccount.strategies.dense import bands_of

        return int(bands_of(given(self.dense)))

    @property
    def independent(self) -> bool:
        """Whether the matrix is the identity, so that the noise of the rounds is independent."""
        return self.coefficients == (1.0,)

    @property
    def slack(self) -> float:
        """Return a bound on the relative rounding error of norms, by which bounds are moved to the safe side.

        All entries are non-negative, so a sum of m terms, added in any order, is off by at most (m − 1)u of itself, and
        by another u if they are products (Higham 2002, Section 4.2). A norm is the root of a sum of at most n terms,
        each a square or a cross product of sums of at most n entries, or a sum of n products; a search for the worst
        rounds adds up to 4n of these. So it is off by at most (7n + 8)u/2, and by 5e-13 if such a search reports that
        no rounds are worse.
        """
        return max(1e-9, 4.0 * (max(self.rows, self.iterations) + 16.0) * _UNIT)

    def error_under(self, workload: Workload) -> WorkloadError:
        """Return the error under a workload at σ = 1. Raises `ValueError` if it exceeds the range of doubles."""
        return _error(self, workload)

    def sensitivity(self, min_separation: int, participations: int, each_round: float = 0.0) -> tuple[float, float]:
        """Return an upper and a lower bound on the largest ‖Σ_i C e_i‖ over rounds i at least `min_separation` apart.

        With other releases beside (`document.noise.beside`) it is the root of ‖Σ_i C e_i‖² + `each_round`·(number of
        rounds), at its largest.

        At most `participations` rounds are summed. The two bounds are equal if the worst rounds are known: the longest
        column for one participation; the earliest evenly spaced rounds for Toeplitz matrices that do not increase down
        the first column (Kalinin & Lampert 2024, Theorem 2) and for Toeplitz bands within the separation (columns are
        orthogonal, the first ones the longest); every round; and if a search finds that no rounds are worse. Otherwise
        the lower bound is the norm for the worst rounds found, and the upper bound counts for each column at most as
        many cross products as there are other participations; for a tree see `strategies.tree_patterns`. Both are rounded (see
        `slack`).
        """
        most = min(participations, -(-self.iterations // min_separation))
        return _sensitivity(self, min_separation, most, each_round)

    def bin_gram(self, bins: int, each_round: float = 0.0) -> tuple[list[float], float]:
        """Return the Gram matrix of the modes m_t = Σ_e c_{eT+t}, row by row, and the largest ‖m_t‖, rounded up.

        With other releases beside, `each_round` is added to ‖m_t‖² for each round of bin t.
        """
        import numpy as np

        from pyaccount.strategies import sums

        modes = np.zeros((bins, self.iterations))
        if self.coefficients is not None:
            # m_0 sums the coefficients that are a multiple of T apart; m_t is m_0, t rounds later.
            padded = np.zeros(-(-self.iterations // bins) * bins)
            padded[: len(self.coefficients)] = self.coefficients
            first = padded.reshape(-1, bins).cumsum(axis=0).ravel()[: self.iterations]
            for t in range(bins):
                modes[t, t:] = first[: self.iterations - t]
        else:
            for t in range(bins):
                modes[t] = given(self.dense)[:, t::bins].sum(axis=1)
        gram = sums.gram(modes)
        if each_round != 0.0:
            gram = gram + np.diag([each_round * turns_of(t, self.iterations, bins) for t in range(bins)])
        return gram.ravel().tolist(), float(np.sqrt(gram.diagonal().max()) * (1.0 + self.slack))

    def mode_squares(self, bins: int, *, upper: bool, each_round: float = 0.0) -> Counted:
        """Return upper or lower bounds on ‖m_t‖² of the modes of T bins, each with the number of bins that have it.

        With other releases beside, `each_round` is added to ‖m_t‖² for each round of bin t.

        The modes must be disjoint (`MatrixPlan.disjoint_modes`). The rounding error that `sensitivity` states is below `slack`
        by more than four further roundings; sums of ones are exact.
        """
        if self.coefficients is not None:
            squares = toeplitz_modes(self.coefficients, self.iterations, bins, each_round)
        else:
            squares = _dense_modes(self, bins, each_round)
        factor = 1.0 if self.independent and each_round == 0.0 else 1.0 + self.slack if upper else 1.0 - self.slack
        return tuple((square * factor, count) for square, count in squares)


@lru_cache(maxsize=16)
def _error(built: Strategy, workload: Workload) -> WorkloadError:
    from pyaccount.strategies.dense import dense_error
    from pyaccount.strategies.measure import PREFIX_SUMS
    from pyaccount.strategies.toeplitz import toeplitz_error

    if workload == PREFIX_SUMS:
        return built.error
    if built.coefficients is not None:
        return toeplitz_error(built.coefficients, built.iterations, workload)
    if built.tree is not None:
        from pyaccount.strategies.tree import tree_error

        return tree_error(built.tree, workload)
    return dense_error(given(built.dense), workload)


@lru_cache(maxsize=8)
def _dense_modes(built: Strategy, bins: int, each_round: float) -> Counted:
    return dense_modes(given(built.dense), bins, each_round)


# Cached because it is needed in words and for every value of a blank, and takes n³ steps for a matrix without structure.
@lru_cache(maxsize=8)
def _sensitivity(built: Strategy, min_separation: int, most: int, each_round: float) -> tuple[float, float]:
    if built.coefficients is not None:
        return toeplitz_sensitivity(built.coefficients, built.iterations, min_separation, most, each_round)
    if built.tree is not None:
        return tree_sensitivity(built.tree, min_separation, most, each_round)
    return dense_sensitivity(given(built.dense), min_separation, most, each_round)


@lru_cache(maxsize=64)
def toeplitz_strategy(coefficients: tuple[float, ...], iterations: int, *, normalize: bool) -> Strategy:
    """Return the Toeplitz matrix with this first column; with `normalize` scaled to column norm 1."""
    if coefficients == (1.0,):
        from pyaccount.strategies.measure import WorkloadError  # without numpy

        error = WorkloadError(mean_square=(iterations + 1) / 2, max_square=float(iterations))
        return Strategy(iterations, coefficients, None, error, 1.0)
    from pyaccount.strategies.toeplitz import normalized, toeplitz_error

    first = coefficients[0]
    if normalize:
        coefficients = tuple(float(c) for c in normalized(coefficients))
    norm = math.sqrt(math.fsum(c * c for c in coefficients))
    error = toeplitz_error(coefficients, iterations)
    return Strategy(iterations, coefficients, None, error, norm, normalization=scaled_by(coefficients[0], first))


def scaled_by(entry: float, before: float) -> float:
    """Return the factor by which a matrix was multiplied, from its first entry after and before.

    Raises `ValueError` if the factor exceeds the largest double and so cannot be stated: for norms below 5.6e-309.
    """
    factor = entry / before
    if math.isinf(factor):
        raise ValueError(
            "the largest column norm of this matrix is so small that no double holds the factor that makes it 1: multiply all "
            "entries by the same number"
        )
    return factor

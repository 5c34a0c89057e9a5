"""The matrix of a body, built: its coefficients, its error, and how far one record can move what is released.

This is where the plan's words meet the strategies room; numpy and scipy are imported only for matrices that need them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from pyaccount.document import (
    BLT,
    BallsInBins,
    BandedInverse,
    BandedSquareRoot,
    Dense,
    Deterministic,
    OptimalToeplitz,
    Toeplitz,
    UserBMinSep,
    bins,
    sampling_probability,
    separation,
    user_probability,
)
from pyaccount.errors import DocumentError
from pyaccount.plan.common import whole

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pyaccount.document import Body, Document, Matrix
    from pyaccount.strategies import PrefixSumError

#: The unit roundoff of double precision.
_UNIT = 2.0**-53


# Equal only to itself: the same matrix is built once and kept, and a dense one has no hash.
@dataclass(frozen=True, slots=True, eq=False)
class Strategy:
    """A strategy matrix: lower-triangular, entrywise non-negative; Toeplitz by its first column, or dense.

    `error` is that of the prefix sums at σ = 1; `column_norm` the largest norm of a column.
    """

    iterations: int
    coefficients: tuple[float, ...] | None
    dense: NDArray[np.float64] | None
    error: PrefixSumError
    column_norm: float
    fingerprint: str | None = None
    #: Scales and decays of a BLT, before the matrix is normalised.
    buffers: tuple[tuple[float, ...], tuple[float, ...]] | None = None
    #: What the matrix that the document describes was multiplied by.
    normalization: float = 1.0
    #: The first column of C⁻¹, for a matrix that is given by it.
    inverse: tuple[float, ...] | None = None

    @property
    def bands(self) -> int:
        """The number of non-zero diagonals."""
        if self.coefficients is not None:
            return len(self.coefficients)
        from pyaccount.strategies import bands_of  # noqa: PLC0415

        assert self.dense is not None
        return int(bands_of(self.dense))

    @property
    def slack(self) -> float:
        """Norms are known to better than this, relatively; whoever bounds with one moves it by this to the safe side.

        All entries are non-negative, so a sum of m terms, added in any order, is off by at most (m − 1)u of itself, and by
        another u where they are products (Higham 2002, Section 4.2). A norm is the root of a sum of at most n terms, each a
        square or a cross product of sums of at most n entries, or a sum of n products: it is off by at most (3n + 8)u/2.
        """
        return max(1e-9, 4.0 * (self.iterations + 16.0) * _UNIT)

    def sensitivity(self, min_separation: int, participations: int) -> tuple[float, float]:
        """The largest ‖Σ_i C e_i‖ over so many rounds at least `min_separation` apart, from above and from below.

        The lower end is that of the earliest evenly spaced rounds, and the two are equal where these are the worst: for
        Toeplitz matrices that do not increase down the first column (Kalinin & Lampert 2024, Theorem 2), for Toeplitz
        bands within the separation (columns are orthogonal, the first ones the longest) and for every round at once.
        Otherwise the upper end charges each cross product of two columns to both of them. Both are rounded (see
        `slack`).
        """
        most = min(participations, -(-self.iterations // min_separation))
        if self.coefficients is not None:
            return _toeplitz_sensitivity(self.coefficients, self.iterations, min_separation, most)
        assert self.dense is not None
        return _dense_sensitivity(self.dense, min_separation, most)

    def bin_gram(self, bins: int) -> tuple[list[float], float]:
        """The Gram matrix of the modes m_t = Σ_e c_{eT+t}, row by row, and the largest ‖m_t‖."""
        import numpy as np  # noqa: PLC0415

        modes = np.zeros((bins, self.iterations))
        if self.coefficients is not None:
            # m_0 sums the coefficients that are a multiple of T apart; m_t is m_0, t rounds later.
            padded = np.zeros(-(-self.iterations // bins) * bins)
            padded[: len(self.coefficients)] = self.coefficients
            first = padded.reshape(-1, bins).cumsum(axis=0).ravel()[: self.iterations]
            for t in range(bins):
                modes[t, t:] = first[: self.iterations - t]
        else:
            assert self.dense is not None
            for t in range(bins):
                modes[t] = self.dense[:, t::bins].sum(axis=1)
        gram = modes @ modes.T
        gram = 0.5 * (gram + gram.T)
        return gram.ravel().tolist(), float(np.sqrt(gram.diagonal().max()) * (1.0 + self.slack))


def _toeplitz_sensitivity(coefficients: tuple[float, ...], n: int, b: int, most: int) -> tuple[float, float]:
    if len(coefficients) == 1:
        return (coefficients[0] * math.sqrt(most),) * 2
    import numpy as np  # noqa: PLC0415
    from scipy.signal import lfilter  # type: ignore[import-untyped]  # noqa: PLC0415

    comb = np.zeros(n)
    comb[: most * b : b] = 1.0
    spaced = float(np.linalg.norm(lfilter(coefficients, [1.0], comb)))
    decreasing = all(later <= earlier for earlier, later in pairwise(coefficients))
    if decreasing or len(coefficients) <= b or (b == 1 and most == n):
        return spaced, spaced
    column = np.asarray(coefficients)
    products = np.correlate(column, column, "full")[len(column) - 1 :]
    # Whatever the distances, the m-th neighbour on either side is at least m·b away.
    envelope = np.maximum.accumulate(products[::-1])[::-1]
    neighbours = envelope[b : (most - 1) * b + 1 : b]
    return max(spaced, math.sqrt(most * float(products[0] + 2.0 * neighbours.sum()))), spaced


def _dense_sensitivity(matrix: NDArray[np.float64], b: int, most: int) -> tuple[float, float]:
    import numpy as np  # noqa: PLC0415

    n = len(matrix)
    spaced = float(np.linalg.norm(matrix[:, : most * b : b].sum(axis=1)))
    if b == 1 and most == n:
        return spaced, spaced
    gram = matrix.T @ matrix
    # For each column the largest sum of products with columns that a pattern through it may hold, on either side.
    crossing = _best_separated(np.tril(gram, -b), b) + _best_separated(np.triu(gram, b), b)
    worth = gram.diagonal() + crossing
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


def strategy(document: Document, body: Body) -> Strategy:
    """The matrix of a body. Raises `DocumentError` for a file that holds none, and for an inverse that gives none."""
    n, matrix = whole(body.training.iterations), body.matrix
    if isinstance(matrix, Dense):
        return _from_file(document, body, matrix, n)
    try:
        return _from_parameters(matrix, n, *(_usual_pattern(body, n) if isinstance(matrix, BLT) else (n, 1)))
    except ValueError as error:
        raise DocumentError([document.problem("no-valid-bound", body.at("matrix"), str(error))]) from error


def _from_file(document: Document, body: Body, matrix: Dense, n: int) -> Strategy:
    from pyaccount.strategies import MatrixFileError  # noqa: PLC0415

    folder = Path(document.file).parent if document.file is not None else Path()
    try:
        path = folder / matrix.file
        # The path may be relative, and the directory another one by now.
        found = path.stat() if path.is_file() else None
        stamp = None if found is None else (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
        return _dense(path, n, matrix.normalize, stamp)
    except MatrixFileError as error:
        raise DocumentError([document.problem("matrix-file", body.at("matrix", "file"), str(error))]) from error


def _usual_pattern(body: Body, n: int) -> tuple[int, int]:
    """How far apart a record usually takes part, and how often; without sampling, as near and as often as it may."""
    sampler = body.sampler
    if isinstance(sampler, Deterministic):
        apart = sampler.min_separation or 1
        return apart, min(-(-n // apart), sampler.max_participations or n)
    if isinstance(sampler, BallsInBins):
        apart = bins(body)
    else:
        p = user_probability(body) if isinstance(sampler, UserBMinSep) else sampling_probability(body)
        apart = min(n, round((separation(body) or 1) - 1 + 1.0 / p))
    return apart, -(-n // apart)


def _from_parameters(matrix: Matrix, n: int, apart: int, participations: int) -> Strategy:
    """A Toeplitz matrix. Raises `ValueError` for one that is not non-negative, or whose error no double holds."""
    normalize: bool = getattr(matrix, "normalize", False)
    if isinstance(matrix, BandedSquareRoot | OptimalToeplitz):
        assert isinstance(matrix.bands, int)
        return _named(matrix.kind, matrix.bands, n, normalize=normalize)
    if isinstance(matrix, BandedInverse):
        inverse = None if matrix.inverse_coefficients is None else tuple(matrix.inverse_coefficients)
        return _inverse(matrix.bands, inverse, n, normalize=normalize)
    if isinstance(matrix, BLT):
        if matrix.scales is not None and matrix.decays is not None:
            return _blt(tuple(matrix.scales), tuple(matrix.decays), n, normalize=normalize)
        assert matrix.buffers is not None
        return _optimal_blt(matrix.buffers, n, apart, participations, normalize=normalize)
    listed = list(matrix.coefficients) if isinstance(matrix, Toeplitz) else [1.0]
    while listed[-1] == 0.0:
        listed.pop()
    return _toeplitz(tuple(listed), n, normalize=normalize)


@lru_cache(maxsize=64)
def _named(kind: str, bands: int, iterations: int, *, normalize: bool) -> Strategy:
    from pyaccount.strategies import banded_square_root, optimal_toeplitz  # noqa: PLC0415

    coefficients = banded_square_root(bands) if kind == "banded-square-root" else optimal_toeplitz(iterations, bands)
    return _toeplitz(tuple(float(c) for c in coefficients), iterations, normalize=normalize)


@lru_cache(maxsize=16)
def _inverse(bands: int | None, inverse: tuple[float, ...] | None, iterations: int, *, normalize: bool) -> Strategy:
    from pyaccount.strategies import banded_inverse, inverse_square_root  # noqa: PLC0415

    if inverse is None:
        assert bands is not None
        inverse = tuple(float(d) for d in inverse_square_root(bands))
    built = _toeplitz(tuple(banded_inverse(inverse, iterations).tolist()), iterations, normalize=normalize)
    return replace(built, inverse=tuple(d / built.normalization for d in inverse[:iterations]))


@lru_cache(maxsize=16)
def _optimal_blt(buffers: int, iterations: int, apart: int, participations: int, *, normalize: bool) -> Strategy:
    from pyaccount.strategies import optimal_blt  # noqa: PLC0415

    scales, decays = optimal_blt(iterations, buffers, apart, participations)
    return _blt(tuple(scales.tolist()), tuple(decays.tolist()), iterations, normalize=normalize)


@lru_cache(maxsize=16)
def _blt(scales: tuple[float, ...], decays: tuple[float, ...], iterations: int, *, normalize: bool) -> Strategy:
    from pyaccount.strategies import blt  # noqa: PLC0415

    built = _toeplitz(tuple(blt(scales, decays, iterations).tolist()), iterations, normalize=normalize)
    return replace(built, buffers=(scales, decays))


@lru_cache(maxsize=64)
def _toeplitz(coefficients: tuple[float, ...], iterations: int, *, normalize: bool) -> Strategy:
    if coefficients == (1.0,):
        from pyaccount.strategies.measure import PrefixSumError  # noqa: PLC0415 - without numpy

        error = PrefixSumError(mean_square=(iterations + 1) / 2, max_square=float(iterations))
        return Strategy(iterations, coefficients, None, error, 1.0)
    from pyaccount.strategies import normalized, toeplitz_error  # noqa: PLC0415

    first = coefficients[0]
    if normalize:
        coefficients = tuple(float(c) for c in normalized(coefficients))
    norm = math.sqrt(math.fsum(c * c for c in coefficients))
    error = toeplitz_error(coefficients, iterations)
    return Strategy(iterations, coefficients, None, error, norm, normalization=coefficients[0] / first)


@lru_cache(maxsize=4)
def _dense(path: Path, iterations: int, normalize: bool, stamp: tuple[int, ...] | None) -> Strategy:
    import hashlib  # noqa: PLC0415

    from pyaccount.strategies import column_norms, dense_error, load_dense, normalized_columns_max  # noqa: PLC0415

    matrix = load_dense(path, iterations)
    fingerprint = hashlib.sha256(matrix.tobytes()).hexdigest()
    first = float(matrix[0, 0])
    if normalize:
        matrix = normalized_columns_max(matrix)
    norm, factor = float(column_norms(matrix).max()), float(matrix[0, 0]) / first
    return Strategy(iterations, None, matrix, dense_error(matrix), norm, fingerprint, normalization=factor)

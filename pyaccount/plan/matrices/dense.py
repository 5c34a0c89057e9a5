"""Matrices from files."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pyaccount.document.matrices import Dense
from pyaccount.errors import DocumentError
from pyaccount.plan.matrices.base import MatrixPlan, rounds_of
from pyaccount.plan.matrices.built import Strategy, scaled_by
from pyaccount.plan.matrices.modes import disjoint

if TYPE_CHECKING:
    from pyaccount.document.document import Document
    from pyaccount.document.views import Body

#: Nanoseconds that each entry of a column takes, for a sample and a step.
ENTRY_COST = 0.15


class DensePlan(MatrixPlan):
    """A matrix from a file, which has as many rows as the run has rounds."""

    may_fail: ClassVar[bool] = True
    from_file: ClassVar[bool] = True

    def text(self, body: Body) -> str:
        """Name the matrix and where it comes from."""
        return "dense matrix from a file"

    def build(self, document: Document, body: Body) -> Strategy:
        """Read the matrix: once for a pinned document, otherwise again whenever the file has changed.

        Raises `DocumentError` for a file that holds no matrix.
        """
        assert isinstance(body.matrix, Dense)
        key = (body.matrix.file, rounds_of(body), body.matrix.normalize)
        if document.read is None:
            return self._read(document, body, body.matrix)
        if key not in document.read:
            document.read[key] = self._read(document, body, body.matrix)
        built: Strategy = document.read[key]
        return built

    def _read(self, document: Document, body: Body, matrix: Dense) -> Strategy:
        from pyaccount.strategies.dense import MatrixFileError

        folder = Path(document.file).parent if document.file is not None else Path()
        try:
            path = folder / matrix.file
            # The file's identity is part of the cache key: the path may be relative, and the working directory may change.
            status = path.stat() if path.is_file() else None
            stamp = None if status is None else (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
            return _dense(path, rounds_of(body), matrix.normalize, stamp)
        except MatrixFileError as error:
            raise DocumentError([document.problem("matrix-file", body.at("matrix", "file"), str(error))]) from error

    def disjoint_modes(self, document: Document, body: Body, bins: int) -> bool:
        """Whether all entries between different bins are 0."""
        dense = self.build(document, body).dense
        assert dense is not None
        return disjoint(dense, bins)

    def product_cost(self, body: Body) -> float:
        """Return the cost of products of whole columns."""
        return ENTRY_COST * rounds_of(body)

    def generation(self, built: Strategy) -> str:
        """Describe the noise as a forward substitution."""
        return "z_t = (w_t − Σ_s C_ts·z_s) / C_tt, s < t, C the file's entries times the `normalization`; all rows z are kept"

    def leading_block(self, built: Strategy, body: Body, noise: dict[str, Any], rounds: int) -> dict[str, Any]:
        """Raise `AssertionError`: no file has the leading block."""
        raise AssertionError("a dense matrix is never cut")


@lru_cache(maxsize=4)
def _dense(path: Path, iterations: int, normalize: bool, stamp: tuple[int, ...] | None) -> Strategy:
    import hashlib

    from pyaccount.strategies.dense import column_norms, dense_error, load_dense, normalized_columns_max

    matrix = load_dense(path, iterations)
    fingerprint = hashlib.sha256(matrix.tobytes()).hexdigest()
    first = float(matrix[0, 0])
    if normalize:
        matrix = normalized_columns_max(matrix)
    norm, factor = float(column_norms(matrix).max()), scaled_by(float(matrix[0, 0]), first)
    return Strategy(iterations, None, matrix, dense_error(matrix), norm, fingerprint, normalization=factor)


PLAN = DensePlan()

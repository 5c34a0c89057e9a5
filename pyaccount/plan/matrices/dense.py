"""Matrices from files."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pyaccount.document import Dense
from pyaccount.errors import DocumentError
from pyaccount.plan.matrices.base import MatrixPlan, rounds_of
from pyaccount.plan.matrices.built import Strategy, scaled_by
from pyaccount.plan.matrices.modes import disjoint

if TYPE_CHECKING:
    from pyaccount.document import Body, Document

#: Nanoseconds for each entry of a column, for a sample and a step.
ENTRY_COST = 0.15


class DensePlan(MatrixPlan):
    """As large as the run."""

    may_fail: ClassVar[bool] = True
    from_file: ClassVar[bool] = True

    def text(self, body: Body) -> str:
        """Where it is."""
        return "dense matrix from a file"

    def build(self, document: Document, body: Body) -> Strategy:
        """Read once for a pinned document, or else again if the file changed. Raises `DocumentError` for one that holds none."""
        assert isinstance(body.matrix, Dense)
        key = (body.matrix.file, rounds_of(body), body.matrix.normalize)
        if document.read is None:
            return self._read(document, body, body.matrix)
        if key not in document.read:
            document.read[key] = self._read(document, body, body.matrix)
        built: Strategy = document.read[key]
        return built

    def _read(self, document: Document, body: Body, matrix: Dense) -> Strategy:
        from pyaccount.strategies import MatrixFileError

        folder = Path(document.file).parent if document.file is not None else Path()
        try:
            path = folder / matrix.file
            # The path may be relative, and the directory another one by now.
            found = path.stat() if path.is_file() else None
            stamp = None if found is None else (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
            return _dense(path, rounds_of(body), matrix.normalize, stamp)
        except MatrixFileError as error:
            raise DocumentError([document.problem("matrix-file", body.at("matrix", "file"), str(error))]) from error

    def disjoint_modes(self, document: Document, body: Body, bins: int) -> bool:
        """Where the entries between bins are 0."""
        dense = self.build(document, body).dense
        assert dense is not None
        return disjoint(dense, bins)

    def product_cost(self, body: Body) -> float:
        """Whole columns."""
        return ENTRY_COST * rounds_of(body)

    def generation(self, built: Strategy) -> str:
        """By forward substitution."""
        return "z_t = (w_t − Σ_s C_ts·z_s) / C_tt, s < t, C the file's entries times the `normalization`; all rows z are kept"

    def leading_block(self, built: Strategy, body: Body, noise: dict[str, Any], rounds: int) -> dict[str, Any]:
        """No file has it."""
        raise AssertionError("a dense matrix is never cut")


@lru_cache(maxsize=4)
def _dense(path: Path, iterations: int, normalize: bool, stamp: tuple[int, ...] | None) -> Strategy:
    import hashlib

    from pyaccount.strategies import column_norms, dense_error, load_dense, normalized_columns_max

    matrix = load_dense(path, iterations)
    fingerprint = hashlib.sha256(matrix.tobytes()).hexdigest()
    first = float(matrix[0, 0])
    if normalize:
        matrix = normalized_columns_max(matrix)
    norm, factor = float(column_norms(matrix).max()), scaled_by(float(matrix[0, 0]), first)
    return Strategy(iterations, None, matrix, dense_error(matrix), norm, fingerprint, normalization=factor)


PLAN = DensePlan()

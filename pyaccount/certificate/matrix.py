"""The strategy matrix C to train with, built only from what the certificate of a phase states."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyaccount.arguments import number_of
from pyaccount.errors import CertificateError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pyaccount.records.certificate import MatrixRecord, PhaseRecord
    from pyaccount.strategies.tree import BlockTree

#: The most rows of a matrix that is built as an array: 128 MB as doubles.
LARGEST = 4096


@dataclass(frozen=True)
class StrategyMatrix:
    """The strategy matrix C of one phase.

    Training adds C⁻¹Z, where the rows of Z are independent with standard deviation σ clip norms. C is lower triangular,
    with a row and a column for each iteration (a matrix from a file may have more rows, and is then not for training);
    `record` is what the certificate states about it. Its numbers are the doubles that were analysed, bit for bit,
    normalised as the document asks.
    """

    record: MatrixRecord
    iterations: int

    @classmethod
    def of(cls, phase: PhaseRecord) -> StrategyMatrix:
        """Return the matrix of a phase of a certificate."""
        return cls(phase.matrix, phase.iterations)

    @property
    def kind(self) -> str:
        """The kind of matrix, as in the document."""
        return self.record.kind

    @property
    def column_norm(self) -> float:
        """The largest Euclidean norm of a column of C."""
        return self.record.column_norm

    @property
    def normalization(self) -> float:
        """The factor by which the document's matrix was multiplied. Raises `CertificateError` if it is not stated."""
        if self.kind == "identity":
            return 1.0
        if self.record.normalization is None:
            raise _unstated("how the matrix was normalised")
        return self.record.normalization

    @property
    def coefficients(self) -> NDArray[np.float64]:
        """The first column of a Toeplitz C, from the diagonal down, normalised; entries that are not listed are 0.

        Raises `CertificateError` if the matrix is not Toeplitz, or if the certificate does not state the column.
        """
        import numpy as np  # only training needs numpy, gates do not

        record = self.record
        if self.kind == "identity":
            return np.ones(1)
        if record.coefficients is not None:
            return np.array(record.coefficients)
        if record.sha256 is not None:
            raise CertificateError("a matrix from a file has no coefficients: use `dense`")
        if record.estimation is not None:
            raise CertificateError("a tree has no coefficients, since its rows differ: use `dense`, or `encoder`")
        if record.buffers is not None and record.normalization is not None:
            from pyaccount.strategies.inverse import blt

            return record.normalization * blt(record.buffers.scales, record.buffers.decays, self.iterations)
        if record.inverse_coefficients is not None:
            from pyaccount.strategies.inverse import banded_inverse

            return banded_inverse(record.inverse_coefficients, self.iterations)
        raise _unstated("the matrix's coefficients")

    @property
    def inverse_coefficients(self) -> NDArray[np.float64] | None:
        """The first column of C⁻¹, from the diagonal down, normalised; None for kinds whose inverse is not banded."""
        import numpy as np

        listed = self.record.inverse_coefficients
        return None if listed is None else np.array(listed)

    def dense(self, size: int | None = None, *, file: str | os.PathLike[str] | None = None) -> NDArray[np.float64]:
        """Return C as an array, or its first `size` rows and columns. Use it to check an implementation, not to train.

        For a matrix from a file that is too large to be in the certificate, `file` is that file; the hash of its
        entries must be the one stated. If it has more rows than columns it is returned whole, and there is no leading block.
        For a tree, C is the square matrix whose inverse gives the noise of the estimates; see `encoder` for its nodes.

        Raises `CertificateError` for another file or if the certificate does not state the matrix, and `DomainError` unless
        `size` is from 1 to the number of iterations, and at most 4096.
        """
        import numpy as np

        most = min(self.iterations, LARGEST)
        if size is None and self.iterations > LARGEST:
            size = self.iterations
        rows = int(number_of("size", most if size is None else size, f"from 1 to {most}", 1, most + 1))
        if self.record.sha256 is not None:
            whole = self._from_file(file)
            if self.record.rows is None:
                return whole[:rows, :rows]
            if size is not None:
                raise CertificateError(
                    f"size = {size!r}: a matrix with {self.record.rows} rows and {self.iterations} columns has no leading block, "
                    "since its rows are in any order: leave size out"
                )
            return whole
        if self.record.estimation is not None:
            from pyaccount.strategies.tree import training_matrix

            return training_matrix(self._tree(rows))
        column = self.coefficients[:rows]
        built = np.zeros((rows, rows))
        for offset, value in enumerate(column):
            np.fill_diagonal(built[offset:], value)
        return built

    def encoder(self, size: int | None = None) -> NDArray[np.float64]:
        """Return the matrix of all sums that are released with noise of their own, or of those within `size` rounds.

        For a tree it has a row for each node, in the order in which they are complete, and `column_norm` is its largest
        column norm. For every other matrix it is `dense(size)`. Raises as `dense` does.
        """
        if self.record.estimation is None:
            return self.dense(size)
        from pyaccount.strategies.tree import tree_encoder

        most = min(self.iterations, LARGEST)
        asked = self.iterations if size is None else size
        return tree_encoder(self._tree(int(number_of("size", asked, f"from 1 to {most}", 1, most + 1))))

    def _tree(self, rounds: int) -> BlockTree:
        """Return the tree within these first rounds: its nodes are those of the whole tree that are complete by then."""
        from pyaccount.strategies.tree import BlockTree

        every = min(self.record.restart_every or self.iterations, rounds)
        return BlockTree(rounds, every, self.record.estimation == "efficient", self.normalization)

    def _from_file(self, file: str | os.PathLike[str] | None) -> NDArray[np.float64]:
        import numpy as np

        record = self.record
        if record.entries is not None:
            built = np.zeros((record.rows or self.iterations, self.iterations))
            for index, row in enumerate(record.entries):
                built[index, : len(row)] = row
            return built
        if file is None:
            raise CertificateError("the certificate has the hash of this matrix, not its entries: give its file")
        from pyaccount.strategies.dense import MatrixFileError, load_dense

        try:
            read = load_dense(Path(file), self.iterations)
        except MatrixFileError as error:
            raise CertificateError(str(error)) from error
        if hashlib.sha256(read.tobytes()).hexdigest() != record.sha256:
            raise CertificateError(
                f"{os.fspath(file)}: not the matrix of this certificate: its entries have another hash"
            )
        return read * self.normalization


def _unstated(what: str) -> CertificateError:
    return CertificateError(f"this certificate does not state {what}: certify its document again")

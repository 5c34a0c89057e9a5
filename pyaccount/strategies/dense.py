"""Dense strategies: read from a file, checked entry by entry, and measured.

Arrays of numbers are read from open .npy files, of which the header may be hostile.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg  # type: ignore[import-untyped]

from pyaccount.files import InsideFile, lines_of, opened
from pyaccount.strategies.measure import PREFIX_SUMS, Workload, WorkloadError
from pyaccount.strategies.sums import Entries
from pyaccount.strategies.toeplitz import in_range
from pyaccount.strategies.workload import dense_workload


class NpyError(ValueError):
    """The file is not a .npy file of numbers. The message repeats nothing of the file."""


class Header(NamedTuple):
    """What the header of a .npy file says."""

    shape: tuple[int, ...]
    fortran: bool
    kind: np.dtype[np.generic]


def _header_of(file: BinaryIO) -> Header:
    """Read the header, and leave the file at its entries. Raises `NpyError`, also if they are not real numbers."""
    try:
        version = np.lib.format.read_magic(file)
        # Version 3.0 exists only for structured types with names beyond Latin-1, which are not numbers.
        readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        header = Header(*readers[version](file))
    except Exception:
        # NumPy evaluates the header as a literal of Python, and lets pass what its parser raises; its messages repeat the text.
        raise NpyError("not a .npy file of numbers") from None
    # Booleans, complex numbers, dates, text and objects are not real numbers.
    if header.kind.kind not in "iuf":
        raise NpyError(f"real numbers are expected, but their type is {header.kind.name}")
    return header


def _mapped(file: BinaryIO, header: Header) -> NDArray[np.generic]:
    """Return the entries, without reading them. Raises `NpyError` if the file has fewer than the header says."""
    order = "F" if header.fortran else "C"
    try:
        return np.memmap(file, dtype=header.kind, mode="r", offset=file.tell(), shape=header.shape, order=order)  # type: ignore[call-overload, no-any-return]
    except (ValueError, OverflowError, OSError):
        raise NpyError(
            f"the header promises {header.shape} entries of type {header.kind}, which are not there"
        ) from None


LARGEST = 4096

"""The most columns a dense strategy may have, and the most rows if it is square: 128 MB as doubles, and a second or two
for its error."""

MOST_ROWS = 2 * LARGEST

"""The most rows a dense strategy with more rows than columns may have: a binary tree over `LARGEST` rounds has fewer."""

LARGEST_TEXT = 512 * 2**20

"""The most bytes a text file may have: LARGEST² entries at 32 characters each, and longer lines for every round of a schedule."""


def read_numbers(
    source: Path | InsideFile,
    error: type[ValueError],
    called: str,
    pick: Callable[[Path, tuple[int, ...]], Any],
    of_text: Callable[[Path, BinaryIO], Entries],
) -> Entries:
    """Return numbers of a .npy, .csv or .txt file as new doubles. Raises `error`, and nothing else, for what is wrong with it.

    `pick` checks the shape of an array, and returns the index of what is read of it; `of_text` reads text in UTF-8.
    """
    path = source.path if isinstance(source, InsideFile) else source
    try:
        with opened(source) as file:
            match path.suffix.lower():
                case ".npy":
                    header = _header_of(file)
                    index = pick(path, header.shape)
                    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
                        # A copy does not change with the file. Entries that overflow to infinity are rejected later.
                        return np.array(_mapped(file, header)[index], np.float64, order="C", copy=True, subok=False)
                case ".csv" | ".txt":
                    size = os.fstat(file.fileno()).st_size
                    if size > LARGEST_TEXT:
                        raise error(
                            f"{path}: {size} bytes; a text file may have {LARGEST_TEXT}, use .npy for larger ones"
                        )
                    return of_text(path, file)
                case other:
                    raise error(f"{path}: {called} ends in .npy, .csv or .txt, not in {other!r}")
    except NpyError as wrong:
        raise error(f"{path}: {wrong}") from wrong
    except UnicodeDecodeError as wrong:
        raise error(f"{path}: not UTF-8 text: {wrong.reason} at byte {wrong.start}") from wrong
    except FileNotFoundError:
        raise error(f"{path}: no such file") from None
    except PermissionError:
        raise error(f"{path}: no permission to read it") from None
    except OSError as wrong:
        raise error(f"{path!s}: cannot be read: {wrong.strerror or wrong}") from wrong


class MatrixFileError(ValueError):
    """A file contains no usable strategy matrix. The message names the file and the first thing wrong with it."""


def load_dense(source: Path | InsideFile, iterations: int) -> Entries:
    """Read the strategy matrix in a file: lower triangular, entries finite and ≥ 0, positive diagonal; or with more rows.

    A matrix with more rows than columns is an encoder of sums with noise of their own. Its rows may be in any order; every
    entry is finite and ≥ 0, and every column has a positive entry.

    Takes a .npy file (any real integer or floating-point type; never unpickled), or a .csv or .txt file in UTF-8 with
    one row per line. Entries are separated by commas if the first row has one, otherwise by white space; blank lines
    and comments from # on are ignored. Returns a C-contiguous array of doubles with `iterations` columns, not normalised;
    integers and wider types are rounded to the nearest double.

    Whatever follows from the size, the header or the number of entries is checked before any entry is read, so a file
    that is far too large is rejected at once. Rows and columns in messages count from 0. Raises `MatrixFileError`, and
    nothing else, for anything wrong with the file or the matrix. No message repeats what is in the file: a document of somebody
    else may have named it.
    """

    def whole(path: Path, shape: tuple[int, ...]) -> object:
        _check_shape(path, shape, iterations)
        return ...

    matrix = read_numbers(
        source, MatrixFileError, "a matrix file", whole, lambda path, file: _read_text(path, file, iterations)
    )
    _check_entries(source.path if isinstance(source, InsideFile) else source, matrix)
    return matrix


def column_norms(matrix: Entries) -> Entries:
    """Return ‖c_j‖₂ for every column j.

    Takes a matrix as `load_dense` returns it; returns a vector of positive numbers. Accurate to about √n units in the
    last place at any scale, and infinite only if the norm exceeds the largest double.
    """
    # Each column is scaled, so that the squares can neither overflow nor all underflow.
    peaks = matrix.max(axis=0)
    with np.errstate(over="ignore"):
        norms: Entries = peaks * np.linalg.norm(matrix / peaks, axis=0)
    return norms


def normalized_columns_max(matrix: Entries) -> Entries:
    """Return C / max_j ‖c_j‖₂: the same strategy with largest column norm 1.

    Takes a matrix as `load_dense` returns it; returns a new one of the same shape. Accurate to about √n units in the
    last place; entries more than 300 orders of magnitude below the norm become 0.
    """
    # This takes two steps, because the norm itself may exceed the largest double.
    scaled: Entries = matrix / matrix.max()
    scaled /= column_norms(scaled).max()
    return scaled


def dense_error(matrix: Entries, workload: Workload = PREFIX_SUMS) -> WorkloadError:
    """Return the error of the strategy as it is (not normalised), for prefix sums or another workload.

    X = A·C⁻¹ from X·C = A: mean_square = ‖X‖_F²/n, max_square = the largest squared row norm of X. With more rows than
    columns X = A·C⁺, C⁺ = (CᵀC)⁻¹Cᵀ, which has the least row norms of all X with X·C = A (Gauss and Markov). From C·P =
    QR, with a permutation P, the rows of A·C⁺ = A·P·R⁻¹·Qᵀ have the norms of those of A·P·R⁻¹.

    Takes a matrix as `load_dense` returns it. Takes time O(n³) and memory for three more matrices of the same size. The
    substitution is backward stable: its relative error is at worst near n·1e−16 times the condition number of the
    triangular system, and usually far smaller. Raises ValueError if an error is outside the range of a double, or if the
    columns of a matrix with more rows are linearly dependent up to rounding, so that running sums cannot be estimated.
    """
    rows, size = matrix.shape
    if rows > size:
        return _error_of_more_rows(matrix, workload)
    scale = float(matrix.diagonal().max())
    with np.errstate(over="ignore", invalid="ignore"):
        # The transposed system Cᵀ·Xᵀ = Aᵀ; row i of X is column i of the solution.
        solution = linalg.solve_triangular(
            matrix / scale,
            dense_workload(workload, size).T,
            trans="T",
            lower=True,
            overwrite_b=True,
            check_finite=False,
        )
        rows = np.einsum("ij,ij->j", solution, solution)
        return in_range(float(rows.sum()) / size, float(rows.max()), scale)


def _error_of_more_rows(matrix: Entries, workload: Workload) -> WorkloadError:
    size, scale = matrix.shape[1], float(matrix.max())
    factor, order = linalg.qr(matrix / scale, mode="r", pivoting=True, check_finite=False)
    factor = factor[:size]
    # With pivoting the diagonal decreases, and its last entry shows how near the columns are to dependence.
    diagonal = np.abs(factor.diagonal())
    if not diagonal[-1] > len(matrix) * np.finfo(np.float64).eps * diagonal[0]:
        raise ValueError(
            "the columns of this matrix are linearly dependent, up to rounding, so the sums of single rounds cannot be told from "
            "its rows: add rows until every round can be estimated"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        solution = linalg.solve_triangular(
            factor, dense_workload(workload, size)[:, order].T, trans="T", overwrite_b=True, check_finite=False
        )
        rows = np.einsum("ij,ij->j", solution, solution)
        return in_range(float(rows.sum()) / size, float(rows.max()), scale)


def bands_of(matrix: Entries) -> int:
    """Return the number of bands: the least b with C[i, j] = 0 wherever i − j ≥ b.

    Takes a matrix as `load_dense` returns it; returns 1 for a diagonal matrix and up to n for a full one. Exact: every
    entry that is not 0 counts.
    """
    # This is the first non-zero entry of each row, which exists because the diagonal is positive.
    first = (matrix != 0.0).argmax(axis=1)
    return int((np.arange(len(matrix)) - first).max()) + 1


def _read_text(path: Path, file: BinaryIO, iterations: int) -> Entries:
    delimiter, counted = _check_text_shape(path, file, iterations)
    rows = [_parse(path, row, line, delimiter) for row, line in enumerate(lines_of(file, LARGEST_TEXT))]
    # The file is read twice and may have changed in between.
    if len(rows) != counted or any(len(row) != iterations for row in rows):
        raise MatrixFileError(f"{path}: changed while it was being read")
    return np.array(rows)


def _check_text_shape(path: Path, file: BinaryIO, iterations: int) -> tuple[str | None, int]:
    """Count entries without parsing them; return the delimiter, or None for white space, and the number of rows."""
    delimiter: str | None = None
    rows = columns = 0
    for row, line in enumerate(lines_of(file, LARGEST_TEXT)):
        if row == 0:
            delimiter = "," if "," in line else None
        count = line.count(",") + 1 if delimiter else len(line.split())
        if row == 0:
            columns = count
        elif count != columns:
            raise MatrixFileError(f"{path}: row {row} has {count} entries, but row 0 has {columns}")
        rows += 1
    _check_shape(path, (rows, columns), iterations)
    return delimiter, rows


def _parse(path: Path, row: int, line: str, delimiter: str | None) -> Entries:
    try:
        return np.loadtxt([line], delimiter=delimiter, comments=None, ndmin=1)
    except ValueError:
        # The parser's message counts rows and columns differently, so the wrong entry is located here.
        for column, entry in enumerate(line.split(delimiter)):
            if not _is_number(entry):
                raise MatrixFileError(f"{path}: the entry at row {row}, column {column} is not a real number") from None
        raise MatrixFileError(f"{path}: row {row} is not a row of real numbers") from None


def _is_number(entry: str) -> bool:
    if not entry.strip():
        return False
    try:
        # If the delimiter is a comma, white space inside the entry is part of it.
        np.loadtxt([entry], delimiter=",", comments=None)
    except ValueError:
        return False
    return True


def _check_shape(path: Path, shape: tuple[int, ...], iterations: int) -> None:
    if len(shape) != 2 or shape[1] != iterations or shape[0] < iterations:
        raise MatrixFileError(
            f"{path}: the matrix has shape {_shape(shape)}, but {iterations} iterations need {iterations} × {iterations}, "
            "or more rows"
        )
    if iterations > LARGEST:
        raise MatrixFileError(f"{path}: the matrix has {iterations} rows; a dense matrix may have {LARGEST}")
    if shape[0] > iterations and shape[0] > MOST_ROWS:
        raise MatrixFileError(
            f"{path}: the matrix has {shape[0]} rows; a dense matrix with more rows than columns may have {MOST_ROWS}"
        )
    if iterations < 1:
        raise MatrixFileError(f"{path}: the matrix is empty")


def _shape(shape: tuple[int, ...]) -> str:
    return " × ".join(map(str, shape)) if len(shape) > 1 else str(shape)


def _check_entries(path: Path, matrix: Entries) -> None:
    _refuse_first(path, matrix, ~np.isfinite(matrix), "every entry must be finite")
    rows, columns = matrix.shape
    if rows > columns:
        _refuse_first(path, matrix, matrix < 0.0, "every entry must be ≥ 0")
        empty = np.flatnonzero(matrix.max(axis=0) == 0.0)
        if empty.size:
            raise MatrixFileError(
                f"{path}: column {empty[0]} has no positive entry, so the round has no part in any row: remove the round, or "
                "give it a row"
            )
        return
    _refuse_first(path, matrix, np.triu(matrix != 0.0, 1), "a strategy matrix is lower triangular")
    _refuse_first(path, matrix, matrix < 0.0, "every entry must be ≥ 0")
    _refuse_first(path, matrix, np.diag(matrix.diagonal() == 0.0), "every diagonal entry must be positive")


def _refuse_first(path: Path, matrix: Entries, wrong: NDArray[np.bool_], rule: str) -> None:
    """Reject the first entry, row by row, that breaks the rule."""
    position = int(wrong.argmax())
    if wrong.flat[position]:
        row, column = divmod(position, matrix.shape[1])
        raise MatrixFileError(f"{path}: the entry at row {row}, column {column} is not allowed: {rule}")

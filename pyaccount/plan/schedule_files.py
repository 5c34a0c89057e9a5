"""Read the values of a schedule from a file: one column of numbers, one for each round.

A .npy file holds a vector, or a matrix with a row for each round. A .csv or .txt file has a line for each round; columns
are separated by commas if its first line has one, otherwise by white space, blank lines and comments from # on are
ignored, and a first line that is not all numbers names the columns.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from pyaccount.document.ranges import SCHEDULED
from pyaccount.errors import quoted
from pyaccount.files import InsideFile, lines_of, opened
from pyaccount.strategies.dense import NpyError, header_of, mapped

Vector = NDArray[np.float64]

#: The most bytes that a text file may have: a line of 50 characters for each of the most rounds.
LARGEST_TEXT = 512 * 2**20


class ScheduleFileError(ValueError):
    """A file contains no usable schedule. The message names the file and the first thing wrong with it."""


def read_column(source: Path | InsideFile, column: str | int | None) -> Vector:
    """Return one column of a file as doubles, in the order of its rows; integers and other types are rounded.

    Args:
        source: A .npy, .csv or .txt file, as the head of this module describes it.
        column: The name of the column, or its number from 0; None for a file with a single column.

    Raises:
        ScheduleFileError: If the file cannot be read, has no such column or several columns of which none is chosen, or
            if an entry is not a number. Rows in messages are counted from 0, without the names. No message repeats what is
            in the file: a document of somebody else may have named it.
    """
    path = source.path if isinstance(source, InsideFile) else source
    try:
        with opened(source) as file:
            match path.suffix.lower():
                case ".npy":
                    return _of_array(path, file, column)
                case ".csv" | ".txt":
                    return _of_text(path, file, column)
                case other:
                    raise ScheduleFileError(
                        f"{path}: a file of a schedule ends in .npy, .csv or .txt, not in {other!r}"
                    )
    except FileNotFoundError:
        raise ScheduleFileError(f"{path}: no such file") from None
    except PermissionError:
        raise ScheduleFileError(f"{path}: no permission to read it") from None
    except OSError as error:
        raise ScheduleFileError(f"{path!s}: cannot be read: {error.strerror or error}") from error


def _of_array(path: Path, file: BinaryIO, column: str | int | None) -> Vector:
    try:
        header = header_of(file)
        if len(header.shape) not in (1, 2):
            dimensions = f"not an array of {len(header.shape)} dimensions"
            raise ScheduleFileError(f"{path}: a vector or a matrix is expected, {dimensions}")
        _check_rows(path, header.shape[0])
        entries = mapped(file, header)
    except NpyError as error:
        raise ScheduleFileError(f"{path}: {error}") from error
    if isinstance(column, str):
        raise ScheduleFileError(
            f"{path}: the columns of a .npy file have no names: give the number of {quoted(column)}, from 0"
        )
    columns = entries[:, None] if entries.ndim == 1 else entries
    chosen = columns[:, _number(path, column, columns.shape[1])]
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        # A copy does not change with the file.
        return np.array(chosen, dtype=np.float64, order="C", copy=True, subok=False)


def _of_text(path: Path, file: BinaryIO, column: str | int | None) -> Vector:
    size = os.fstat(file.fileno()).st_size
    if size > LARGEST_TEXT:
        raise ScheduleFileError(f"{path}: {size} bytes; a text file may have {LARGEST_TEXT}, use .npy for larger ones")
    try:
        return _of_lines(path, lines_of(file, LARGEST_TEXT), column)
    except UnicodeDecodeError as error:
        raise ScheduleFileError(f"{path}: not UTF-8 text: {error.reason} at byte {error.start}") from error


def _of_lines(path: Path, lines: Iterator[str], column: str | int | None) -> Vector:
    first = next(lines, None)
    if first is None:
        raise ScheduleFileError(f"{path}: the file has no values")
    delimiter = "," if "," in first else None
    head = _split(first, delimiter)
    named = not all(_is_number(entry) for entry in head)
    if isinstance(column, str):
        if not named or column not in head:
            known = f"its first line names {len(head)} others" if named else "its first line does not name columns"
            raise ScheduleFileError(f"{path}: there is no column {quoted(column)}; {known}")
        place = head.index(column)
    else:
        place = _number(path, column, len(head))
    values: list[float] = []
    for row, line in enumerate(lines if named else _chained(first, lines)):
        entries = _split(line, delimiter)
        if len(entries) != len(head):
            raise ScheduleFileError(f"{path}: row {row} has {len(entries)} entries, but the first line has {len(head)}")
        entry = entries[place]
        if not _is_number(entry):
            raise ScheduleFileError(f"{path}: the entry of row {row} is not a number")
        values.append(float(entry))
        if len(values) > SCHEDULED.maximum:
            # A file that is far too long is rejected before it fills the memory.
            break
    _check_rows(path, len(values))
    return np.array(values)


def _number(path: Path, column: int | None, columns: int) -> int:
    """Return the number of the column to read, out of the columns that the file has."""
    if column is None and columns != 1:
        raise ScheduleFileError(f"{path}: the file has {columns} columns: name one with `column`")
    if column is not None and column >= columns:
        raise ScheduleFileError(f"{path}: there is no column {column}: the file has {columns}, counted from 0")
    return column or 0


def _check_rows(path: Path, rows: int) -> None:
    if rows not in SCHEDULED:
        raise ScheduleFileError(f"{path}: the file has {rows:_} values; a schedule has {SCHEDULED.describe()}")


def _chained(first: str, rest: Iterator[str]) -> Iterator[str]:
    yield first
    yield from rest


def _split(line: str, delimiter: str | None) -> list[str]:
    return [entry.strip().strip('"') for entry in line.split(delimiter)]


def _is_number(entry: str) -> bool:
    try:
        # Python also accepts underscores, which are no part of a number in a table.
        return "_" not in entry and float(entry) is not None
    except ValueError:
        return False

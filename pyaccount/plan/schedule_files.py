"""Read the values of a schedule from a file: one column of numbers, one for each round.

A .npy file holds a vector, or a matrix with a row for each round. A .csv or .txt file has a line for each round; columns
are separated by commas if its first line has one, otherwise by white space, blank lines and comments from # on are
ignored, and a first line that is not all numbers names the columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import numpy as np

from pyaccount.document.ranges import SCHEDULED
from pyaccount.errors import quoted
from pyaccount.files import InsideFile, lines_of
from pyaccount.strategies.dense import LARGEST_TEXT, read_numbers
from pyaccount.strategies.sums import Vector


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

    def picked(path: Path, shape: tuple[int, ...]) -> tuple[slice | int, ...]:
        if len(shape) not in (1, 2):
            dimensions = f"not an array of {len(shape)} dimensions"
            raise ScheduleFileError(f"{path}: a vector or a matrix is expected, {dimensions}")
        _check_rows(path, shape[0])
        if isinstance(column, str):
            raise ScheduleFileError(
                f"{path}: the columns of a .npy file have no names: give the number of {quoted(column)}, from 0"
            )
        place = _number(path, column, *shape[1:] or (1,))
        return (slice(None), place)[: len(shape)]

    def of_text(path: Path, file: BinaryIO) -> Vector:
        return _of_lines(path, lines_of(file, LARGEST_TEXT), column)

    return read_numbers(source, ScheduleFileError, "a file of a schedule", picked, of_text)


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
    for row, line in enumerate(lines if named else chain([first], lines)):
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


def _split(line: str, delimiter: str | None) -> list[str]:
    return [entry.strip().strip('"') for entry in line.split(delimiter)]


def _is_number(entry: str) -> bool:
    try:
        # Python also accepts underscores, which are no part of a number in a table.
        return "_" not in entry and float(entry) is not None
    except ValueError:
        return False

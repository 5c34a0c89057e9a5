"""Reads tables of records and users from a file, from columns, or from pairs."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from pyaccount.data.attribution import AttributionTable, Integers
from pyaccount.errors import DomainError, TableError, quoted
from pyaccount.tables import BLOCK, blocks, csv_line, refuse_cell

#: The default names of the columns.
COLUMNS = ("record", "user")
#: The advice in a message about a missing column; the command replaces it by its options.
NAMES_THEM = "columns= states the names of the columns"
#: The maximum length of a name, in characters; a longer text is not a name.
LONGEST_NAME = 1000


def attribution_of(table: Any, columns: tuple[str, str] = COLUMNS) -> AttributionTable:
    """Read the attribution from a CSV or Parquet file, an object with two columns of equal length, or pairs.

    A name is a non-empty text, or a whole number, which means the text of its digits. Memory: the distinct names, and
    two numbers for each row. Raises `TableError` for wrong rows or columns, `DomainError` for other arguments, and
    `MissingExtraError` if the file needs a package that is not installed.
    """
    if columns[0] == columns[1]:
        raise DomainError(f"records and users must be in different columns: both are called {quoted(columns[0])}")
    file = os.fsdecode(table) if isinstance(table, str | os.PathLike) else None
    numbers: tuple[_Numbers, _Numbers] = (_Numbers(), _Numbers())
    collected: tuple[list[Integers], list[Integers]] = ([], [])
    row = 0
    for block in _named_blocks(table, file, columns):
        for column, values, known, parts in zip(columns, block, numbers, collected, strict=True):
            wrong = next(iter(_unnamed(values)), None)
            if wrong is not None:
                line = None if file is None else csv_line(file, row + wrong)
                where = "" if line is not None else f"row {row + wrong + 1}: "
                message = f"{where}a row names a record and one of its users, each by a text or a whole number"
                value = values[wrong]
                long = isinstance(value, str) and len(value) > LONGEST_NAME
                refuse_cell(file, message, line=line, column=column, value=quoted(value) if long else value)
            parts.append(known.of(values))
        row += len(block[0])
    if row == 0:
        refuse_cell(file, f"the table has no rows: each row has one {columns[0]} and one {columns[1]}")
    records, users = (np.concatenate(parts) for parts in collected)
    return AttributionTable.of(list(numbers[0]), list(numbers[1]), (records, users))


class _Numbers(defaultdict[str, int]):
    """Names and their numbers, in the order of first appearance."""

    def __init__(self) -> None:
        super().__init__()
        # The factory is called for a new name before the name is added, so it returns the next number.
        self.default_factory = self.__len__

    def of(self, values: Sequence[Any]) -> Integers:
        """Return the number of each value."""
        if isinstance(values, np.ndarray):
            # Only the distinct numbers have to be converted to text.
            distinct, first, inverse = np.unique(values, return_index=True, return_inverse=True)
            appearing = np.argsort(first)
            spelled = np.empty(len(distinct), dtype=np.int64)
            spelled[appearing] = self.of(list(map(str, distinct[appearing].tolist())))
            return spelled[inverse]
        names = values if set(map(type, values)) == {str} else map(str, values)
        return np.fromiter(map(self.__getitem__, names), dtype=np.int64, count=len(values))


def _unnamed(values: Sequence[Any]) -> Iterator[int]:
    """Yield the indices of values that are not names."""
    if isinstance(values, np.ndarray):
        return
    kinds = set(map(type, values))
    if kinds == {str} and all(values) and max(map(len, values)) <= LONGEST_NAME:
        return
    for index, value in enumerate(values):
        named = isinstance(value, str) and 0 < len(value) <= LONGEST_NAME
        if not named and (not isinstance(value, int | np.integer) or isinstance(value, bool)):
            yield index


def _named_blocks(table: Any, file: str | None, columns: tuple[str, str]) -> Iterator[tuple[Sequence[Any], ...]]:
    """Yield the blocks of `_blocks`. An error about a missing column says how to name the columns."""
    try:
        yield from _blocks(table, file, columns)
    except TableError as error:
        raise TableError(
            replace(problem, message=f"{problem.message}; {NAMES_THEM}") if problem.path else problem
            for problem in error.problems
        ) from error


def _blocks(table: Any, file: str | None, columns: tuple[str, str]) -> Iterator[tuple[Sequence[Any], ...]]:
    """Yield blocks of both columns: arrays if they are whole numbers in an array, otherwise lists."""
    if file is not None:
        for block in blocks(file, columns):
            yield tuple(map(_listed, block))
        return
    try:
        sides = [table[column] for column in columns]
    except (KeyError, IndexError, TypeError, ValueError):
        yield from _pairs(table, columns)
        return
    arrays = [_listed(np.asarray(side)) for side in sides]
    if any(np.ndim(array) != 1 for array in arrays) or len(arrays[0]) != len(arrays[1]):
        raise DomainError(
            f"the columns {columns[0]} and {columns[1]} need one value in each row, and the same number of rows"
        )
    for start in range(0, len(arrays[0]), BLOCK):
        yield tuple(array[start : start + BLOCK] for array in arrays)


def _pairs(table: Any, columns: tuple[str, str]) -> Iterator[tuple[Sequence[Any], ...]]:
    allowed = (
        f"a table is the name of a CSV or Parquet file, something with the columns {columns[0]} and {columns[1]}, or pairs of "
        "a record and a user"
    )
    if not isinstance(table, Iterable):
        raise DomainError(f"{allowed}; not {quoted(table)}")
    rows = iter(table)
    while block := list(islice(rows, BLOCK)):
        try:
            first, second = zip(*((record, user) for record, user in block), strict=True)
        except (TypeError, ValueError) as error:
            raise DomainError(allowed) from error
        yield list(first), list(second)


def _listed(values: Any) -> Any:
    """Return an array of whole numbers unchanged, and another array as a list."""
    if isinstance(values, np.ndarray):
        return values if values.dtype.kind in "iu" else values.tolist()
    return values

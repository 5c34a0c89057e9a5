"""Read columns of a table from a file in blocks of rows, and build data frames.

Files are CSV, or Parquet if pyarrow is installed. This module takes a file and the names of columns; it returns their
values, as texts or as arrays. Every error has a position: the line and the column. It needs memory for one block,
whatever the length of the file. It knows nothing of the meaning of the columns.
"""

from __future__ import annotations

import csv
import os
import stat
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn

from pyaccount.errors import MissingExtraError, Problem, TableError, quoted

#: The number of rows that are in memory at a time.
BLOCK = 1 << 14
#: The separators of values in tables other than CSV, and their names.
OTHER_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "vertical bars"}
#: The endings of files that contain Parquet.
PARQUET = (".parquet", ".pq")

Lines = tuple[Sequence[Any], ...]


def blocks(file: str | os.PathLike[str], columns: Sequence[str]) -> Iterator[Lines]:
    """Yield the values of these columns, one block of rows after the other. Values of CSV are texts.

    Raises `TableError` and `MissingExtraError`.
    """
    name = os.fsdecode(file)
    _check_regular(name)
    yield from _parquet(name, columns) if Path(name).suffix.lower() in PARQUET else _csv(name, columns)


def csv_line(file: str | os.PathLike[str], row: int) -> int | None:
    """Return the line on which a row of a CSV file ends, or `None` for a file without lines.

    Rows are counted from 0 and exclude the header.
    """
    if Path(os.fsdecode(file)).suffix.lower() in PARQUET:
        return None
    with Path(file).open(encoding="utf-8-sig", newline="") as stream:
        reader = csv.reader(stream, strict=True)
        filled = (reader.line_num for found in reader if found)
        return next(islice(filled, row + 1, None), None)


def refuse_cell(
    file: str | None, message: str, *, line: int | None = None, column: str = "", value: object = None
) -> NoReturn:
    """Raise the error of one cell in a table; the allowed values belong in `message`."""
    raise TableError([_problem(file, message, line=line, column=column, value=value)])


def data_frame(columns: dict[str, list[Any]]) -> Any:
    """Return columns as a data frame of pandas. Raises `MissingExtraError` without pandas."""
    try:
        from pandas import DataFrame  # pandas is an extra
    except ImportError as error:
        raise MissingExtraError.of("pandas", "data frames need it", "take to_dict") from error
    return DataFrame(columns)


def _problem(
    file: str | None, message: str, *, line: int | None = None, column: str = "", value: object = None
) -> Problem:
    return Problem(TableError.slug, message, (column,) if column else (), file, line, value=value)


def _check_regular(name: str) -> None:
    try:
        status = Path(name).stat()
    except (OSError, ValueError) as error:
        # A ValueError means that the name contains a null character.
        reason = error.strerror if isinstance(error, OSError) else str(error)
        refuse_cell(name, f"cannot be read: {reason or error}")
    if not stat.S_ISREG(status.st_mode):
        refuse_cell(name, "this is no regular file: give the name of a table, as CSV or Parquet")


def _csv(name: str, columns: Sequence[str]) -> Iterator[Lines]:
    """Yield the blocks of a CSV file: commas, a header, texts quoted as in RFC 4180; empty lines are skipped."""
    with Path(name).open(encoding="utf-8-sig", newline="") as stream:
        reader = csv.reader(stream, strict=True)
        filled = (row for row in reader if row)
        try:
            header = next(filled, None)
            if header is None:
                refuse_cell(
                    name, f"the file is empty: the first line names the columns, {' and '.join(columns)} among them"
                )
            places = _places(name, header, columns, reader.line_num)
            row = 0
            while rows := list(islice(filled, BLOCK)):
                if set(map(len, rows)) != {len(header)}:
                    wrong = next(k for k, found in enumerate(rows) if len(found) != len(header))
                    message = f"this line has {len(rows[wrong])} values, and the header names {len(header)} columns"
                    refuse_cell(name, message, line=csv_line(name, row + wrong))
                yield tuple([found[place] for found in rows] for place in places)
                row += len(rows)
        except UnicodeDecodeError:
            refuse_cell(name, "this is not UTF-8 text: write the table as CSV in UTF-8, or as Parquet")
        except csv.Error as error:
            refuse_cell(name, f"this is not CSV: {error}", line=reader.line_num)


def _places(name: str, header: Sequence[str], columns: Sequence[str], line: int | None) -> list[int]:
    """Return the position of each column in the header."""
    problems = []
    other = next((sign for sign in OTHER_SEPARATORS if len(header) == 1 and sign in header[0]), None)
    if line is not None and other is not None:
        message = f"the values are separated by {OTHER_SEPARATORS[other]}, and a table is read with commas: write it with commas"
        refuse_cell(name, message, line=line, value=header[0])
    for column in columns:
        if header.count(column) != 1:
            said = f"no column of the table is called {quoted(column)}" if column not in header else "given twice"
            named = ", ".join(quoted(one) for one in header[:20])
            message = (
                f"{said}; its header{'' if line is None else ', read with commas between the names,'} names {named}"
            )
            problems.append(_problem(name, message, line=line, column=column))
    if problems:
        raise TableError(problems)
    return [header.index(column) for column in columns]


def _parquet(name: str, columns: Sequence[str]) -> Iterator[Lines]:
    try:
        import pyarrow as arrow  # type: ignore[import-not-found, import-untyped, unused-ignore]  # an extra
        from pyarrow import parquet  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError as error:
        raise MissingExtraError.of("pyarrow", "Parquet files need it", "give CSV") from error
    try:
        with parquet.ParquetFile(name) as table:
            _places(name, table.schema_arrow.names, columns, None)
            for batch in table.iter_batches(batch_size=BLOCK, columns=list(columns)):
                yield tuple(_values(batch.column(column)) for column in columns)
    except arrow.ArrowInvalid as error:
        refuse_cell(name, f"this is not Parquet: {str(error).splitlines()[0]}")


def _values(column: Any) -> Sequence[Any]:
    """Return a column's values: an array of numbers if it has no gaps, or a list in which gaps are `None`."""
    import pyarrow.types as kinds  # type: ignore[import-not-found, import-untyped, unused-ignore]  # an extra

    plain = kinds.is_integer(column.type) or kinds.is_floating(column.type) or kinds.is_boolean(column.type)
    if plain and column.null_count == 0:
        return column.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return, unused-ignore]
    return column.to_pylist()  # type: ignore[no-any-return, unused-ignore]

"""Fits tables to a width: numbers are never cut or broken, and words are broken only between each other.

The input is headings and cells as texts, the output is lines. A table that is too wide is printed with less space
between its columns, or transposed, or in parts that each repeat its first column. Widths are in cells of a terminal;
some letters take two.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from rich.cells import cell_len, chop_cells

#: The least width of a column of words, if it has longer words.
LEAST = 10
#: A number among words, which is not broken either.
_NUMBER = re.compile(r"-?[\d._]+(e-?\d+)?[,;:%]?")
#: The space between columns: if there is enough width, and if there is not.
WIDE, NARROW = 4, 2


def wrapped(text: str, width: int | None) -> list[str]:
    """Return a text in lines of at most `width` cells, broken between words; only longer words are broken inside."""
    if width is None or cell_len(text) <= width:
        return [text]
    lines, line = [], ""
    for word in text.split(" "):
        joined = f"{line} {word}" if line else word
        if cell_len(joined) <= width:
            line = joined
            continue
        if line:
            lines.append(line)
        *whole, line = chop_cells(word, width) or [""]
        lines += whole
    return [*lines, line]


def row_lines(cells: Sequence[str], widths: Sequence[int], gap: int, right: Sequence[bool] = ()) -> list[str]:
    """Return one row of a table as lines: each cell wrapped to its width, with `gap` spaces between cells."""
    columns = [wrapped(cell, width) for cell, width in zip(cells, widths, strict=True)]
    flush = [*right, *[False] * (len(cells) - len(right))]
    lines = []
    for parts in zip_longest(*columns, fillvalue=""):
        padded = []
        for part, width, is_right in zip(parts, widths, flush, strict=True):
            room = " " * (width - cell_len(part))
            padded.append(room + part if is_right else part + room)
        lines.append((" " * gap).join(padded).rstrip())
    return lines


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table of texts. `words` says which columns contain words; the first column names the row."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: tuple[bool, ...]

    def lines(self, width: int | None) -> list[tuple[str, int | None]]:
        """Return the table as lines, each with the index of its row; None for headings and separators."""
        columns = range(len(self.headings))
        natural = [max(map(cell_len, (self.headings[k], *self._cells(k)))) for k in columns]
        if width is None or self._whole() <= width:
            return self._lines(columns, natural, WIDE)
        turned = self._turned() if len(self.rows) + 1 < len(columns) else None
        if turned is not None and turned._whole() <= width:
            return [(line, None) for line, _ in turned.lines(width)]
        least = [self._least(k) for k in columns]
        if _room(columns, least, NARROW) <= width:
            return self._lines(columns, self._spread(columns, least, natural, width), NARROW)
        if turned is not None and turned._narrowest() <= width:
            return [(line, None) for line, _ in turned.lines(width)]
        lines: list[tuple[str, int | None]] = []
        for part in self._parts(least, width):
            lines += [("", None)] if lines else []
            lines += self._lines(part, self._spread(part, least, natural, width), NARROW)
        return lines

    def _whole(self) -> int:
        """Return the width of the table if no cell is broken."""
        columns = range(len(self.headings))
        return _room(columns, [max(map(cell_len, (self.headings[k], *self._cells(k)))) for k in columns], WIDE)

    def _narrowest(self) -> int:
        """Return the width below which a number would have to be broken."""
        columns = range(len(self.headings))
        return _room(columns, [self._least(k) for k in columns], NARROW)

    def _turned(self) -> TextTable:
        """Return the transposed table, with a column for each row."""
        names = [row[0] for row in self.rows]
        rows = tuple((heading, *(row[k] for row in self.rows)) for k, heading in enumerate(self.headings[1:], start=1))
        return TextTable(("", *names), rows, tuple(True for _ in (0, *names)))

    def _cells(self, column: int) -> list[str]:
        return [row[column] for row in self.rows]

    def _least(self, column: int) -> int:
        """Return the width of a column below which a number would break, or a word of at most `LEAST` cells."""
        heading, cells = self.headings[column], self._cells(column)
        words = [cell_len(word) for word in heading.split()]
        if self.words[column]:
            inner = [word for text in cells for word in text.split()]
            numbers = [len(word) for word in inner if _NUMBER.fullmatch(word)]
            return max([1, *numbers, *(min(LEAST, size) for size in (*words, *map(cell_len, inner)))])
        return max([1, *words, *map(cell_len, cells)])

    def _spread(self, columns: Sequence[int], least: Sequence[int], natural: Sequence[int], width: int) -> list[int]:
        """Return the widths of all columns; spare width goes to columns that can use it, first to those of words."""
        widths = list(least)
        spare = width - _room(columns, widths, NARROW)
        for column in sorted(columns, key=lambda column: not self.words[column]):
            more = min(max(spare, 0), natural[column] - widths[column])
            widths[column], spare = widths[column] + more, spare - more
        return widths

    def _parts(self, least: Sequence[int], width: int) -> list[list[int]]:
        """Return the columns in parts that fit, each beginning with the first column."""
        parts: list[list[int]] = []
        for column in range(1, len(self.headings)):
            if not parts or _room([*parts[-1], column], least, NARROW) > width:
                parts.append([0])
            parts[-1].append(column)
        return parts or [[0]]

    def _lines(self, columns: Sequence[int], widths: Sequence[int], gap: int) -> list[tuple[str, int | None]]:
        chosen = [widths[k] for k in columns]
        right = [not self.words[k] for k in columns]
        lines: list[tuple[str, int | None]] = []
        if any(self.headings):
            lines += [(line, None) for line in row_lines([self.headings[k] for k in columns], chosen, gap, right)]
        for index, row in enumerate(self.rows):
            lines += [(line, index) for line in row_lines([row[k] for k in columns], chosen, gap, right)]
        return lines


def _room(columns: Sequence[int], widths: Sequence[int], gap: int) -> int:
    return sum(widths[column] for column in columns) + gap * (len(columns) - 1)

"""How tables fit a terminal: numbers are never cut or broken, words are, between one another.

Takes headings and cells; gives what rich prints at whatever width. A table that is too wide is laid out with less room
between its columns, then in parts that each repeat its first column. Facts of three columns become two.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

#: Below this width, a note stands below what it is about.
ROOMY = 66
#: A column of words is not made narrower than this where words are longer.
LEAST = 10
#: A label is not made narrower than this, and no longer one is kept in one line at the cost of what it is about.
LONGEST_LABEL = 13
#: Room between columns, where there is enough and where there is little.
WIDE, NARROW = 2, 1


class Figures:
    """A table with a row of headings. `words` names the columns that hold words; the first column says what a row is about."""

    def __init__(self, title: str, headings: Sequence[str], *, words: Sequence[str] = (), padding: int = WIDE) -> None:
        self.title, self.headings, self.words, self.padding = title, tuple(headings), tuple(words), padding
        self.rows: list[tuple[str, ...]] = []
        self.styles: list[Sequence[str]] = []

    def add(self, *cells: str, styles: Sequence[str] = ()) -> None:
        """Add a row, with a style for each cell or none."""
        self.rows.append(cells)
        self.styles.append(styles or ("",) * len(cells))

    def fits(self, width: int) -> bool:
        """Whether the table has room as a whole, with its headings in one line."""
        return self._room(range(len(self.headings)), self._natural(), self.padding) <= width

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self.title:
            yield Text(self.title, style="bold")
        columns, width = range(len(self.headings)), options.max_width
        if self.fits(width):
            yield self._table(columns, self._natural(), self.padding)
            return
        least = [self._least(column) for column in columns]
        for padding in (self.padding, NARROW):
            if self._room(columns, least, padding) <= width:
                yield self._table(columns, self._spread(columns, least, padding, width), padding)
                return
        for number, part in enumerate(self._parts(least, width)):
            if number:
                yield Text()
            yield self._table(part, self._spread(part, least, NARROW, width), NARROW)

    def _cells(self, column: int) -> list[str]:
        return [row[column] for row in self.rows]

    def _natural(self) -> list[int]:
        return [
            max(cell_len(text) for text in (heading, *self._cells(column)))
            for column, heading in enumerate(self.headings)
        ]

    def _least(self, column: int) -> int:
        """The width below which a number would break, or a word that is not longer than `LEAST`."""
        heading, cells = self.headings[column], self._cells(column)
        words = [cell_len(word) for word in heading.split()]
        if heading in self.words:
            inner = [cell_len(word) for text in cells for word in text.split()]
            return max([1, *(min(LEAST, size) for size in (*words, *inner))])
        return max([1, *words, *map(cell_len, cells)])

    def _room(self, columns: Sequence[int], widths: Sequence[int], padding: int) -> int:
        return sum(widths[column] + 2 * padding for column in columns)

    def _spread(self, columns: Sequence[int], least: Sequence[int], padding: int, width: int) -> list[int]:
        """The widths with what room is left given to the columns that could use it, from the first on."""
        widths, natural = list(least), self._natural()
        spare = width - self._room(columns, widths, padding)
        for column in sorted(columns, key=lambda column: self.headings[column] not in self.words):
            more = min(max(spare, 0), natural[column] - widths[column])
            widths[column], spare = widths[column] + more, spare - more
        return widths

    def _parts(self, least: Sequence[int], width: int) -> list[list[int]]:
        """The columns in parts that fit, each with the first column."""
        parts: list[list[int]] = []
        for column in range(1, len(self.headings)):
            if not parts or self._room([*parts[-1], column], least, NARROW) > width:
                parts.append([0])
            parts[-1].append(column)
        return parts or [[0]]

    def _table(self, columns: Sequence[int], widths: Sequence[int], padding: int) -> Table:
        table = Table(box=None, padding=(0, padding), show_header=any(self.headings))
        for column in columns:
            heading = self.headings[column]
            table.add_column(
                Text(heading),
                justify="left" if heading in self.words else "right",
                overflow="fold",
                width=widths[column],
            )
        for row, styles in zip(self.rows, self.styles, strict=True):
            table.add_row(*(Text(row[column], style=styles[column]) for column in columns))
        return table


class Facts:
    """Labels, each with a statement and a note on it. With a title they stand indented below it."""

    def __init__(self, title: str = "") -> None:
        self.title = title
        self.rows: list[tuple[str, str, str]] = []

    def add(self, label: str, statement: str, note: str = "") -> None:
        """Add a row; without a label it belongs to the one above."""
        self.rows.append((label, statement, note))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        roomy = options.max_width >= ROOMY
        if self.title:
            yield Text(self.title, style="bold")
            table = Table(box=None, show_header=False, padding=(0, WIDE if roomy else NARROW))
        else:
            table = Table.grid(padding=(0, WIDE))
        emphasis, aside = ("", "") if self.title else ("bold", "dim")
        labels = max((cell_len(label) for label, _, _ in self.rows), default=1)
        table.add_column(style=emphasis, min_width=None if roomy else min(labels, LONGEST_LABEL))
        table.add_column(overflow="fold")
        if roomy:
            table.add_column(style=aside, overflow="fold")
        for label, statement, note in self.rows:
            if roomy:
                table.add_row(Text(label), Text(statement), Text(note))
            else:
                below = f"{chr(10) if statement else ''}{note}" if note else ""
                table.add_row(Text(label), Text.assemble(statement, (below, "dim")))
        yield table

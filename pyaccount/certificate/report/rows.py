"""Lines and tables of pages as paths into a record.

A field's type says whether it is an upper or a lower bound or an estimate, and in which unit (`records.fields`). A row adds what
only the page knows: the label, the origin, a note, and how many digits are shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pyaccount.pages.page import (
    Content,
    Fact,
    Inline,
    Literally,
    PageTable,
    Quantity,
    already_rounded,
    at_least,
    at_most,
    chosen_value,
    directed,
    estimate,
    every_digit,
    exact,
)
from pyaccount.records.fields import Record, Role, marks_of
from pyaccount.rounding import up

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyaccount.pages.page import Sense

#: The direction of a number, by the role of its field; that of other roles is exact.
_SENSES: dict[Role | None, Sense] = {
    Role.UPPER: "at most",
    Role.LOWER: "at least",
    Role.ESTIMATE: "estimate",
    Role.POINT: "chosen",
    Role.GIVEN: "chosen",
}


class Row(NamedTuple):
    """A field as a page shows it: a line of a list, or a column of a table. `path` are the attributes that lead to it."""

    label: str
    path: str
    note: str = ""
    origin: str = "document"
    #: The unit and the direction, unless they are those of the field's type; `enough` is rounded up, because more is no worse.
    unit: str = ""
    sense: Sense | None = None
    enough: bool = False
    #: How many digits are shown, if not as many as usual; 0 for every digit, because a bound may not hold at a rounded number.
    digits: int | None = None
    #: Whether text was written by a machine.
    literal: bool = False
    #: What is shown in place of null, and of 0; without it, a line of a list is left out if the field is null.
    absent: str = ""


def shown(record: Record, row: Row) -> Content | None:
    """Return a field as content; None if it is null and nothing is shown in its place."""
    *above, name = row.path.split(".")
    for part in above:
        record = getattr(record, part)
    value = getattr(record, name)
    if value is None or (value == 0 and row.absent):
        return (row.absent,) if row.absent else None
    if isinstance(value, str):
        return (Literally(value) if row.literal else value,)
    mark = marks_of(type(record)).get(name)
    unit, role = ("", None) if mark is None else (mark.unit, mark.role)
    return (_number(value, row, row.unit or unit, row.sense or _SENSES.get(role, "exact")),)


def _number(value: Any, row: Row, unit: str, sense: Sense) -> Inline:
    if row.digits == 0:
        return every_digit(value, unit, row.origin)
    if row.enough:
        return already_rounded(up(value, row.digits or 6), unit, row.origin)
    if sense == "chosen":
        return chosen_value(value, unit, row.origin)
    rounded = {"at most": at_most, "at least": at_least, "estimate": estimate}.get(sense, exact)
    return rounded(value, unit, row.origin) if row.digits is None else rounded(value, unit, row.origin, row.digits)


def facts(record: Record, rows: Iterable[Row], *, labelled: bool = False) -> list[Fact]:
    """Return the lines of a list, without those of fields that are null.

    Bounds are preceded by their direction in words, unless the labels state it (`labelled`).
    """
    lines = []
    for row in rows:
        content = shown(record, row)
        if content is not None:
            (one,) = content
            note = (row.note,) if row.note else ()
            bound = isinstance(one, Quantity) and one.direction in ("at most", "at least") and not labelled
            lines.append(Fact(row.label, directed(one) if bound else content, note))  # type: ignore[arg-type]
    return lines


def table(
    caption: Content, records: Iterable[Record], columns: Sequence[Row], words: tuple[str, ...] = ()
) -> PageTable:
    """Return a table with a line for each record. `words` are the labels of columns that contain words."""
    lines = tuple(tuple(shown(record, column) or ("none",) for column in columns) for record in records)
    return PageTable(caption, tuple(column.label for column in columns), lines, words=words)


#: What is said of a theorem.
THEOREM = tuple(
    Row(name.replace("_", " "), name) for name in ("theorem", "source", "pair", "rounds", "remark", "lower_end")
)

"""What pages share: lines and tables as paths into a record, the origins of their numbers, and documents as YAML.

A field's type says whether it is an upper or a lower bound or an estimate, and in which unit (`records.fields`). A row adds what
only the page knows: the label, the origin, a note, and how many digits are shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import yaml

from pyaccount.pages.page import (
    Content,
    Fact,
    Inline,
    Literally,
    PageTable,
    Quantity,
    Sense,
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
from pyaccount.rounding import shortest, up

#: The direction of a number, by the role of its field; that of other roles is exact.
_SENSES: dict[Role | None, Sense] = {
    Role.UPPER: "at most",
    Role.LOWER: "at least",
    Role.ESTIMATE: "estimate",
    Role.POINT: "chosen",
    Role.GIVEN: "chosen",
}


class FieldRow(NamedTuple):
    """A field as a page shows it: a line of a list, or a column of a table. `path` are the attributes that lead to it, or a
    function that returns the content for a record.
    """

    label: str
    path: str | Callable[[Any], Content]
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


def shown(record: Record, row: FieldRow) -> Content | None:
    """Return a field as content; None if it is null and nothing is shown in its place."""
    if not isinstance(row.path, str):
        return row.path(record)
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


def _number(value: Any, row: FieldRow, unit: str, sense: Sense) -> Inline:
    if row.digits == 0:
        return every_digit(value, unit, row.origin)
    if row.enough:
        return already_rounded(up(value, row.digits or 6), unit, row.origin)
    if sense == "chosen":
        return chosen_value(value, unit, row.origin)
    rounded = {"at most": at_most, "at least": at_least, "estimate": estimate}.get(sense, exact)
    return rounded(value, unit, row.origin) if row.digits is None else rounded(value, unit, row.origin, row.digits)


def facts(record: Record, rows: Iterable[FieldRow], *, labelled: bool = False) -> list[Fact]:
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
    caption: Content, records: Iterable[Record], columns: Sequence[FieldRow], words: tuple[str, ...] = ()
) -> PageTable:
    """Return a table with a line for each record. `words` are the labels of columns that contain words."""
    lines = tuple(tuple(shown(record, column) or ("none",) for column in columns) for record in records)
    return PageTable(caption, tuple(column.label for column in columns), lines, words=words)


#: What is said of a theorem.
THEOREM = tuple(
    FieldRow(name.replace("_", " "), name) for name in ("theorem", "source", "pair", "rounds", "remark", "lower_end")
)


#: What a page of a certificate alone is worth.
AS_STATED = "The figures are as stated in the certificate and were not recomputed here: pyaccount verify does that."
#: What such a page was made from.
MADE_FROM = "a certificate in JSON, which is what counts; this page is a view of it"

ORIGINS: dict[str, str] = {
    "document": "Written in the document, or following from what it says.",
    "solved": "Found by solving for the document's blank, and certified; where digits are left out, σ is rounded up: more "
    "noise is no worse.",
    "grid": "The grid on which the profile is told: the document's, or shares of the certified ε.",
    "rates": "Rates at which reports state attacks, the same in every report.",
    "composition": "Composition of the rounds' dominating pairs (or convex bounds), bounded from above and from below; the "
    "evidence lists each composition, the error budget each source of error.",
    "test": "A randomised test on samples of the privacy loss; the evidence lists each test.",
    "bets": "Bets on samples of the privacy loss that smaller values would lose; a lower end from them is wrong with at "
    "most the probability stated beside the guarantee.",
    "histogram": "Bounds read off histograms of sampled privacy losses, each with the pointwise failure probability of the "
    "evidence.",
    "measure": "Points of the profile of the same composition, more and more where they decide, each bounded from above and "
    "below; between them by convexity. The width of the interval is a line of the error budget.",
    "samples": "The mean of samples: an estimate, on which no bound here rests.",
    "pilot": "The pilot of a plan: estimates from a few samples, on which no bound rests.",
    "search": "The search for the matrix: means of samples, or arithmetic in double precision where the run is not "
    "sampled. Estimates, on which no bound here rests.",
    "attack": "Follows from the certified points of the profile: with δ₁ at ε in the direction remove and δ₂ in the direction "
    "add, every test has TPR ≤ e^ε·FPR + δ₁ and TPR ≤ 1 − e^(−ε)(1 − δ₂ − FPR), its true- and false-positive rates.",
    "gaussian": "The profile compared with that of one Gaussian mechanism, N(μ, 1) against N(0, 1).",
    "contrast": "The same run analysed without the randomness of its batches.",
    "composed": "Composition of a bound on each round: larger than the guarantee, and what the independent checker proves.",
    "moment": "Chernoff's bound from a moment of the likelihood ratio where a record is removed, and a bound on the weights of a "
    "proposal where one is added; no sample enters either.",
    "lemma": "The black-box lemma for groups, applied to the guarantee for one record.",
    "matrix": "Computed from the strategy matrix in double precision.",
    "budget": "Bounded beside the computation that makes the error, on the safe side.",
    "record": "Recorded while the certificate was made.",
    "training": "Read from the record of the training run.",
    "compared": "Read from the certificate of that name, whose own report says where it comes from.",
    "amplification": "The theorem on amplification by sampling named here, in closed form.",
}


class _Dumper(yaml.SafeDumper):
    """Block style, keys in the document's order, and numbers as people write them."""


def _decimal(dumper: _Dumper, value: float) -> yaml.ScalarNode:
    # YAML 1.1 reads 1e-5 as text; the document language reads it as a number.
    text = shortest(value)
    tag = dumper.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
    return dumper.represent_scalar(tag, text)


def _list(dumper: _Dumper, value: list[Any]) -> yaml.SequenceNode:
    # Lists of numbers, such as coefficients, are written on few lines.
    short = not any(isinstance(item, dict | list) for item in value)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=short)


_Dumper.add_representer(float, _decimal)
_Dumper.add_representer(list, _list)


def yaml_text(document: dict[str, Any]) -> str:
    """Return the document as YAML text."""
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100, default_flow_style=False)

"""Functions that all adapters share: checking values of other libraries, and making a document from bodies."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn, Self

from pyaccount.document.loading import load
from pyaccount.document.phases import append
from pyaccount.document.words import VERSION
from pyaccount.errors import DocumentError, Path, Problem, quoted
from pyaccount.reading.numerals import Range

BodyMapping = dict[str, Any]


def no_equivalent(path: Path, message: str, *, value: object = None, allowed: str | None = None) -> NoReturn:
    """Raise `DocumentError` for an object that no document describes, with its path in the object that is read."""
    raise DocumentError([Problem("no-equivalent", message, path, value=value, allowed=allowed)])


def _out_of_range(path: Path, message: str, value: object, allowed: str) -> NoReturn:
    """Raise `DocumentError` for a number outside of its range."""
    raise DocumentError([Problem("out-of-range", message, path, value=value, allowed=allowed)])


def wrong_type_error(path: Path, message: str, value: object, allowed: str) -> NoReturn:
    """Raise `DocumentError` for a value of the wrong type."""
    raise DocumentError([Problem("wrong-type", message, path, value=value, allowed=allowed)])


def real(value: object, allowed: Range, path: Path) -> float:
    """Return a value of another library as a number in the allowed range; numpy's types are accepted.

    Raises `DocumentError` with `path` for anything else.
    """
    if isinstance(value, bool | str | bytes):
        wrong_type_error(path, f"must be a number, not {quoted(value)}", value, allowed.describe())
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        wrong_type_error(path, f"must be a number, not {quoted(value)}", value, allowed.describe())
    if number not in allowed:
        _out_of_range(path, f"must be {allowed.describe()}", _json_value(number), allowed.describe())
    return number


def whole_in(value: object, allowed: Range, path: Path) -> int:
    """Return a value of another library as a whole number in the allowed range. Raises `DocumentError` with `path` otherwise."""
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        wrong_type_error(path, f"must be a whole number, not {quoted(value)}", value, allowed.describe())
    if number not in allowed:
        _out_of_range(path, f"must be {allowed.describe()}", _json_value(number), allowed.describe())
    return number


class Part(NamedTuple):
    """An object of another library, or a part of one, with its path in what is read."""

    source: Any
    path: Path

    @property
    def kind(self) -> str:
        """The name of the object's class, by which objects are told apart."""
        return type(self.source).__name__

    def get(self, name: str) -> Any:
        """Return a field. Raises `DocumentError` if there is none of that name."""
        try:
            return getattr(self.source, name)
        except AttributeError:
            no_equivalent(self.path, f"this {self.kind} has no field {name}", value=self.kind)

    def at(self, *names: str) -> Self:
        """Return the field, or the field of a field, as a part of its own."""
        part = self
        for name in names:
            part = type(self)(part.get(name), (*part.path, name))
        return part

    def real(self, name: str, allowed: Range) -> float:
        """Return a field that is a number in the allowed range. Raises `DocumentError` with its path."""
        return real(self.get(name), allowed, (*self.path, name))

    def whole(self, name: str, allowed: Range) -> int:
        """Return a field that is a whole number in the allowed range. Raises `DocumentError` with its path."""
        return whole_in(self.get(name), allowed, (*self.path, name))


def _json_value(number: float) -> object:
    """Return the number, or its text if JSON cannot represent it (nan and infinities)."""
    return number if math.isfinite(number) else str(number)


def document(  # noqa: PLR0913 - the head of a document
    bodies: Sequence[BodyMapping],
    *,
    name: str,
    adjacency: str,
    delta: float | str,
    epsilon: float | str,
    group_size: int,
) -> dict[str, Any]:
    """Return the document with these bodies in order, where equal neighbours are merged.

    Raises `DocumentError` if the result is not a valid document.
    """
    merged: list[BodyMapping] = []
    for body in bodies:
        append(merged, body)
    privacy: dict[str, Any] = {"adjacency": adjacency, "epsilon": epsilon, "delta": delta}
    if group_size != 1:
        privacy["group_size"] = group_size
    head = {"pyaccount": VERSION, "name": name, "privacy": privacy}
    alone = len(merged) == 1 and "phases" not in merged[0]
    return load(head | (merged[0] if alone else {"phases": merged})).to_mapping()

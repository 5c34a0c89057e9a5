"""What the adapters share: foreign values checked where they stand, and bodies put together to a document."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, NoReturn

from pyaccount.document import VERSION, load
from pyaccount.document.phases import append
from pyaccount.document.ranges import Range
from pyaccount.errors import DocumentError, Path, Problem, shown

BodyMapping = dict[str, Any]


def no_equivalent(path: Path, message: str, *, value: object = None, allowed: str | None = None) -> NoReturn:
    """Refuse what no document means."""
    raise DocumentError([Problem("no-equivalent", message, path, value=value, allowed=allowed)])


def out_of_range(path: Path, message: str, value: object, allowed: str) -> NoReturn:
    """Refuse a number."""
    raise DocumentError([Problem("out-of-range", message, path, value=value, allowed=allowed)])


def wrong_type(path: Path, message: str, value: object, allowed: str) -> NoReturn:
    """Refuse a value of another type."""
    raise DocumentError([Problem("wrong-type", message, path, value=value, allowed=allowed)])


def real(value: object, allowed: Range, path: Path) -> float:
    """A number of a foreign object (also of numpy's types). Raises `DocumentError` at `path`."""
    if isinstance(value, bool | str | bytes):
        wrong_type(path, f"must be a number, not {shown(value)}", value, allowed.describe())
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        wrong_type(path, f"must be a number, not {shown(value)}", value, allowed.describe())
    if number not in allowed:
        out_of_range(path, f"must be {allowed.describe()}", _told(number), allowed.describe())
    return number


def whole(value: object, allowed: Range, path: Path) -> int:
    """A whole number of a foreign object. Raises `DocumentError` at `path`."""
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        wrong_type(path, f"must be a whole number, not {shown(value)}", value, allowed.describe())
    if number not in allowed:
        out_of_range(path, f"must be {allowed.describe()}", _told(number), allowed.describe())
    return number


def _told(number: float) -> object:
    return number if math.isfinite(number) else str(number)


def document(  # noqa: PLR0913 - a document's head
    bodies: Sequence[BodyMapping],
    *,
    name: str,
    adjacency: str,
    delta: float | str,
    epsilon: float | str,
    group_size: int,
) -> dict[str, Any]:
    """The document of bodies in order, equal neighbours as one. Raises `DocumentError` if they make none."""
    merged: list[BodyMapping] = []
    for body in bodies:
        append(merged, body)
    privacy: dict[str, Any] = {"adjacency": adjacency, "epsilon": epsilon, "delta": delta}
    if group_size != 1:
        privacy["group_size"] = group_size
    head = {"pyaccount": VERSION, "name": name, "privacy": privacy}
    return load(head | (merged[0] if len(merged) == 1 else {"phases": merged})).to_mapping()

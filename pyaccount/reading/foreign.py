"""Converts Python values to a tree: dictionaries, and the types that configuration libraries and numpy use instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyaccount.errors import DocumentError, Path, Problem, quoted
from pyaccount.reading.nodes import DEEPEST, MOST_NODES, Listing, Place, Scalar, Table, TreeNode, too_large


def from_value(value: object, place: Place) -> tuple[TreeNode, list[Problem]]:
    """Return the tree of a value, with `place` for every node, and the problems that did not prevent a tree.

    Raises `DocumentError` if the value is too large for a document, or contains itself.
    """
    builder = _Builder(place)
    return builder.node((), value), builder.problems


class _Builder:
    def __init__(self, place: Place) -> None:
        self.place = place
        self.problems: list[Problem] = []
        self.count = 0

    def node(self, path: Path, value: object) -> TreeNode:
        self.count += 1
        if self.count > MOST_NODES or len(path) > DEEPEST:
            raise DocumentError([*self.problems, too_large(path, self.place)])
        value = plain_value(value)
        if isinstance(value, Mapping):
            return self.table(path, value)
        if isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray):
            return Listing(tuple(self.node((*path, index), item) for index, item in enumerate(value)), self.place)
        return Scalar(value, self.place)

    def table(self, path: Path, mapping: Mapping[object, object]) -> Table:
        entries: dict[str, tuple[Place, TreeNode]] = {}
        torn = False
        for key, value in mapping.items():
            if isinstance(key, str):
                entries[str.__str__(key)] = (self.place, self.node((*path, str.__str__(key)), value))
                continue
            torn = True
            message = f"a key must be text, not {quoted(key)}"
            self.problems.append(Problem("non-string-key", message, path, self.place.file, value=key))
        return Table(entries, self.place, torn)


def plain_value(value: object) -> object:
    """Return a value of numpy, a similar library or a subclass (such as a string enumeration) as a built-in type."""
    if value is None or type(value) in (bool, int, float, str, dict, list):
        return value
    if not isinstance(value, str | int | float | Mapping | Sequence | type):
        for convert in ("tolist", "item"):
            method = getattr(value, convert, None)
            if callable(method):
                return method()
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int(value)
    return float(value) if isinstance(value, float) else value

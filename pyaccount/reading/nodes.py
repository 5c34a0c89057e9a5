"""The raw document: a tree of values, each with the place where it was written.

YAML texts, mappings and overrides all become such trees, so that later code treats them alike. Of Python values these are
dictionaries, and the types that configuration libraries and numpy use instead. Trees are immutable and may share branches (a YAML
alias refers to the same branch); `replaced` copies only the nodes along its path.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyaccount.errors import DocumentError, Path, Problem, quoted


class _Reported:
    """Replaces a value that was already reported as a problem. Every field accepts it, and every rule ignores it."""

    def __repr__(self) -> str:
        return "<reported>"


REPORTED = _Reported()

#: The maximum numbers of values and of levels of a tree, with aliases expanded: enough for any document, and a limit on
#: alias bombs.
MOST_NODES = 100_000

DEEPEST = 50


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value was written; lines and columns count from 1. Values of a Python mapping have no place (`None`)."""

    file: str | None = None
    line: int | None = None
    column: int | None = None


@dataclass(frozen=True, slots=True)
class Scalar:
    """A single value. It may be an object of a foreign type, which no field accepts."""

    value: object
    place: Place


@dataclass(frozen=True, slots=True)
class Listing:
    """A list of nodes."""

    items: tuple[TreeNode, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class Table:
    """A mapping from keys, each with a place, to nodes. `torn` means that some keys were reported and left out."""

    entries: dict[str, tuple[Place, TreeNode]]
    place: Place
    torn: bool = False


TreeNode = Scalar | Listing | Table


def child(node: TreeNode, part: str | int) -> TreeNode | None:
    """Return the child of a node under a key or index, or `None`."""
    if isinstance(node, Table) and isinstance(part, str):
        entry = node.entries.get(part)
        return entry[1] if entry else None
    if isinstance(node, Listing) and isinstance(part, int) and 0 <= part < len(node.items):
        return node.items[part]
    return None


def find(node: TreeNode, path: Path) -> TreeNode | None:
    """Return the node at a path, or `None`."""
    current: TreeNode | None = node
    for part in path:
        current = child(current, part) if current is not None else None
    return current


def value_under(root: TreeNode, key: str) -> object:
    """Return the single value under a key at the top level, or `None`."""
    node = child(root, key)
    return node.value if isinstance(node, Scalar) else None


def place_of(root: TreeNode, path: Path, *, key: bool = False) -> Place:
    """Return the place of the value at `path`, or of its key; if missing, that of the mapping that lacks it."""
    node = root
    for index, part in enumerate(path):
        if key and index == len(path) - 1 and isinstance(node, Table) and part in node.entries:
            return node.entries[str(part)][0]
        below = child(node, part)
        if below is None:
            break
        node = below
    return node.place


def plain_value(node: TreeNode) -> object:
    """Return the tree as plain dictionaries, lists and values, without places."""
    if isinstance(node, Table):
        return {key: plain_value(value) for key, (_, value) in node.entries.items()}
    if isinstance(node, Listing):
        return [plain_value(item) for item in node.items]
    return node.value


def replaced(node: TreeNode, path: Path, new: TreeNode) -> TreeNode:
    """Return the tree with `new` at `path`. The last part may be a new key; everything above it must exist."""
    if not path:
        return new
    part, rest = path[0], path[1:]
    below = child(node, part)
    if isinstance(node, Table) and isinstance(part, str):
        place = node.entries[part][0] if part in node.entries else new.place
        return replace(node, entries={**node.entries, part: (place, replaced(below or new, rest, new))})
    if isinstance(node, Listing) and isinstance(part, int) and below is not None:
        return replace(node, items=(*node.items[:part], replaced(below, rest, new), *node.items[part + 1 :]))
    raise KeyError(path)


def too_large(path: Path, place: Place) -> Problem:
    """Return the problem of a tree that exceeds the limits on values or levels."""
    message = f"the document has more than {MOST_NODES:_} values, or more than {DEEPEST} levels, with aliases expanded"
    return Problem("document-too-large", message, path, place.file, place.line, place.column)


def located(root: TreeNode, problem: Problem, *, key: bool = False) -> Problem:
    """Return the problem with the place and value at its path filled in; `key` takes the place of the key instead."""
    place = place_of(root, problem.path, key=key)
    node = find(root, problem.path) if problem.path and not key else None
    value = plain_value(node) if node is not None else None
    return replace(problem, file=place.file, line=place.line, column=place.column, value=value)


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
        value = built_in(value)
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


def built_in(value: object) -> object:
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

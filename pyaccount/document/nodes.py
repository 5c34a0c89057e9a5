"""The raw document: a tree of values, each with the place it was written at.

A YAML text, a mapping and an override all become such trees, so that whatever comes later treats them alike. Trees are
immutable and may share branches (a YAML alias is the same branch again); `replaced` copies only what lies on the way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyaccount.errors import Path, Problem


class _Reported:
    """Stands for a value that a problem was already reported about; everything accepts it, no rule looks at it."""

    def __repr__(self) -> str:
        return "<reported>"


REPORTED = _Reported()

#: A tree may have this many values and levels, aliases expanded: enough for any document, too little for a bomb.
MOST_NODES = 100_000
DEEPEST = 50


@dataclass(frozen=True, slots=True)
class Place:
    """Where something was written; lines and columns count from 1. A mapping's values have no place."""

    file: str | None = None
    line: int | None = None
    column: int | None = None


@dataclass(frozen=True, slots=True)
class Scalar:
    """A single value; also a foreign object, which no field will accept."""

    value: object
    place: Place


@dataclass(frozen=True, slots=True)
class Listing:
    """A list of nodes."""

    items: tuple[Node, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class Table:
    """A mapping of keys, each with its own place, to nodes. `torn` says that keys are missing which were reported."""

    entries: dict[str, tuple[Place, Node]]
    place: Place
    torn: bool = False


Node = Scalar | Listing | Table


def child(node: Node, part: str | int) -> Node | None:
    """The node one step below, or `None`."""
    if isinstance(node, Table) and isinstance(part, str):
        entry = node.entries.get(part)
        return entry[1] if entry else None
    if isinstance(node, Listing) and isinstance(part, int) and 0 <= part < len(node.items):
        return node.items[part]
    return None


def find(node: Node, path: Path) -> Node | None:
    """The node at a path, or `None`."""
    found: Node | None = node
    for part in path:
        found = child(found, part) if found is not None else None
    return found


def place_of(root: Node, path: Path, *, key: bool = False) -> Place:
    """Where the value at `path` stands (or its key); for what is missing, where the mapping that lacks it stands."""
    node = root
    for index, part in enumerate(path):
        if key and index == len(path) - 1 and isinstance(node, Table) and part in node.entries:
            return node.entries[str(part)][0]
        below = child(node, part)
        if below is None:
            break
        node = below
    return node.place


def plain(node: Node) -> object:
    """The tree without places: dictionaries, lists and values."""
    if isinstance(node, Table):
        return {key: plain(value) for key, (_, value) in node.entries.items()}
    if isinstance(node, Listing):
        return [plain(item) for item in node.items]
    return node.value


def replaced(node: Node, path: Path, new: Node) -> Node:
    """The tree with `new` at `path`, which may be a new key of a mapping; everything above the last step exists."""
    if not path:
        return new
    part, rest = path[0], path[1:]
    below = child(node, part)
    if isinstance(node, Table) and isinstance(part, str):
        place = node.entries[part][0] if part in node.entries else new.place
        return replace(node, entries={**node.entries, part: (place, replaced(below or new, rest, new))})
    if isinstance(node, Listing) and isinstance(part, int) and below is not None:
        items = (*node.items[:part], replaced(below, rest, new), *node.items[part + 1 :])
        return replace(node, items=items)
    raise KeyError(path)


def too_large(path: Path, place: Place) -> Problem:
    """The problem of a tree that has grown beyond its limits."""
    message = f"more than {MOST_NODES:_} values, or more than {DEEPEST} levels, once aliases are expanded"
    return Problem("document-too-large", message, path, place.file, place.line, place.column)


def located(root: Node, problem: Problem, *, key: bool = False) -> Problem:
    """The problem with the place and value at its path in the tree; `key` points at the key, not at the value."""
    place = place_of(root, problem.path, key=key)
    node = find(root, problem.path) if problem.path and not key else None
    value = plain(node) if node is not None else None
    return replace(problem, file=place.file, line=place.line, column=place.column, value=value)

"""Overrides: paths and values that are set in a tree before it is validated.

In Python they are a mapping of paths to values, or a list of `path=value` texts and (path, value) pairs; on the command
line each is a `FromOption`. A problem names its source: the argument `overrides`, or the option of the command.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NoReturn

from pyaccount.errors import DocumentError, Path, Problem, path_text, quoted, shortened
from pyaccount.reading.nodes import (
    Listing,
    Place,
    Scalar,
    Table,
    TreeNode,
    child,
    find,
    from_value,
    plain_value,
    replaced,
)
from pyaccount.reading.reader import read_tree

Override = str | tuple[str, object]
#: The type of an argument with overrides: `{"privacy.epsilon": 4}`, or a list.
Overrides = Mapping[str, object] | Sequence[Override]

#: The beginning of the place of an override: from an argument in Python, and from the option `--set`.
_ARGUMENT, _SET = "overrides: ", "--set "
#: The keys of `training` that state the same quantity in two ways.
_TWINS = {"iterations": "epochs", "epochs": "iterations"}

#: The pattern of a path as it is written.
PATH = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+|\[[0-9]+\])*")


class FromOption(str):
    """An override from the command line, `path=value`, with the option that it came from."""

    #: The option and its value if it is not `--set`, for example `--seed 7` for `accounting.seed=7`.
    option: str | None = None

    @classmethod
    def named(cls, text: str, option: str) -> FromOption:
        """Return the override of an option that is not `--set`."""
        made = cls(text)
        made.option = option
        return made


def listed_overrides(overrides: Overrides) -> tuple[Override, ...]:
    """Return the overrides as a tuple, whichever way they are given. Raises `TypeError` for other types."""
    if isinstance(overrides, str):
        return (overrides,)
    if isinstance(overrides, Mapping):
        return tuple(overrides.items())
    try:
        items = tuple(overrides)
        if all(isinstance(item, str) or (isinstance(item, tuple | list) and len(item) == 2) for item in items):
            return tuple(item if isinstance(item, str) else (item[0], item[1]) for item in items)
    except TypeError:
        pass
    raise TypeError(
        f"overrides = {quoted(overrides)} is neither a mapping of paths to values, {{'privacy.epsilon': 4}}, nor a list of "
        "'path=value' or (path, value)"
    )


def is_override(place: Place) -> bool:
    """Return whether the value at a place was set by an override."""
    return place.file is not None and place.file.startswith((_ARGUMENT, _SET))


def override(root: TreeNode, overrides: Overrides) -> tuple[TreeNode, list[Problem]]:
    """Return the tree with all overrides applied in order, and the problems of those that cannot be applied."""
    problems: list[Problem] = []
    for item in listed_overrides(overrides):
        try:
            path_words, value, more = _parse(item)
            problems += more
        except DocumentError as error:
            problems += error.problems
            continue
        root, more = laid(root, path_words, value)
        problems += more
    return root, problems


def laid(root: TreeNode, words: Sequence[str], value: TreeNode) -> tuple[TreeNode, list[Problem]]:
    """Return the tree with `value` at the path of these words; if that is impossible, the old tree and the reason."""
    path = _resolved(root, words)
    changed = set_at(root, path, value)
    if changed is None:
        return root, [_dead_end(root, path, value.place.file)]
    return _without_twin(changed, path), []


def set_at(root: TreeNode, path: Path, value: TreeNode) -> TreeNode | None:
    """Return the tree with `value` at `path`, creating missing mappings above it; `None` if that is impossible."""
    node: TreeNode = root
    for index, part in enumerate(path):
        below = child(node, part)
        if below is None or (isinstance(below, Scalar) and below.value is None):
            # A number is an index into a list, and lists are not created.
            if not isinstance(node, Table) or any(str(name).isdigit() for name in path[index + 1 :]):
                return None
            for name in reversed(path[index + 1 :]):
                value = Table({str(name): (value.place, value)}, value.place)
            return replaced(root, path[: index + 1], value)
        node = below
    return replaced(root, path, value)


def _without_twin(root: TreeNode, path: Path) -> TreeNode:
    """Return the tree without the twin of the key that was set: epochs replace iterations, and vice versa.

    A twin that was itself set by an override stays; if the two contradict each other, the rules report it.
    """
    above, key = path[:-1], str(path[-1])
    section = find(root, above)
    twin = _TWINS.get(key)
    if path[-2:-1] != ("training",) or twin is None or not isinstance(section, Table) or twin not in section.entries:
        return root
    if is_override(section.entries[twin][0]):
        return root
    entries = {name: entry for name, entry in section.entries.items() if name != twin}
    return replaced(root, above, replace(section, entries=entries))


def _parse(item: Override) -> tuple[list[str], TreeNode, list[Problem]]:
    """Return the words of the path, the value and the problems of an override. Raises `DocumentError`."""
    if isinstance(item, str):
        if re.search("[\ud800-\udfff]", item):
            spelled = item.encode(errors="backslashreplace").decode()
            _refuse(_place(spelled, item), "an override is text; the locale of this shell could not read this one")
        path, equals, text = item.partition("=")
        place = _place(item, item)
        if not equals:
            _refuse(place, "an override is written path=value, as in privacy.epsilon=4")
        node, problems = read_tree(text, place=place)
        value = Scalar(None, place) if node is None else node
    else:
        path, given = item
        place = _place(f"{path}={given}")
        if not isinstance(path, str):
            _refuse(place, f"the path of an override is text, as in 'privacy.epsilon', not {type(path).__name__}")
        value, problems = from_value(given, place)
    path = path.strip()
    if not PATH.fullmatch(path):
        _refuse(place, "the path of an override is written with dots, as in phases.0.noise.multiplier")
    return path_words(path), value, problems


def same_place(one: Sequence[str], other: Sequence[str]) -> bool:
    """Return whether two paths set the same value: one is below the other, or they are twins (`_TWINS`)."""
    shorter = min(len(one), len(other))
    if tuple(one[:shorter]) == tuple(other[:shorter]):
        return True
    return tuple(one[:-1]) == tuple(other[:-1]) and one[-2:-1] == ("training",) and _TWINS.get(one[-1]) == other[-1]


def path_words(path: str) -> list[str]:
    """Return the words of a path: keys and list indices."""
    return re.findall(r"[A-Za-z0-9_-]+", path)


def _resolved(root: TreeNode, words: Sequence[str]) -> Path:
    """Return the path that words mean in a tree; a number is an index only if its parent is a list."""
    path: list[str | int] = []
    node: TreeNode | None = root
    for word in words:
        part = int(word) if isinstance(node, Listing) and word.isdigit() else word
        path.append(part)
        node = child(node, part) if node is not None else None
    return tuple(path)


def _dead_end(root: TreeNode, path: Path, file: str | None) -> Problem:
    """Return the problem that explains why nothing can be set at a path."""
    node = root
    depth = 0
    while (below := child(node, path[depth])) is not None and plain_value(below) is not None:
        node, depth = below, depth + 1
    subject = path_text(path[:depth])
    if isinstance(node, Listing):
        message = f"{subject} is a list of {len(node.items)} entries, counted from 0"
    elif isinstance(node, Table):
        message = f"{path_text(path[: depth + 1])} has no entries; an override cannot add any"
    else:
        message = f"{subject} is a single value; nothing can be set below it"
    return Problem("bad-override", message, path, file)


def _place(text: str, given: object = None) -> Place:
    """Return the place of the override `text`: its option, or the argument `overrides`."""
    if isinstance(given, FromOption) and given.option is not None:
        return Place(given.option)
    return Place(f"{_SET if isinstance(given, FromOption) else _ARGUMENT}{shortened(text)}")


def _refuse(place: Place, message: str) -> NoReturn:
    raise DocumentError([Problem("bad-override", message, file=place.file)])

"""Overrides: paths and values, laid over a tree before it is validated.

From Python they are a mapping of paths, or a list of `path=value` and of (path, value); from the command line `FromOption`. A
problem says which: a Python user is told of `overrides`, a user of the command of the option.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NoReturn

from pyaccount.document.foreign import from_value
from pyaccount.document.nodes import Listing, Node, Place, Scalar, Table, child, find, plain, replaced
from pyaccount.document.reader import read
from pyaccount.errors import DocumentError, Path, Problem, path_text, shortened, shown

Override = str | tuple[str, object]
#: What overrides are given as: `{"privacy.epsilon": 4}`, or a list.
Overrides = Mapping[str, object] | Sequence[Override]

#: How the place of an override begins, by who gave it.
_ARGUMENT, _SET = "overrides: ", "--set "
#: Keys of `training` that say one thing in two ways.
_TWINS = {"iterations": "epochs", "epochs": "iterations"}

#: A path as it is written.
PATH = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+|\[[0-9]+\])*")


class FromOption(str):
    """An override from the command line, `path=value`, with the option that gave it."""

    #: The option with its value, where that is another one than `--set`: `--seed 7` for `accounting.seed=7`.
    option: str | None = None

    @classmethod
    def named(cls, text: str, option: str) -> FromOption:
        """An override that another option than `--set` stands for."""
        made = cls(text)
        made.option = option
        return made


def listed_overrides(overrides: Overrides) -> tuple[Override, ...]:
    """The overrides one by one, however they are given. Raises `TypeError` for what is none of the ways."""
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
        f"overrides = {shown(overrides)} is neither a mapping of paths to values, {{'privacy.epsilon': 4}}, nor a list of "
        "'path=value' or (path, value)"
    )


def is_override(place: Place) -> bool:
    """Whether what stands at a place was set by an override, whose place says what it sets."""
    return place.file is not None and place.file.startswith((_ARGUMENT, _SET))


def override(root: Node, overrides: Overrides) -> tuple[Node, list[Problem]]:
    """The tree with every override applied, in order, and the problems of those that cannot be."""
    problems: list[Problem] = []
    for item in listed_overrides(overrides):
        try:
            path_words, value, found = _parse(item)
            problems += found
        except DocumentError as error:
            problems += error.problems
            continue
        root, found = laid(root, path_words, value)
        problems += found
    return root, problems


def laid(root: Node, words: Sequence[str], value: Node) -> tuple[Node, list[Problem]]:
    """The tree with `value` at the path of these words, or the tree as it was and why that cannot be."""
    path = _resolved(root, words)
    changed = set_at(root, path, value)
    if changed is None:
        return root, [_dead_end(root, path, value.place.file)]
    return _without_twin(changed, path), []


def set_at(root: Node, path: Path, value: Node) -> Node | None:
    """The tree with `value` at `path`, with the mappings above it made where they lack; `None` if that cannot be."""
    node: Node = root
    for index, part in enumerate(path):
        below = child(node, part)
        if below is None or (isinstance(below, Scalar) and below.value is None):
            # A number names an entry of a list, and no list is made here.
            if not isinstance(node, Table) or any(str(name).isdigit() for name in path[index + 1 :]):
                return None
            for name in reversed(path[index + 1 :]):
                value = Table({str(name): (value.place, value)}, value.place)
            return replaced(root, path[: index + 1], value)
        node = below
    return replaced(root, path, value)


def _without_twin(root: Node, path: Path) -> Node:
    """The tree without the other way to say what was set: epochs replace iterations, and the other way round.

    What was itself set by an override stays, and two of them that contradict one another are told as any contradiction.
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


def _parse(item: Override) -> tuple[list[str], Node, list[Problem]]:
    """The path's words and the value of an override."""
    if isinstance(item, str):
        if re.search("[\ud800-\udfff]", item):
            spelled = item.encode(errors="backslashreplace").decode()
            _refuse(_place(spelled, item), "an override is text; the locale of this shell could not read this one")
        path, equals, text = item.partition("=")
        place = _place(item, item)
        if not equals:
            _refuse(place, "an override is written path=value, as in privacy.epsilon=4")
        node, problems = read(text, place=place)
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
    return words_of(path), value, problems


def same_place(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether two paths set the same: one lies within the other, or they are two ways to say one thing."""
    shorter = min(len(one), len(other))
    if tuple(one[:shorter]) == tuple(other[:shorter]):
        return True
    return tuple(one[:-1]) == tuple(other[:-1]) and one[-2:-1] == ("training",) and _TWINS.get(one[-1]) == other[-1]


def words_of(path: str) -> list[str]:
    """The words of a path: keys and places in lists."""
    return re.findall(r"[A-Za-z0-9_-]+", path)


def _resolved(root: Node, words: Sequence[str]) -> Path:
    """The path that words mean in a tree: a number is an index only where a list stands."""
    path: list[str | int] = []
    node: Node | None = root
    for word in words:
        part = int(word) if isinstance(node, Listing) and word.isdigit() else word
        path.append(part)
        node = child(node, part) if node is not None else None
    return tuple(path)


def _dead_end(root: Node, path: Path, file: str | None) -> Problem:
    """Why nothing can be set at a path."""
    node = root
    depth = 0
    while (below := child(node, path[depth])) is not None and plain(below) is not None:
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
    """Where an override stands that says `text`: at the option, or in the argument."""
    if isinstance(given, FromOption) and given.option is not None:
        return Place(given.option)
    return Place(f"{_SET if isinstance(given, FromOption) else _ARGUMENT}{shortened(text)}")


def _refuse(place: Place, message: str) -> NoReturn:
    raise DocumentError([Problem("bad-override", message, file=place.file)])

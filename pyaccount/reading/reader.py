"""Reads YAML text into a tree with places.

Only the parser of PyYAML is used, event by event. No constructor runs, so nothing in a document can be executed.
Scalars are read by `numerals.parse_scalar`, not by the rules of YAML 1.1. The numbers of values and levels are checked
while the tree grows, before an alias bomb uses any memory.
"""

from __future__ import annotations

from typing import NoReturn

import yaml

from pyaccount.errors import DocumentError, Path, Problem, quoted
from pyaccount.reading import numerals
from pyaccount.reading.mistakes import explained
from pyaccount.reading.nodes import DEEPEST, MOST_NODES, REPORTED, Listing, Place, Scalar, Table, TreeNode, too_large

#: The parser of libyaml if PyYAML has it, as every wheel does; otherwise the slower one in Python.
LOADER: type[yaml.CSafeLoader | yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_tree(
    text: str, file: str | None = None, *, place: Place | None = None
) -> tuple[TreeNode | None, list[Problem]]:
    """Return the tree of a text, or `None` if it is empty, and the problems that did not prevent a tree.

    `place` becomes the place of every node if lines and columns of the text mean nothing, as in an override. Raises
    `DocumentError` if no tree can be built, with the problems found up to that point.
    """
    composer = _Composer(text, file, place)
    try:
        return composer.document(), composer.problems
    except yaml.YAMLError as error:
        raise DocumentError([*composer.problems, composer.syntax_problem(error)]) from None


class _Composer:
    """Builds the tree from events. `count` is the size of the tree so far, with every alias counted in full."""

    def __init__(self, text: str, file: str | None, place: Place | None) -> None:
        self.text = text
        self.file = file
        self.place = place
        self.parser = LOADER(text)
        self.problems: list[Problem] = []
        self.count = 0
        # The node, size and height of each anchor; None while the anchored node is still being read.
        self.anchors: dict[str, tuple[TreeNode, int, int] | None] = {}

    def document(self) -> TreeNode | None:
        self.next()  # the start of the stream
        if not isinstance(self.next(), yaml.DocumentStartEvent):
            return None
        node, _ = self.node((), self.next())
        self.next()  # the end of the document
        following = self.next()
        if isinstance(following, yaml.DocumentStartEvent):
            message = "a second YAML document starts here; a file contains only one"
            self.add_problem("several-documents", message, (), following)
        return node

    def next(self) -> yaml.Event:
        event = self.parser.get_event()
        assert isinstance(event, yaml.Event)
        return event

    def node(self, path: Path, event: yaml.Event) -> tuple[TreeNode, int]:
        """Return the node that an event starts, and its height."""
        if isinstance(event, yaml.AliasEvent):
            return self.alias(path, event)
        assert isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent)
        before = self.count
        self.grow(1, path, 0, event)
        if event.anchor is not None:
            self.anchors[event.anchor] = None
        node, height = self.content(path, event)
        if event.tag is not None:
            message = "YAML tags are not part of the document language: write the plain value"
            self.add_problem("unsupported-tag", message, path, event, event.tag)
            node = Scalar(REPORTED, node.place)
        if event.anchor is not None:
            self.anchors[event.anchor] = (node, self.count - before, height)
        return node, height

    def content(self, path: Path, event: yaml.Event) -> tuple[TreeNode, int]:
        place = self.place_of(event)
        if isinstance(event, yaml.SequenceStartEvent):
            return self.listing(path, place)
        if isinstance(event, yaml.MappingStartEvent):
            return self.table(path, place)
        assert isinstance(event, yaml.ScalarEvent)
        return Scalar(numerals.parse_scalar(event.value) if event.implicit[0] else event.value, place), 0

    def listing(self, path: Path, place: Place) -> tuple[TreeNode, int]:
        items: list[TreeNode] = []
        height = 0
        while not isinstance(event := self.next(), yaml.SequenceEndEvent):
            item, below = self.node((*path, len(items)), event)
            items.append(item)
            height = max(height, below + 1)
        return Listing(tuple(items), place), height

    def table(self, path: Path, place: Place) -> tuple[TreeNode, int]:
        entries: dict[str, tuple[Place, TreeNode]] = {}
        height = 0
        torn = False
        while not isinstance(event := self.next(), yaml.MappingEndEvent):
            key_node, _ = self.node(path, event)
            key = self.key(path, key_node, event)
            value, below = self.node(path if key is None else (*path, key), self.next())
            height = max(height, below + 1)
            if key is None:
                torn = True
            elif key in entries:
                first = entries[key][0]
                where = f" at line {first.line}, column {first.column}" if first.line else ""
                self.add_problem("duplicate-key", f"this key was already given{where}", (*path, key), event)
            else:
                entries[key] = (self.place_of(event), value)
        return Table(entries, place, torn), height

    def key(self, path: Path, node: TreeNode, event: yaml.Event) -> str | None:
        """Return the text of a key. If the key is not text, report that and return `None`."""
        value = node.value if isinstance(node, Scalar) else None
        if value == "<<" and isinstance(event, yaml.ScalarEvent) and event.implicit[0]:
            message = "merge keys are not part of the document language: write the values out"
            self.add_problem("merge-key", message, path, event, "<<")
            return None
        if isinstance(value, str):
            return value
        if value is not REPORTED:
            message = f"a key must be text, not {quoted(value)}" if isinstance(node, Scalar) else "a key must be text"
            self.add_problem("non-string-key", message, path, event, value)
        return None

    def alias(self, path: Path, event: yaml.AliasEvent) -> tuple[TreeNode, int]:
        if event.anchor not in self.anchors:
            message = (
                f"* refers to a value that is named with & further up, but none is named {quoted(event.anchor)}: put a text that "
                "starts with * in quotes"
            )
            self.stop_with("syntax-error", message, path, event)
        target = self.anchors[event.anchor]
        if target is None:
            message = "this alias refers to a value that contains it"
            self.stop_with("recursive-alias", message, path, event, event.anchor)
        node, size, height = target
        self.grow(size, path, height, event)
        return node, height

    def grow(self, size: int, path: Path, height: int, event: yaml.Event) -> None:
        """Count a node that is about to be added at `path`. Raises `DocumentError` if the tree becomes too large."""
        self.count += size
        if self.count > MOST_NODES or len(path) + height > DEEPEST:
            raise DocumentError([*self.problems, too_large(path, self.place_of(event))])

    def place_of(self, event: yaml.Event) -> Place:
        if self.place is not None:
            return self.place
        assert event.start_mark is not None
        return Place(self.file, event.start_mark.line + 1, event.start_mark.column + 1)

    def add_problem(self, slug: str, message: str, path: Path, event: yaml.Event, value: object = None) -> None:
        place = self.place_of(event)
        self.problems.append(Problem(slug, message, path, place.file, place.line, place.column, value))

    def stop_with(self, slug: str, message: str, path: Path, event: yaml.Event, value: object = None) -> NoReturn:
        self.add_problem(slug, message, path, event, value)
        raise DocumentError(self.problems)

    def syntax_problem(self, error: yaml.YAMLError) -> Problem:
        """Return the problem of a text that the parser cannot read."""
        mistake = explained(error, self.text)
        if self.place is not None:
            return Problem("syntax-error", mistake.message, file=self.place.file)
        return Problem("syntax-error", mistake.message, (), self.file, mistake.line + 1, mistake.column + 1)

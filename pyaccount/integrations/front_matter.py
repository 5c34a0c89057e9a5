"""The YAML front matter of a Markdown file: one of its keys is read, with the places of its values, or written.

The text is edited, not written anew: everything outside of the lines of that key stays as it is, byte for byte, with comments,
order, quotes and ends of lines. After an edit both texts are parsed and compared; an edit that would change the meaning of
another key is refused. Values that are compared are trees of YAML, so that a value with many aliases takes no longer than its
text. This module knows nothing of privacy.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import yaml

from pyaccount.errors import CardError, Problem
from pyaccount.files import write_atomically

#: More bytes than any model card has.
LARGEST_CARD = 1 << 24
#: Front matter as the Hugging Face Hub reads it: between two lines `---`, at the beginning of the file.
_FRONT = re.compile(r"\A(\ufeff?\s*---[ \t]*\r?\n)(.*?)^(---[ \t]*(?:\r?\n|\Z))", re.DOTALL | re.MULTILINE)

_Position = tuple[int, int]


class Located(NamedTuple):
    """A value of the front matter, and the line and column of each of its keys, counted from 1 in the file."""

    value: Any
    #: Where the key itself is.
    place: _Position
    #: Where the value of each key of a mapping is.
    places: dict[str, _Position]


class _Card(NamedTuple):
    """A Markdown file, in parts. Together they are its text."""

    file: str
    opening: str
    matter: str
    rest: str

    @property
    def end_of_line(self) -> str:
        """Return how lines end in this file."""
        return "\r\n" if "\r\n" in (self.opening + self.matter + self.rest) else "\n"

    @property
    def first_line(self) -> int:
        """Return the number of the first line of the front matter."""
        return self.opening.count("\n") + 1


def located(file: Path, key: str) -> Located | None:
    """Return the value of a key of a file's front matter with its places; None if the front matter has no such key.

    Raises `CardError` if the file cannot be read, or if its front matter is not a mapping in YAML.
    """
    card = _read(file)
    node = _mapping(card)
    found = None if node is None else _entry(card, node, key)
    if found is None:
        return None
    name, value = found
    keys = value.value if isinstance(value, yaml.MappingNode) else []
    places = {str(inner.value): _position(card, item) for inner, item in keys}
    return Located(_plain(card, key, value), _position(card, name), places)


def with_key(file: Path, key: str, value: dict[str, Any], *, replaced_if: str) -> tuple[str, str]:
    """Return the text of a file before and after a key of its front matter is written.

    Args:
        file: The Markdown file. Without front matter, it gets one.
        key: The key. If the front matter has it, its lines are replaced; otherwise it is added at the end.
        value: The value: a mapping of plain values.
        replaced_if: A key that an existing value must have to be replaced. A value without it was written by somebody else.

    Raises `CardError` if the file cannot be read or edited.
    """
    card = _read(file)
    before = card.opening + card.matter + card.rest
    entry = yaml.safe_dump({key: value}, sort_keys=False, allow_unicode=True, width=10**6)
    entry = entry.replace("\n", card.end_of_line)
    node = _mapping(card)
    if not card.opening:
        mark = "---" + card.end_of_line
        # A byte order mark stays at the beginning.
        start = "\ufeff" if card.rest.startswith("\ufeff") else ""
        gap = card.end_of_line if card.rest.removeprefix(start).strip() else ""
        return before, start + mark + entry + mark + gap + card.rest.removeprefix(start)
    found = None if node is None else _entry(card, node, key)
    if found is None:
        gap = "" if not card.matter or card.matter.endswith("\n") else card.end_of_line
        matter = card.matter + gap + entry
    else:
        theirs = not isinstance(found[1], yaml.MappingNode) or replaced_if not in {
            one.value for one, _ in found[1].value
        }
        if theirs:
            message = (
                f"{key} was not written by pyaccount: it has no key {replaced_if}. Replacing it would lose its content; rename "
                "it or remove it"
            )
            _refuse(card, message, key, _position(card, found[0]))
        lines = card.matter.splitlines(keepends=True)
        first = found[0].start_mark.line
        matter = "".join([*lines[:first], entry, *lines[_end(lines, first) :]])
    expected = _trees(node) | _trees(yaml.compose(entry, Loader=yaml.SafeLoader))
    # Aliases of what was replaced, or block scalars at the end, may make an edit change other keys.
    try:
        changed = list(_trees(yaml.compose(matter, Loader=yaml.SafeLoader)).items()) != list(expected.items())
    except yaml.YAMLError:
        changed = True
    if changed:
        _refuse(card, f"{key} cannot be written without changing other keys: put it there by hand", key)
    return before, card.opening + matter + card.rest


def rewrite(file: Path, text: str) -> None:
    """Write the text of a Markdown file, whole or not at all. Raises `OSError`."""
    write_atomically(file, text.encode())


def _read(file: Path) -> _Card:
    """Return a Markdown file in parts; without front matter, only `rest` is not empty."""
    name = str(file)
    try:
        if file.stat().st_size > LARGEST_CARD:
            _refuse(
                _Card(name, "", "", ""), f"a model card has at most {LARGEST_CARD:_} bytes: give the card's README.md"
            )
        text = file.read_bytes().decode()
    except UnicodeDecodeError as error:
        message = f"byte {error.start} is not UTF-8 text, which model cards are: give the card's README.md"
        raise CardError([Problem(CardError.slug, message, file=name)]) from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        message = f"cannot be read: {reason or error}. Give an existing card; an empty file is one"
        raise CardError([Problem(CardError.slug, message, file=name)]) from error
    match = _FRONT.match(text)
    if match is None:
        return _Card(name, "", "", text)
    return _Card(name, match[1], match[2], text[match.end(2) :])


def _mapping(card: _Card) -> yaml.MappingNode | None:
    """Return the front matter as a tree with places; None if it is empty."""
    try:
        node = yaml.compose(card.matter, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = None if mark is None else (card.first_line + mark.line, mark.column + 1)
        _refuse(card, f"the front matter is not valid YAML: {error.problem}. Correct it first", place=place)
    except (yaml.YAMLError, RecursionError) as error:
        _refuse(card, f"the front matter is not valid YAML: {error}. Correct it first")
    if node is None:
        return None
    if not isinstance(node, yaml.MappingNode) or node.flow_style:
        message = (
            "the front matter is not a mapping with one key a line, so no key can be added to it: write it in that form"
        )
        _refuse(card, message, place=_position(card, node))
    return node


def _plain(card: _Card, key: str, node: yaml.Node) -> Any:
    """Return a value of the front matter as plain data."""
    try:
        return yaml.constructor.SafeConstructor().construct_document(node)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        message = f"{key} cannot be read as plain values: {str(error).splitlines()[0]}. Correct it first"
        _refuse(card, message, key, _position(card, node))


def _trees(node: yaml.Node | None) -> dict[str, str]:
    """Return each key of the front matter with its value, as text of its own."""
    entries = node.value if isinstance(node, yaml.MappingNode) else []
    return {
        str(name.value) if isinstance(name, yaml.ScalarNode) else yaml.serialize(name): yaml.serialize(value)
        for name, value in entries
    }


def _entry(card: _Card, node: yaml.MappingNode, key: str) -> tuple[yaml.Node, yaml.Node] | None:
    """Return a key and its value. Raises `CardError` if it is given twice."""
    found = [(name, value) for name, value in node.value if name.value == key]
    if len(found) > 1:
        message = f"{key} is given twice, and readers differ about which one counts: remove one"
        _refuse(card, message, key, _position(card, found[1][0]))
    return found[0] if found else None


def _end(lines: list[str], first: int) -> int:
    """Return the line after the last one of a key of a block mapping that begins at `first`: its further lines are indented."""
    end = first + 1
    for number in range(first + 1, len(lines)):
        if not lines[number].strip():
            continue
        if lines[number][0] not in " \t":
            break
        end = number + 1
    return end


def _position(card: _Card, node: yaml.Node) -> _Position:
    return card.first_line + node.start_mark.line, node.start_mark.column + 1


def _refuse(card: _Card, message: str, key: str | None = None, place: _Position | None = None) -> NoReturn:
    line, column = place or (None, None)
    raise CardError([Problem(CardError.slug, message, () if key is None else (key,), card.file, line, column)])

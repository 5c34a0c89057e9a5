"""A validated document: what the later rooms work with."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from functools import cached_property
from typing import Any, cast

from pyaccount.document.foreign import from_value
from pyaccount.document.nodes import Node, Table, find, located, place_of, plain
from pyaccount.document.overrides import set_at
from pyaccount.document.rules import blanks, broken_rules, choice_at, choices
from pyaccount.document.sections import Accounting, Privacy
from pyaccount.document.validation import validate
from pyaccount.document.views import Body, bodies_of
from pyaccount.errors import DocumentError, Path, Problem, path_text


class Document:
    """A mechanism document without problems. It never changes; `with_value` makes another one.

    Two documents are equal if they say the same, wherever they were read from. The order of keys and the spelling of
    numbers say nothing; a default that is written out does. `root` is the tree it was read from.
    """

    def __init__(self, root: Table, file: str | None = None, problems: Iterable[Problem] = ()) -> None:
        """Validate a tree. `problems` are those found while it was read; with its own they become a `DocumentError`."""
        self.root = root
        self.file = file
        self._model, invalid = validate(root, cast(dict[str, Any], plain(root)))
        self.name: str = self._model.name
        self.privacy: Privacy = self._model.privacy
        self.accounting: Accounting = self._model.accounting
        self.bodies: tuple[Body, ...] = bodies_of(self._model)
        found = [*problems, *invalid]
        # A mapping that lost keys in reading would only be told what follows from the loss.
        if not any(problem.slug in ("merge-key", "non-string-key") for problem in found):
            found.extend(broken_rules(self))
        if found:
            raise DocumentError(found)
        self.blank: Path | None = next(iter(blanks(self)), None)
        self.choices: tuple[Path, ...] = tuple(choices(self))

    def candidates(self) -> list[Document]:
        """The documents that a choice in each `choose:` list makes of this one, in the order of the lists; itself without any.

        A combination that contradicts itself is left out; if all do, a `DocumentError` says what is wrong with the first.
        """
        if not self.choices:
            return [self]
        path, found, errors = self.choices[0], [], []
        for value in choice_at(self, path):
            try:
                found += self.with_value(path, value).candidates()
            except DocumentError as error:
                errors.append(error)
        if not found:
            raise errors[0]
        return found

    def with_value(self, path: Path, value: object) -> Document:
        """The document with a value at a path, validated anew: how a blank is filled. Raises `DocumentError`."""
        place = place_of(self.root, path)
        node, problems = from_value(value, place)
        root = set_at(self.root, path, node)
        if not isinstance(root, Table):
            raise KeyError(f"{path_text(path)} leads nowhere in this document")
        return Document(root, self.file, problems)

    def problem(
        self, slug: str, path: Path, message: str, *, allowed: str | None = None, suggestion: str | None = None
    ) -> Problem:
        """A problem at a path of this document, with the file, line, column and value that stand there."""
        return located(self.root, Problem(slug, message, path, allowed=allowed, suggestion=suggestion))

    def position(self, path: Path) -> tuple[int, ...]:
        """Where a path stands in the order of the document: a key to sort paths by."""
        order = []
        node: Node | None = self.root
        for part in path:
            if isinstance(node, Table):
                order.append(list(node.entries).index(str(part)) if part in node.entries else len(node.entries))
            else:
                order.append(int(part))
            node = find(node, (part,)) if node is not None else None
        return tuple(order)

    def to_mapping(self) -> dict[str, Any]:
        """What the document says, as JSON-able values and without defaults; loading it gives an equal document."""
        mapping = _integral(self._model.model_dump(mode="json", exclude_unset=True))
        return cast(dict[str, Any], mapping)

    @cached_property
    def sha256(self) -> str:
        """The hash of the document's canonical JSON: sorted keys, no spaces, integral numbers as integers."""
        text = json.dumps(self.to_mapping(), sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()

    def __eq__(self, other: object) -> bool:
        return self.sha256 == other.sha256 if isinstance(other, Document) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.sha256)

    def __repr__(self) -> str:
        return f"<Document {self.name!r}{f' from {self.file}' if self.file else ''}>"


def _integral(value: object) -> object:
    """The value with integral floats as integers, so that `2e3` and `2000` are one number."""
    if isinstance(value, dict):
        return {key: _integral(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_integral(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value

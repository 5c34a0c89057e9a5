"""What every document has, whatever its kind: the text it was read from, and what it says as data."""

from __future__ import annotations

from typing import Any, cast

from pydantic import BaseModel

from pyaccount.document.canonical import integral, sha256_of
from pyaccount.document.nodes import Node, Table, find, located
from pyaccount.errors import Path, Problem
from pyaccount.forks import cached_property


class Written:
    """A document without problems. Two are equal if they say the same, wherever they were read from.

    The order of keys and the spelling of numbers say nothing; a default that is written out does. `root` is the tree it was
    read from.
    """

    def __init__(self, root: Table, file: str | None, model: BaseModel) -> None:
        self.root = root
        self.file = file
        self._model = model

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
        mapping = integral(self._model.model_dump(mode="json", exclude_unset=True))
        return cast(dict[str, Any], mapping)

    @cached_property
    def sha256(self) -> str:
        """The hash of the document's canonical JSON: sorted keys, no spaces, integral numbers as integers."""
        return sha256_of(self.to_mapping())

    def __eq__(self, other: object) -> bool:
        return self.sha256 == other.sha256 if isinstance(other, Written) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.sha256)

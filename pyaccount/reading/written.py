"""The base class of all kinds of documents: the tree that was read, and the content as data, in canonical form with its hash."""

from __future__ import annotations

import hashlib
import json
from typing import Any, cast

from pydantic import BaseModel

from pyaccount.errors import Path, Problem
from pyaccount.forks import cached_property
from pyaccount.reading.nodes import Table, TreeNode, find, located


def sha256_of(mapping: dict[str, Any]) -> str:
    """Return the SHA-256 of a document's content, given as `Written.to_mapping` or a certificate has it."""
    text = json.dumps(integral(mapping), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def integral(value: object) -> object:
    """Return the value with integral floats as integers, so that `2e3` and `2000` have the same hash."""
    if isinstance(value, dict):
        return {key: integral(item) for key, item in value.items()}
    if isinstance(value, list):
        return [integral(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


class Written:
    """A document without problems. Two are equal if their content is equal, even if they were read from different
    places.

    The order of keys and the spelling of numbers do not matter; a default that is written out does. `root` is the tree
    that the document was read from.
    """

    name: str

    def __init__(self, root: Table, file: str | None, model: BaseModel) -> None:
        self.root = root
        self.file = file
        self._model = model

    def problem(
        self, slug: str, path: Path, message: str, *, allowed: str | None = None, suggestion: str | None = None
    ) -> Problem:
        """Return a problem at a path of this document, with the file, line, column and value of that path."""
        return located(self.root, Problem(slug, message, path, allowed=allowed, suggestion=suggestion))

    def position(self, path: Path) -> tuple[int, ...]:
        """Return a key that sorts paths in the order of the document."""
        order = []
        node: TreeNode | None = self.root
        for part in path:
            if isinstance(node, Table):
                order.append(list(node.entries).index(str(part)) if part in node.entries else len(node.entries))
            else:
                order.append(int(part))
            node = find(node, (part,)) if node is not None else None
        return tuple(order)

    def to_mapping(self) -> dict[str, Any]:
        """Return the content as JSON-able values, without defaults; loading the mapping gives an equal document."""
        mapping = integral(self._model.model_dump(mode="json", exclude_unset=True))
        return cast(dict[str, Any], mapping)

    @cached_property
    def sha256(self) -> str:
        """The hash of the document's canonical JSON: sorted keys, no spaces, integral numbers as integers."""
        return sha256_of(self.to_mapping())

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}{f' from {self.file}' if self.file else ''}>"

    def __eq__(self, other: object) -> bool:
        return self.sha256 == other.sha256 if isinstance(other, Written) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.sha256)

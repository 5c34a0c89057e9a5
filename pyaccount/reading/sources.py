"""Reads the tree of a document from any source: a file, bytes, a mapping or another document."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyaccount.errors import Problem
from pyaccount.reading.foreign import from_value
from pyaccount.reading.nodes import Place, Scalar, TreeNode
from pyaccount.reading.written import Written

#: What a document is read from: the path of a YAML file, or a mapping.
Source = str | os.PathLike[str] | Mapping[str, Any]
#: Folders whose files a document may name, besides its own.
Folders = Sequence[str | os.PathLike[str]]


@dataclass(frozen=True, slots=True)
class Handed:
    """The bytes of a document that does not come from a file, with the name that errors use for it, such as `<stdin>`.

    Files that the document names are found relative to this name, that is, in the working folder.
    """

    name: str
    data: bytes


def tree_of(source: object) -> tuple[str | None, TreeNode, list[Problem]]:
    """Return the file name (or `None`), tree and problems of a source: a file name, bytes, mapping or document."""
    if isinstance(source, Written):
        return source.file, source.root, []
    if isinstance(source, Mapping):
        return None, *from_value(source, Place())
    if not isinstance(source, str | os.PathLike | Handed):
        kind = type(source).__name__
        raise TypeError(f"a document is the path of a YAML file, a mapping or a Document, not {kind}")
    from pyaccount.reading.files import decoded, read_file  # imported here because mappings do not need them
    from pyaccount.reading.reader import read_tree

    if isinstance(source, Handed):
        file, text = source.name, decoded(source.name, source.data)
    else:
        file = os.fsdecode(source)
        text = read_file(file)
    root, problems = read_tree(text, file)
    return file, Scalar(None, Place(file)) if root is None else root, problems


def not_a_mapping(root: TreeNode, file: str | None) -> Problem:
    """Return the problem of a document that is a list, a single value or empty."""
    place = root.place
    if isinstance(root, Scalar) and root.value is None:
        return Problem("empty-document", "the file has no content; a document starts with `pyaccount: 1`", file=file)
    kind = "a single value" if isinstance(root, Scalar) else "a list"
    message = f"a document is a mapping that starts with `pyaccount: 1`; this is {kind}"
    return Problem("not-a-mapping", message, (), file, place.line, place.column)

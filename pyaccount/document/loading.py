"""Loading a document from wherever it comes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from pyaccount.document.document import Document
from pyaccount.document.files import read_file
from pyaccount.document.foreign import from_value
from pyaccount.document.nodes import Node, Place, Scalar, Table
from pyaccount.document.overrides import Override, override
from pyaccount.document.reader import read
from pyaccount.errors import DocumentError, Problem


def load(
    source: str | os.PathLike[str] | Mapping[str, Any] | Document, *, overrides: Sequence[Override] = ()
) -> Document:
    """The document of a YAML file, of a mapping, or of another document with overrides.

    An override is `"privacy.epsilon=4"`, as after `--set`, or a path and a value. Raises `DocumentError` with every
    problem of the document, and `TypeError` if the source is none of these.
    """
    file, root, problems = _tree(source)
    root, more = override(root, overrides)
    if not isinstance(root, Table):
        raise DocumentError([*problems, *more, _not_a_mapping(root, file)])
    return Document(root, file, [*problems, *more])


def _tree(source: object) -> tuple[str | None, Node, list[Problem]]:
    """The file, the tree and the problems of a source."""
    if isinstance(source, Document):
        return source.file, source.root, []
    if isinstance(source, Mapping):
        return None, *from_value(source, Place())
    if not isinstance(source, str | os.PathLike):
        kind = type(source).__name__
        raise TypeError(f"a document is the path of a YAML file, a mapping or a Document, not {kind}")
    file = os.fsdecode(source)
    root, problems = read(read_file(file), file)
    return file, Scalar(None, Place(file)) if root is None else root, problems


def _not_a_mapping(root: Node, file: str | None) -> Problem:
    place = root.place
    if isinstance(root, Scalar) and root.value is None:
        return Problem("empty-document", "the file has no content; a document starts with `pyaccount: 1`", file=file)
    kind = "a single value" if isinstance(root, Scalar) else "a list"
    message = f"a document is a mapping that starts with `pyaccount: 1`; this is {kind}"
    return Problem("not-a-mapping", message, (), file, place.line, place.column)

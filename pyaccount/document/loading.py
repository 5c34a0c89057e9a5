"""Loading a document from wherever it comes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from pyaccount.document.amplification import Amplification
from pyaccount.document.document import Document
from pyaccount.document.fields import listed
from pyaccount.document.files import read_file
from pyaccount.document.foreign import from_value
from pyaccount.document.nodes import Node, Place, Scalar, Table, find, located
from pyaccount.document.overrides import Override, override
from pyaccount.document.reader import read
from pyaccount.document.spelling import nearest_value
from pyaccount.document.written import Written
from pyaccount.errors import DocumentError, Problem

#: The kinds of documents that say what they are.
KINDS = ("amplification",)


def load(
    source: str | os.PathLike[str] | Mapping[str, Any] | Document, *, overrides: Sequence[Override] = ()
) -> Document:
    """The document of a YAML file, of a mapping, or of another document with overrides.

    An override is `"privacy.epsilon=4"`, as after `--set`, or a path and a value. Raises `DocumentError` with every
    problem of the document, and `TypeError` if the source is none of these.
    """
    document = load_any(source, overrides=overrides)
    if isinstance(document, Document):
        return document
    message = (
        "this is a document of kind amplification, not a mechanism; `pyaccount certify` and pyaccount.amplify read it"
    )
    raise DocumentError([document.problem("unknown-kind", ("kind",), message)])


def load_any(
    source: str | os.PathLike[str] | Mapping[str, Any] | Written, *, overrides: Sequence[Override] = ()
) -> Document | Amplification:
    """The document of a source whatever its kind; without a kind it describes a mechanism. Raises as `load`."""
    file, root, problems = _tree(source)
    root, more = override(root, overrides)
    if not isinstance(root, Table):
        raise DocumentError([*problems, *more, _not_a_mapping(root, file)])
    kind = find(root, ("kind",))
    word = kind.value if isinstance(kind, Scalar) else None
    if isinstance(word, str) and nearest_value(word, KINDS) is not None:
        if word not in KINDS:
            message = f"no document of this kind exists: must be {listed(KINDS)}, or without a kind a mechanism"
            suggestion = nearest_value(word, KINDS)
            problem = Problem("unknown-kind", message, ("kind",), allowed=listed(KINDS), suggestion=suggestion)
            raise DocumentError([*problems, *more, located(root, problem)])
        return Amplification(root, file, [*problems, *more])
    return Document(root, file, [*problems, *more])


def _tree(source: object) -> tuple[str | None, Node, list[Problem]]:
    """The file, the tree and the problems of a source."""
    if isinstance(source, Written):
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

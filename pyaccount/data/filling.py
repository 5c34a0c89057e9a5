"""A document filled in for the records kept, and its text."""

from __future__ import annotations

from collections.abc import Mapping

import yaml

from pyaccount.document import Document
from pyaccount.document.foreign import from_value
from pyaccount.document.nodes import Table, place_of
from pyaccount.document.overrides import set_at
from pyaccount.errors import DocumentError, Path, Problem
from pyaccount.plan import compile_document


def filled(document: Document, changes: Mapping[Path, object]) -> Document:
    """The document with these values, all at once; errors keep the places of what stood there. Raises `DocumentError`.

    It can be planned: what has no valid bound is refused here.
    """
    root = document.root
    problems: list[Problem] = []
    for path, value in changes.items():
        node, found = from_value(value, place_of(root, path))
        changed = set_at(root, path, node)
        assert isinstance(changed, Table), "sections of a valid document are mappings"
        root, problems = changed, [*problems, *found]
    changed_document = Document(root, document.file, problems)
    compile_document(changed_document)
    return changed_document


def one_body(document: Document) -> None:
    """Refuse documents with phases: which of them draws the records is not said."""
    if len(document.bodies) != 1 or document.bodies[0].path:
        message = "prepare fills documents without phases: prepare one for each, and put them together"
        raise DocumentError([document.problem("contradiction", ("phases",), message)])


def text_of(mapping: Mapping[str, object], comments: list[str]) -> str:
    """A document, or a part of one, as YAML text below comments."""
    return "".join(f"# {line}\n" for line in comments) + yaml.safe_dump(
        dict(mapping), sort_keys=False, allow_unicode=True
    )

"""Confines documents from other sources: all files that they name must be in one folder."""

from __future__ import annotations

import os
from pathlib import Path

from pyaccount.document.document import Document
from pyaccount.errors import DocumentError
from pyaccount.files import file_inside


def confined(document: Document, folder: str | os.PathLike[str]) -> Document:
    """Return the document if every file that it names is in `folder`, links followed. Raises `DocumentError` if not."""
    found = []
    for body in document.bodies:
        for field in body.matrix.files:
            try:
                file_inside(Path(folder), getattr(body.matrix, field))
            except ValueError as error:
                found.append(document.problem("outside-folder", body.at("matrix", field), str(error)))
    if found:
        raise DocumentError(found)
    return document


def placed(document: Document, folder: str | os.PathLike[str]) -> Document:
    """Return the document as if it were in `folder`, so that its files are read only there. Raises `DocumentError`."""
    name = "document" if document.file is None else Path(document.file).name
    return confined(Document(document.root, str(Path(folder) / name)), folder)

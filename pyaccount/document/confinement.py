"""Documents from elsewhere: the files that they name lie in one folder."""

from __future__ import annotations

import os
from pathlib import Path

from pyaccount.document.document import Document
from pyaccount.errors import DocumentError
from pyaccount.files import inside


def confined(document: Document, folder: str | os.PathLike[str]) -> Document:
    """The document, if every file that it names lies in `folder` or below it, links followed. Raises `DocumentError`."""
    found = []
    for body in document.bodies:
        for field in body.matrix.files():
            try:
                inside(Path(folder), getattr(body.matrix, field))
            except ValueError as error:
                found.append(document.problem("outside-folder", body.at("matrix", field), str(error)))
    if found:
        raise DocumentError(found)
    return document


def placed(document: Document, folder: str | os.PathLike[str]) -> Document:
    """The document as one that lies in `folder`, where its files are looked for and nowhere else. Raises `DocumentError`."""
    name = "document" if document.file is None else Path(document.file).name
    return confined(Document(document.root, str(Path(folder) / name)), folder)

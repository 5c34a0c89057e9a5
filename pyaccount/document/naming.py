"""The files that a document names: they lie in its folder, or in another folder that is allowed, and lie there.

This is the one rule for all of them. It is applied when a document is validated, so that its error has the line of the key, and
again when a file is opened, since a link may have changed meanwhile.
"""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import TYPE_CHECKING

from pyaccount.errors import DocumentError, Path, Problem
from pyaccount.files import InsideFile, file_inside

if TYPE_CHECKING:
    from pyaccount.document.views import Mechanism


def named_file(document: Mechanism, path: Path, name: str) -> InsideFile:
    """Return the file that a document names at a path: in the document's folder, or in one of those that are allowed.

    Without a file of its own, the folder of a document is the working folder. Raises `DocumentError` for a file elsewhere.
    """
    folder = FilePath(document.file).parent if document.file is not None else FilePath()
    try:
        return file_inside(folder, name, further=[FilePath(one) for one in document.folders])
    except ValueError as error:
        message = f"{error}: put the file there, or allow its folder (`--folder DIR`, `folders=`)"
        raise DocumentError([document.problem("outside-folder", path, message)]) from error


def outside(document: Mechanism) -> list[Problem]:
    """Return the problems of the files that a document names elsewhere."""
    found: list[Problem] = []
    for run in document.runs():
        for path, name in run.files().items():
            try:
                named_file(document, path, name)
            except DocumentError as error:
                found += error.problems
    return found


def named_files(document: Mechanism) -> list[FilePath]:
    """Return the paths of the files that a document names, with links resolved."""
    return [named_file(document, path, name).path for run in document.runs() for path, name in run.files().items()]

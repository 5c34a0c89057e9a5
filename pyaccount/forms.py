"""The forms in which results are written, and the form that the name of a file selects."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pyaccount.errors import DomainError
from pyaccount.files import is_no_file

#: The forms in which a certificate can be printed.
FORMS = ["text", "markdown", "json", "html"]
#: The forms in which a table of a sweep can be written.
TABLES = ["text", "markdown", "csv", "json", "parquet"]

#: The form that each ending of a file name selects.
ENDINGS = {
    ".html": "html",
    ".htm": "html",
    ".md": "markdown",
    ".markdown": "markdown",
    ".txt": "text",
    ".json": "json",
    ".csv": "csv",
    ".parquet": "parquet",
}


#: The endings of the names of documents, which no result replaces.
DOCUMENTS = (".yaml", ".yml")


def check_name(path: Path) -> None:
    """Raise `DomainError` if the name of a result is that of a document: the result would be taken for one, or replace it."""
    if path.suffix.lower() in DOCUMENTS and not is_no_file(path):
        raise DomainError(f"{path}: the name ends as that of a document, and a result is none: give another ending")


def form_of(
    path: Path, form: str | None, option: str, *, forms: Sequence[str] = FORMS, otherwise: str = "json"
) -> tuple[str, str | None]:
    """Return the form in which a file is written, and a warning about it or `None`.

    The form is `form`, or the one that the ending of the file's name selects. Raises `DomainError` if neither `form` nor the
    ending selects one of `forms`, and for the name of a document; `option` is the name of `form` in the message. A pipe or a
    device, whose name nobody chose for its ending, is written to as `otherwise`.
    """
    check_name(path)
    endings = {ending: said for ending, said in ENDINGS.items() if said in forms}
    by_ending = endings.get(path.suffix.lower())
    if is_no_file(path):
        return form or by_ending or otherwise, None
    if form is not None:
        other = ENDINGS.get(path.suffix.lower(), form)
        return form, None if other == form else f"{path}: written as {form}, as {option} says; its ending says {other}"
    if by_ending is None:
        raise DomainError(f"{path}: the name must end in {', '.join(endings)}, or {option} say the form")
    return by_ending, None

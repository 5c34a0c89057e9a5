"""The forms in which results are written, and which of them the name of a file asks for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pyaccount.errors import DomainError
from pyaccount.files import is_no_file

#: What a certificate can be printed as.
FORMS = ["text", "markdown", "json", "html"]
#: What a table of a sweep can be written as.
TABLES = ["text", "markdown", "csv", "json", "parquet"]

#: The form that the ending of a file's name asks for.
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


def form_of(
    path: Path, form: str | None, option: str, *, forms: Sequence[str] = FORMS, otherwise: str = "json"
) -> tuple[str, str | None]:
    """The form in which a file is to be written, and what is to be said about that: `form`, or what the name's ending says.

    Raises `DomainError` for an ending that says none of `forms`, unless `form` does; `option` is what the message calls that. A
    pipe or a device, whose name nobody chose for its ending, is written to as `otherwise`.
    """
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

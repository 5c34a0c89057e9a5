"""A certificate in each of its forms, and as a file.

JSON is the certificate itself; HTML, Markdown and text are views of it. If a certificate contradicts itself, no report states
that it holds.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from pyaccount.certificate.consistency import inconsistencies
from pyaccount.errors import DomainError
from pyaccount.files import write_atomically
from pyaccount.forms import FORMS, form_of
from pyaccount.pages.readable import printed
from pyaccount.records.fields import Record

if TYPE_CHECKING:
    from pyaccount.records.amplification import AmplificationData
    from pyaccount.records.certificate import CertificateModel


class ContradictoryCertificate(Record):
    """A report in JSON of a certificate that contradicts itself. It is not a certificate, so that no program treats it as
    one.
    """

    pyaccount: Literal[1] = Field(description="The version of this format.")
    kind: Literal["contradictory-certificate"] = Field(
        description="The kind of this JSON: a certificate that contradicts itself."
    )
    contradictions: list[str] = Field(description="Each contradiction in the certificate, with its place.")
    certificate: dict[str, Any] = Field(
        description="The content of the certificate, except for whether its claim holds."
    )


def certificate_text(data: CertificateModel | AmplificationData, form: str, found: Sequence[str] | None = None) -> str:
    """Return a certificate in one of `FORMS`, with a list of what in it contradicts the rest.

    `found` are these contradictions, each with its path. If it is None, they are searched for, except for JSON.
    """
    found = contradictions(data) if found is None and form != "json" else found or ()
    if form == "json":
        return _contradictory(data, found) if found else _json(data)
    from pyaccount.certificate.report import page_of

    return printed(page_of(data, found), form)


def _json(data: Record) -> str:
    return data.model_dump_json(indent=2) + "\n"


def _contradictory(data: Record, found: Sequence[str]) -> str:
    fields = {name: value for name, value in json.loads(_json(data)).items() if name != "holds"}
    report = ContradictoryCertificate(
        pyaccount=1, kind="contradictory-certificate", contradictions=list(found), certificate=fields
    )
    return _json(report)


def contradictions(data: CertificateModel | AmplificationData) -> list[str]:
    """Return what in a certificate contradicts the rest of it, each with its path."""
    return [f"{one.path}: {one.message}" for one in inconsistencies(data)]


def save(data: CertificateModel | AmplificationData, path: str | os.PathLike[str], form: str | None = None) -> None:
    """Write a certificate, whole or not at all, as `form` or the file's ending. Raises `DomainError`, `OSError`."""
    if form is not None and form not in FORMS:
        raise DomainError(f"form = {form!r} is outside its domain: {', '.join(FORMS)}")
    form, warning = form_of(Path(path), form, "form")
    if warning is not None:
        warnings.warn(warning, stacklevel=3)
    write_atomically(Path(path), certificate_text(data, form))

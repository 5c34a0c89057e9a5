"""A certificate in each of its forms, and as a file.

JSON is the certificate itself; HTML, Markdown and text are views of it, for people. Of one that contradicts itself no report says
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

from pyaccount.certificate.model import Record
from pyaccount.errors import DomainError
from pyaccount.files import write_atomically
from pyaccount.forms import FORMS, form_of

if TYPE_CHECKING:
    from rich.console import Console

    from pyaccount.certificate.amplification import AmplificationCertificate
    from pyaccount.certificate.certificate import Certificate


class ContradictoryCertificate(Record):
    """A report in JSON of a certificate that contradicts itself. It is none, so that no program takes it for one."""

    pyaccount: Literal[1] = Field(description="Format version.")
    kind: Literal["contradictory-certificate"] = Field(description="What this is.")
    contradictions: list[str] = Field(description="What contradicts the rest of the certificate, each with its place.")
    certificate: dict[str, Any] = Field(description="What the certificate says, but for whether its claim holds.")


def written(
    certificate: Certificate | AmplificationCertificate, form: str, inconsistencies: Sequence[str] | None = None
) -> str:
    """A certificate in one of `FORMS`, with what contradicts the rest of it; where nobody says what that is, it is looked for."""
    inconsistencies = (
        contradictions(certificate) if inconsistencies is None and form != "json" else inconsistencies or ()
    )
    if form == "html":
        from pyaccount.certificate.report import to_html  # noqa: PLC0415 - the template engine loads when a page is wanted

        return to_html(certificate, inconsistencies)
    if form == "markdown":
        from pyaccount.certificate.report import to_markdown  # noqa: PLC0415

        return to_markdown(certificate, inconsistencies)
    if form == "json":
        return _contradictory(certificate, inconsistencies) if inconsistencies else certificate.to_json()
    import io  # noqa: PLC0415

    from rich.console import Console  # noqa: PLC0415

    stream = io.StringIO()
    print_text(Console(file=stream, width=110), certificate, inconsistencies)
    return stream.getvalue()


def _contradictory(certificate: Certificate | AmplificationCertificate, inconsistencies: Sequence[str]) -> str:
    said = {name: value for name, value in json.loads(certificate.to_json()).items() if name != "holds"}
    report = ContradictoryCertificate(
        pyaccount=1, kind="contradictory-certificate", contradictions=list(inconsistencies), certificate=said
    )
    return report.model_dump_json(indent=2) + "\n"


def print_text(
    console: Console, certificate: Certificate | AmplificationCertificate, inconsistencies: Sequence[str] = ()
) -> None:
    """A certificate of whichever kind for a terminal."""
    from pyaccount.certificate.certificate import Certificate  # noqa: PLC0415 - it imports this

    if isinstance(certificate, Certificate):
        from pyaccount.certificate.text import print_certificate  # noqa: PLC0415

        print_certificate(console, certificate, inconsistencies)
    else:
        from pyaccount.certificate.amplification import print_amplification  # noqa: PLC0415

        print_amplification(console, certificate, inconsistencies)


def contradictions(certificate: Certificate | AmplificationCertificate) -> list[str]:
    """What in a certificate contradicts the rest of it, each with its place."""
    from pyaccount.certificate.consistency import inconsistencies_of  # noqa: PLC0415 - it imports this

    return [f"{inconsistency.path}: {inconsistency.message}" for inconsistency in inconsistencies_of(certificate)]


def save(
    certificate: Certificate | AmplificationCertificate, path: str | os.PathLike[str], form: str | None = None
) -> None:
    """Write a certificate whole or not at all, as `form` or the ending of its name says. Raises `DomainError`, `OSError`."""
    if form is not None and form not in FORMS:
        raise DomainError(f"form = {form!r} is outside its domain: {', '.join(FORMS)}")
    form, told = form_of(Path(path), form, "form")
    if told is not None:
        warnings.warn(told, stacklevel=3)
    write_atomically(Path(path), written(certificate, form))

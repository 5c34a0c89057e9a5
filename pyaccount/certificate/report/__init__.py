"""Reports: a certificate as one HTML page or as Markdown, for people who were not there.

`sections` turns a certificate into a `Page` of blocks, with every number's unit, direction and origin; `html` and `markdown`
render pages and know no certificates. This room computes nothing but what follows from the certificate's own points.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError
from pydantic_core import from_json

from pyaccount.certificate.certificate import Certificate
from pyaccount.certificate.mistaken import taken_for_certificate
from pyaccount.errors import CertificateError

if TYPE_CHECKING:
    from pyaccount.certificate.amplification import AmplificationCertificate
    from pyaccount.certificate.report.page import Page

#: A certificate is never larger: more is not one, and is not read.
LARGEST = 64 * 1024 * 1024

#: What a file holds that is no certificate, and what to do about it.
OTHERS = {
    "comparison": "a comparison of certificates; a report is about one certificate: `pyaccount compare --format markdown`",
    "amplification": "a document; certify it first: `pyaccount certify DOC -o CERT`",
}


def to_html(certificate: Certificate | AmplificationCertificate) -> str:
    """The report as one self-contained HTML page."""
    from pyaccount.certificate.report.html import html  # noqa: PLC0415 - Jinja loads when a page is wanted

    return html(page_of(certificate))


def to_markdown(certificate: Certificate | AmplificationCertificate) -> str:
    """The report as Markdown."""
    from pyaccount.certificate.report.markdown import markdown  # noqa: PLC0415

    return markdown(page_of(certificate))


def page_of(certificate: Certificate | AmplificationCertificate) -> Page:
    """The report as data."""
    if isinstance(certificate, Certificate):
        from pyaccount.certificate.report.sections import certificate_page  # noqa: PLC0415

        return certificate_page(certificate.data)
    from pyaccount.certificate.report.amplified import amplification_page  # noqa: PLC0415

    return amplification_page(certificate)


def read(path: Path) -> Certificate | AmplificationCertificate:
    """Read a certificate of any kind from a file; raises `CertificateError` for anything else."""
    try:
        if path.is_dir():
            raise CertificateError(f"{path}: this is a folder; give the JSON file of a certificate")
        if path.stat().st_size > LARGEST:
            raise CertificateError(f"{path}: larger than any certificate")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise CertificateError(f"{path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise CertificateError(f"{path}: not a certificate: not UTF-8 text") from error
    kind = _kind(path, text)
    if kind == "amplification-certificate":
        from pyaccount.certificate.amplification import AmplificationCertificate  # noqa: PLC0415

        try:
            return AmplificationCertificate.model_validate_json(text)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"])
            raise CertificateError(f"{path}: not a certificate of format version 1: {place}: {first['msg']}") from error
    try:
        return Certificate.from_json(text)
    except CertificateError as error:
        raise CertificateError(f"{path}: {error}") from error


def _kind(path: Path, text: str) -> str:
    """What the file says it is; refuses what is known not to be a certificate."""
    try:
        found: Any = from_json(text)
    except ValueError as error:
        message = taken_for_certificate(text, str(path)) or f"not a certificate: not JSON: {error}"
        raise CertificateError(f"{path}: {message}") from error
    if not isinstance(found, dict):
        raise CertificateError(f"{path}: not a certificate: a JSON object is expected")
    kind = found.get("kind")
    if isinstance(kind, str) and kind in OTHERS:
        raise CertificateError(f"{path}: not a certificate but {OTHERS[kind]}")
    if "kind" not in found and "privacy" in found and "guarantee" not in found:
        raise CertificateError(f"{path}: not a certificate but {OTHERS['amplification']}")
    return kind if isinstance(kind, str) else ""

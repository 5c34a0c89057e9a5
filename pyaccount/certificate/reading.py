"""Reads certificate files strictly.

JSON that readers could interpret differently is rejected, and so are fields of the wrong type or out of range.
"""

from __future__ import annotations

import hashlib
import os
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from pyaccount.certificate.strict import bytes_of, object_of, refused, typed
from pyaccount.errors import quoted

if TYPE_CHECKING:
    from pyaccount.certificate.amplification import AmplificationCertificate
    from pyaccount.records.certificate import CertificateModel

#: More bytes than the certificate of a document of the largest size has.
LARGEST_FILE = 1 << 27
#: What messages say the file is not.
WHAT, WHOLE = "a certificate", "a certificate of format version 1"

CERTIFICATE, AMPLIFICATION = "certificate", "amplification-certificate"

#: Other files by their `kind`: what they are, and what to do with them.
OTHER_KINDS = {
    "comparison": "a comparison of certificates, which `pyaccount compare` made: give a single certificate",
    "amplification": "a document; certify it first: `pyaccount certify DOC -o CERT`",
    "policy": "a policy: `pyaccount check CERT --policy FILE`",
}


class Read(NamedTuple):
    """A file that contains JSON of a known kind and format version; its other fields are not validated yet."""

    file: str
    raw: dict[str, Any]
    #: The hash of the file's bytes, which identifies the file in a verdict.
    sha256: str

    @property
    def kind(self) -> str:
        """The `kind` that the file states."""
        return str(self.raw["kind"])

    def certificate(self) -> CertificateModel:
        """Return the certificate of a training run. Raises `CertificateError`, also for one of an amplification."""
        from pyaccount.records.certificate import CertificateModel  # other kinds do not need this model

        if self.kind != CERTIFICATE:
            message = (
                "certifies one draw for a mechanism, not a training run: it has no adjacency and no claim to check"
            )
            raise refused(self.file, message)
        return typed(CertificateModel, self.raw, self.file, WHOLE)

    def amplification(self) -> AmplificationCertificate:
        """Return the certificate of an amplification. Raises `CertificateError`."""
        from pyaccount.certificate.amplification import AmplificationCertificate  # imports the core

        return typed(AmplificationCertificate, self.raw, self.file, WHOLE)

    def any(self) -> CertificateModel | AmplificationCertificate:
        """Return the certificate, of either kind. Raises `CertificateError`."""
        return self.amplification() if self.kind == AMPLIFICATION else self.certificate()


def read_certificate(source: str | os.PathLike[str]) -> Read:
    """Read a certificate's file. Raises `CertificateError`, with the position of the error, if it is not one."""
    file = os.fsdecode(source)
    return parse_certificate(bytes_of(file, WHAT, LARGEST_FILE), file)


def given_certificate(source: object) -> Read:
    """Read a certificate's file, or one in memory as its JSON would be read. Raises `CertificateError`, `TypeError`."""
    if isinstance(source, str | os.PathLike):
        return read_certificate(source)
    as_json = getattr(source, "to_json", None)
    if as_json is None:
        raise TypeError(f"certificate is the path of a JSON file or a Certificate, not {type(source).__name__}")
    return parse_certificate(as_json().encode(), "certificate")


def parse_certificate(data: bytes, file: str) -> Read:
    """Read the bytes of a certificate; `file` is the name to use in messages."""
    return of_object(object_of(data, file, WHAT, _taken_for_certificate), file, hashlib.sha256(data).hexdigest())


def of_object(raw: dict[str, Any], file: str, sha256: str) -> Read:
    """Read a certificate from an object that was read strictly; `sha256` is the hash of the file that contains it."""
    if "payloadType" in raw:
        message = "an attestation, not a certificate: use `pyaccount check --attestation FILE --trusted-keys DIR`"
        raise refused(file, message)
    version, kind = raw.get("pyaccount"), raw.get("kind")
    other = kind if kind is not None else "amplification" if "privacy" in raw and "guarantee" not in raw else None
    if isinstance(other, str) and other in OTHER_KINDS:
        said = "" if kind is None else f"{quoted(kind)}, "
        raise refused(file, f"{said}not a certificate but {OTHER_KINDS[other]}", ("kind",))
    if type(version) is not int or version != 1:
        said = "says no format version" if version is None else f"says pyaccount: {quoted(version)}"
        raise refused(file, f"not a certificate of format version 1, which is read here: it {said}", ("pyaccount",))
    if kind not in (CERTIFICATE, AMPLIFICATION):
        raise refused(file, f"not a certificate, but {'nothing' if kind is None else quoted(kind)}", ("kind",))
    return Read(file, raw, sha256)


def _taken_for_certificate(text: str, file: str) -> str | None:
    """Return what a text that is not JSON seems to be (policy, document, report) and what to do; None if unknown."""
    if re.search(r"^kind: *[\"']?policy\b", text, flags=re.MULTILINE):
        return f"a policy, not a certificate: `pyaccount check CERT --policy {file}`"
    if re.search(r"^pyaccount: ", text, flags=re.MULTILINE):
        return f"a document, not a certificate (not JSON); certify it first: pyaccount certify {file} -o CERT"
    if re.match(r"\s*<!doctype html", text, flags=re.IGNORECASE):
        return "a report, not a certificate: give the JSON file that `pyaccount certify -o` wrote"
    return None

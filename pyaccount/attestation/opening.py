"""Reads envelopes strictly and checks their signatures. The payload is parsed only if a trusted key signed it.

The signature covers the bytes and the type of the payload, not the envelope around them. To detect every change of an
envelope, only one spelling is accepted: exactly these fields, and exactly the base64 that encoding the decoded bytes
gives.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from pyaccount.attestation.keys import library
from pyaccount.attestation.statement import WHAT, InTotoStatement, Subject, read_statement
from pyaccount.certificate import reading
from pyaccount.certificate.strict import bytes_of, object_of, refused, typed
from pyaccount.errors import quoted
from pyaccount.files import write_atomically

if TYPE_CHECKING:
    from pyaccount.attestation.keys import TrustedKey, TrustedKeys

#: The name of in-toto Statements in DSSE.
PAYLOAD_TYPE = "application/vnd.in-toto+json"
#: The most bytes of an envelope: a certificate in base64, and little else.
LARGEST_FILE = reading.LARGEST_FILE // 3 * 4 + (1 << 20)
#: The most signatures of an envelope.
MOST_SIGNATURES = 16


@dataclass(frozen=True, slots=True)
class Attestation:
    """A signed certificate: the text of the envelope, its subjects, and the name of the key."""

    text: str
    subjects: tuple[Subject, ...]
    key_id: str

    def to_json(self) -> str:
        """Return the envelope as JSON text."""
        return self.text

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the envelope, completely or not at all."""
        write_atomically(Path(path), self.text)


class _Signature(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", defer_build=True)
    #: DSSE makes this optional. It is required here, so that it is clear which key is meant.
    keyid: str = Field(min_length=1)
    sig: str


class _Envelope(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", defer_build=True)
    payload: str
    payload_type: str = Field(alias="payloadType")
    signatures: list[_Signature] = Field(min_length=1, max_length=MOST_SIGNATURES)


class Signed(NamedTuple):
    """The trusted key that signed an envelope, or the reason why there is none."""

    by: TrustedKey | None
    why: str = ""


class Envelope(NamedTuple):
    """An envelope whose signatures are not checked yet."""

    file: str
    #: The hash of the file's bytes.
    sha256: str
    payload: bytes
    #: The signatures, by the names of their keys.
    signatures: dict[str, bytes]

    def signed(self, trusted: TrustedKeys, now: datetime | None = None) -> Signed:
        """Return the key that signed the envelope, if one did that is still trusted. Raises `MissingExtraError`."""
        now, late = now or datetime.now(UTC), None
        for key in trusted.keys:
            if self._by(key):
                if not key.expired(now):
                    return Signed(key)
                late = key
        if late is not None and late.expires is not None:
            return Signed(None, f"signed by {late.name}, which was trusted only until {late.expires.isoformat()}")
        return Signed(None, "no trusted key signed this, so nothing in it was read")

    def statement(self) -> InTotoStatement:
        """Return the Statement inside. Call this only after `signed` found a key. Raises `CertificateError`."""
        return read_statement(self.payload, self.file, self.sha256)

    def _by(self, key: TrustedKey) -> bool:
        used = library()
        named = {name: used.signer.Signature(name, signature.hex()) for name, signature in self.signatures.items()}
        try:
            used.Envelope(self.payload, PAYLOAD_TYPE, named).verify([key.key], 1)
        except used.Unverified:
            return False
        return True


def envelope_of(source: str | os.PathLike[str] | Attestation) -> Envelope:
    """Return the envelope in a file, or that of an attestation in memory. Raises `CertificateError`."""
    if not isinstance(source, str | os.PathLike):
        return _parse_envelope(source.to_json().encode(), "attestation")
    file = os.fsdecode(source)
    return _parse_envelope(bytes_of(file, WHAT, LARGEST_FILE), file)


def _parse_envelope(data: bytes, file: str) -> Envelope:
    """Read an envelope from bytes; `file` is the name to use in messages. Raises `CertificateError`."""
    raw = object_of(data, file, WHAT)
    if "payload" not in raw and raw.get("kind") == reading.CERTIFICATE:
        message = f"an unsigned certificate, not {WHAT}: sign it with `pyaccount attest CERT --subject FILE --key KEY`"
        raise refused(file, message)
    written = typed(_Envelope, raw, file, WHAT)
    if written.payload_type != PAYLOAD_TYPE:
        raise refused(file, f"{quoted(written.payload_type)} is not {PAYLOAD_TYPE}", ("payloadType",))
    payload = _decoded(written.payload, file, ("payload",))
    signatures: dict[str, bytes] = {}
    for number, one in enumerate(written.signatures):
        if one.keyid in signatures:
            raise refused(file, "a second signature by the same key", ("signatures", number))
        signatures[one.keyid] = _decoded(one.sig, file, ("signatures", number, "sig"))
    return Envelope(file, hashlib.sha256(data).hexdigest(), payload, signatures)


def _decoded(text: str, file: str, path: tuple[str | int, ...]) -> bytes:
    """Decode base64 in its only valid spelling, in either of the two alphabets that DSSE allows."""
    for encode in (base64.standard_b64encode, base64.urlsafe_b64encode):
        altered = b"-_" if encode is base64.urlsafe_b64encode else None
        try:
            data = base64.b64decode(text, altchars=altered, validate=True)
        except (ValueError, binascii.Error):
            continue
        if encode(data).decode() == text:
            return data
    raise refused(file, "not base64 in its standard spelling", path)

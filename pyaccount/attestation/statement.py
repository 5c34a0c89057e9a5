"""Attestations: the files that one is about, the signed text, and how an envelope is read and its signatures are checked.

The text is an in-toto Statement, version 1, with the files as its subjects and a certificate as its predicate. It is parsed only
if a trusted key signed it.

The signature covers the bytes and the type of the payload, not the envelope around them. To detect every change of an
envelope, only one spelling is accepted: exactly these fields, and exactly the base64 that encoding the decoded bytes
gives.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from pyaccount.attestation.keys import TrustedKey, TrustedKeys, library
from pyaccount.certificate import reading
from pyaccount.certificate.reading import Read, of_object
from pyaccount.certificate.strict import bytes_of, object_of, refused, typed
from pyaccount.errors import DomainError, printable, quoted
from pyaccount.files import write_atomically


@dataclass(frozen=True, slots=True)
class Subject:
    """A file: its name, and the SHA-256 of its bytes, which identifies it."""

    name: str
    sha256: str


def subjects_of(files: Iterable[str | os.PathLike[str]]) -> tuple[Subject, ...]:
    """Return files with their digests, by file name, or by path if several have the same name. Raises `DomainError`."""
    paths = [os.fsdecode(file) for file in files]
    names = [Path(path).name for path in paths]
    return tuple(
        Subject(name if names.count(name) == 1 else path, _digest(path))
        for path, name in zip(paths, names, strict=True)
    )


def _digest(path: str) -> str:
    """Return the SHA-256 of a regular file, read in pieces."""
    try:
        if not stat.S_ISREG(Path(path).stat().st_mode):
            raise DomainError(f"subject {printable(path)}: not a regular file; give each file of the model separately")
        with Path(path).open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except DomainError:
        raise
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise DomainError(f"subject {printable(path)}: cannot be read: {reason or error}") from error


#: The type of an in-toto Statement of version 1.
STATEMENT = "https://in-toto.io/Statement/v1"

#: The predicate type of a certificate of format version 1. It is a name and not an address, since nothing is fetched.
PREDICATE = "urn:pyaccount:certificate:v1"

#: The most subjects: more than the files of any model.
MOST_SUBJECTS = 10_000

#: What messages say the file is not.
WHAT = "an attestation"


class InTotoStatement(NamedTuple):
    """The contents of a Statement."""

    subjects: tuple[Subject, ...]
    certificate: Read


class _Digest(BaseModel):
    """The digests of a file; those of other algorithms are ignored."""

    model_config = ConfigDict(strict=True, defer_build=True)
    sha256: str = Field(pattern="^[0-9a-f]{64}$")


class _Resource(BaseModel):
    model_config = ConfigDict(strict=True, defer_build=True)
    name: str = ""
    digest: _Digest


class _Written(BaseModel):
    """The fields of a Statement; in-toto requires that unknown ones are ignored."""

    model_config = ConfigDict(strict=True, defer_build=True)
    type: str = Field(alias="_type")
    subject: list[_Resource] = Field(min_length=1, max_length=MOST_SUBJECTS)
    predicate_type: str = Field(alias="predicateType")
    predicate: dict[str, Any]


def statement_bytes(subjects: Iterable[Subject], predicate: dict[str, Any]) -> bytes:
    """Return a Statement as the JSON text that is signed."""
    statement = {
        "_type": STATEMENT,
        "subject": [{"name": one.name, "digest": {"sha256": one.sha256}} for one in subjects],
        "predicateType": PREDICATE,
        "predicate": predicate,
    }
    return json.dumps(statement, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def read_statement(payload: bytes, file: str, sha256: str) -> InTotoStatement:
    """Read a Statement from the signed bytes. `file` and `sha256` are the envelope's. Raises `CertificateError`."""
    raw = object_of(payload, file, WHAT)
    written = typed(_Written, raw, file, WHAT)
    if written.type != STATEMENT:
        raise refused(file, f"{quoted(written.type)} is not {STATEMENT}, which is read here", ("_type",))
    if written.predicate_type != PREDICATE:
        message = f"{quoted(written.predicate_type)} is not {PREDICATE}: it attests something other than a certificate"
        raise refused(file, message, ("predicateType",))
    subjects = tuple(Subject(one.name, one.digest.sha256) for one in written.subject)
    return InTotoStatement(subjects, of_object(written.predicate, file, sha256))


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

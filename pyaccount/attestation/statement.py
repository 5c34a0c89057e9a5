"""What is signed: an in-toto Statement, version 1, with files as its subjects and a certificate as its predicate."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pyaccount.attestation.subjects import Subject
from pyaccount.certificate.reading import Read, of_object
from pyaccount.certificate.strict import object_of, refusal, refused
from pyaccount.errors import shown

#: What in-toto calls a Statement of version 1.
STATEMENT = "https://in-toto.io/Statement/v1"
#: That the predicate is a certificate of format version 1. A name and no address, like those of the schemas: nothing is fetched.
PREDICATE = "urn:pyaccount:certificate:v1"
#: More subjects than the files of any model.
MOST_SUBJECTS = 10_000
#: What messages say that a file is not.
WHAT = "an attestation"


class InTotoStatement(NamedTuple):
    """What a Statement says."""

    subjects: tuple[Subject, ...]
    certificate: Read


class _Digest(BaseModel):
    """A file's digests; those of other algorithms are not looked at."""

    model_config = ConfigDict(strict=True, defer_build=True)
    sha256: str = Field(pattern="^[0-9a-f]{64}$")


class _Resource(BaseModel):
    model_config = ConfigDict(strict=True, defer_build=True)
    name: str = ""
    digest: _Digest


class _Written(BaseModel):
    """The fields of a Statement; in-toto says that further ones are not looked at."""

    model_config = ConfigDict(strict=True, defer_build=True)
    type: str = Field(alias="_type")
    subject: list[_Resource] = Field(min_length=1, max_length=MOST_SUBJECTS)
    predicate_type: str = Field(alias="predicateType")
    predicate: dict[str, Any]


def statement_bytes(subjects: Iterable[Subject], predicate: dict[str, Any]) -> bytes:
    """A Statement as the JSON text that is signed."""
    statement = {
        "_type": STATEMENT,
        "subject": [{"name": one.name, "digest": {"sha256": one.sha256}} for one in subjects],
        "predicateType": PREDICATE,
        "predicate": predicate,
    }
    return json.dumps(statement, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def read_statement(payload: bytes, file: str, sha256: str) -> InTotoStatement:
    """The Statement in what was signed. Raises `CertificateError`; `file` and its hash are those of the envelope."""
    raw = object_of(payload, file, WHAT)
    try:
        written = _Written.model_validate(raw)
    except ValidationError as error:
        found = [(one["loc"], one["msg"]) for one in error.errors(include_url=False, include_input=False)]
        raise refusal(file, WHAT, found) from error
    if written.type != STATEMENT:
        raise refused(file, f"{shown(written.type)} is not {STATEMENT}, which is read here", ("_type",))
    if written.predicate_type != PREDICATE:
        message = f"{shown(written.predicate_type)} is not {PREDICATE}: it attests something else than a certificate"
        raise refused(file, message, ("predicateType",))
    subjects = tuple(Subject(one.name, one.digest.sha256) for one in written.subject)
    return InTotoStatement(subjects, of_object(written.predicate, file, sha256))

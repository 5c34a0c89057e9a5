"""The files that an attestation is about, and the signed text.

The text is an in-toto Statement, version 1, with the files as its subjects and a certificate as its predicate.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from pyaccount.certificate.reading import Read, of_object
from pyaccount.certificate.strict import object_of, refused, typed
from pyaccount.errors import DomainError, printable, quoted


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

"""What a person says about a model beside its certificate, for bills of materials, and the time at which they are written.

A certificate knows nothing of a model's name, version, supplier or licence. What is not given is left out of a bill, and never
filled in with a guess.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pyaccount.attestation.statement import Subject, subjects_of
from pyaccount.errors import DomainError, printable, quoted

#: The environment variable for reproducible builds: the time that is written, in seconds since 1970.
EPOCH = "SOURCE_DATE_EPOCH"
#: The name space of the identifiers of bills: they follow from what the bill is about.
_SPACE = uuid.uuid5(uuid.NAMESPACE_URL, "urn:pyaccount:bill")


@dataclass(frozen=True, slots=True)
class DescribedModel:
    """A model, as its publisher describes it. Every field may be left out."""

    #: The name [the name of the certificate].
    name: str | None = None
    version: str | None = None
    #: The organisation that supplies the model.
    supplier: str | None = None
    #: Where the model can be downloaded: a URL.
    download_location: str | None = None
    #: An SPDX licence expression, such as Apache-2.0.
    license: str | None = None
    #: The day or the time of the release, in ISO 8601.
    release_time: str | None = None

    def released(self) -> str | None:
        """Return the time of the release in UTC, as bills write it. Raises `DomainError` for a text that is not a time."""
        if self.release_time is None:
            return None
        try:
            time = datetime.fromisoformat(self.release_time)
        except ValueError as error:
            message = f"`release_time` = {quoted(self.release_time)} is not a day or a time: write it as 2027-01-31"
            raise DomainError(message) from error
        return _written(time if time.tzinfo is not None else time.replace(tzinfo=UTC))


@dataclass(frozen=True, slots=True)
class Bill:
    """What identifies a bill: the files of the model, the time, and an identifier that follows from all of it."""

    subjects: tuple[Subject, ...]
    created: str
    identifier: uuid.UUID


def bill(certificate_sha256: str, subjects: Iterable[str | os.PathLike[str]], created: datetime | None) -> Bill:
    """Return what identifies a bill. `created` is the time of writing [SOURCE_DATE_EPOCH, or now].

    Raises `DomainError` for files that cannot be read, and for a SOURCE_DATE_EPOCH that is not a number.
    """
    if isinstance(subjects, str | os.PathLike):
        raise TypeError("subjects is a list of files, not one: give [file]")
    about = tuple(Subject(printable(one.name), one.sha256) for one in subjects_of(subjects))
    time = _written(_now() if created is None else created.astimezone(UTC))
    words = "\n".join([certificate_sha256, *(f"{one.sha256} {one.name}" for one in about), time])
    return Bill(about, time, uuid.uuid5(_SPACE, words))


def json_text(whole: dict[str, Any]) -> str:
    """Return a bill as JSON text. Half of a surrogate pair, as in words that are no text, is written as JSON spells it."""
    text = json.dumps(whole, indent=2, ensure_ascii=False, allow_nan=False)
    return text.encode(errors="backslashreplace").decode() + "\n"


def _now() -> datetime:
    seconds = os.environ.get(EPOCH)
    if seconds is None:
        return datetime.now(UTC)
    try:
        return datetime.fromtimestamp(int(seconds), UTC)
    except (ValueError, OverflowError, OSError) as error:
        message = f"{EPOCH} = {quoted(seconds)} is not a number of seconds since 1970: correct it, or unset it"
        raise DomainError(message) from error


def _written(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

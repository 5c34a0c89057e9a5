"""A certificate's file, read strictly: what a lenient reader would overlook is an error with its place.

Keys given twice (of which other readers may take the other one), numbers that JSON does not have, text that cannot be
written out again, and fields of the wrong type or out of range are all refused.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError

from pyaccount.certificate.mistaken import taken_for_certificate
from pyaccount.errors import CertificateError, Problem, path_text, shown
from pyaccount.errors import Path as Place

if TYPE_CHECKING:
    from pyaccount.certificate.amplification import AmplificationCertificate
    from pyaccount.certificate.model import CertificateModel

#: Larger than the certificate of a document of the largest size.
LARGEST_FILE = 1 << 27
#: A certificate holds its document, which has at most 50 levels, and few of its own.
DEEPEST = 64
#: Of the problems of one certificate, so many are told.
MOST_SHOWN = 20
#: No double is as large, and Python takes quadratic time for the digits of such integers.
_LONGEST_INTEGER = 400

CERTIFICATE, AMPLIFICATION = "certificate", "amplification-certificate"

#: What a file holds that is no certificate, and what to do about it.
OTHER_KINDS = {
    "comparison": "a comparison of certificates, which `pyaccount compare` made: each command is about a certificate by itself",
    "amplification": "a document; certify it first: `pyaccount certify DOC -o CERT`",
    "policy": "a policy: `pyaccount check CERT --policy FILE`",
}

_Found = list[tuple[Place, str]]
Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Read:
    """A file that holds JSON of a kind and format version that is known here; its fields are not looked at yet."""

    file: str
    raw: dict[str, Any]
    #: The hash of the file's bytes: which file a verdict is about.
    sha256: str

    @property
    def kind(self) -> str:
        """What kind of certificate it is."""
        return str(self.raw["kind"])

    def certificate(self) -> CertificateModel:
        """The certificate. Raises `CertificateError`, also for those of amplifications."""
        from pyaccount.certificate.model import CertificateModel  # noqa: PLC0415 - another kind has another model

        if self.kind != CERTIFICATE:
            message = (
                "certifies one draw before a mechanism, not a training run: there is no adjacency or claim to judge"
            )
            raise _refused(self.file, message)
        return self._typed(CertificateModel)

    def amplification(self) -> AmplificationCertificate:
        """The certificate of an amplification. Raises `CertificateError`."""
        from pyaccount.certificate.amplification import AmplificationCertificate  # noqa: PLC0415 - imports the core

        return self._typed(AmplificationCertificate)

    def any(self) -> CertificateModel | AmplificationCertificate:
        """The certificate of whichever kind. Raises `CertificateError`."""
        return self.amplification() if self.kind == AMPLIFICATION else self.certificate()

    def _typed(self, model: type[Model]) -> Model:
        try:
            return model.model_validate(self.raw, strict=True)
        except ValidationError as error:
            found: _Found = [(one["loc"], one["msg"]) for one in error.errors(include_url=False, include_input=False)]
            raise _refusal(self.file, found) from error


def read(source: str | os.PathLike[str]) -> Read:
    """The certificate in a file. Raises `CertificateError` with its place for anything that is none."""
    file = os.fsdecode(source)
    return parse(_bytes_of(file), file)


def parse(data: bytes, file: str) -> Read:
    """The certificate in a text; `file` is what messages call it."""
    raw = _json(data, file)
    if not isinstance(raw, dict):
        raise _refused(file, f"not a certificate: an object is expected, not {shown(raw)}")
    found = list(_oddities(raw))
    if found:
        raise _refusal(file, found)
    version, kind = raw.get("pyaccount"), raw.get("kind")
    other = kind if kind is not None else "amplification" if "privacy" in raw and "guarantee" not in raw else None
    if isinstance(other, str) and other in OTHER_KINDS:
        said = "" if kind is None else f"{shown(kind)}, "
        raise _refused(file, f"{said}not a certificate but {OTHER_KINDS[other]}", ("kind",))
    if type(version) is not int or version != 1:
        said = "says no format version" if version is None else f"says pyaccount: {shown(version)}"
        raise _refused(file, f"not a certificate of format version 1, which is read here: it {said}", ("pyaccount",))
    if kind not in (CERTIFICATE, AMPLIFICATION):
        raise _refused(file, f"not a certificate, but {'nothing' if kind is None else shown(kind)}", ("kind",))
    return Read(file, raw, hashlib.sha256(data).hexdigest())


def _bytes_of(file: str) -> bytes:
    try:
        path = Path(file)
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            what = "a folder" if stat.S_ISDIR(status.st_mode) else "not a regular file"
            raise _refused(file, f"this is {what}; give the JSON file of a certificate")
        with path.open("rb") as stream:
            data = stream.read(LARGEST_FILE + 1)
    except (OSError, ValueError) as error:
        # ValueError: a name with a null character.
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise _refused(file, f"cannot be read: {reason or error}") from error
    if len(data) > LARGEST_FILE:
        raise _refused(file, f"a certificate has at most {LARGEST_FILE:_} bytes")
    return data


class _Doubled(dict[str, Any]):
    """An object of which a key was given twice."""

    key = ""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) == len(pairs):
        return mapping
    seen: set[str] = set()
    doubled = _Doubled(mapping)
    doubled.key = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
    return doubled


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= _LONGEST_INTEGER else math.inf


def _json(data: bytes, file: str) -> Any:
    try:
        return json.loads(data.decode(), object_pairs_hook=_object, parse_int=_integer)
    except UnicodeDecodeError as error:
        raise _refused(file, f"not a certificate: byte {error.start} is not UTF-8 text") from error
    except json.JSONDecodeError as error:
        if (message := taken_for_certificate(data.decode(), file)) is not None:
            raise _refused(file, message) from error
        message = f"not a certificate: not JSON: {error.msg}"
        raise _refused(file, message, place=(error.lineno, error.colno)) from error
    except RecursionError as error:
        raise _refused(file, "not a certificate: nested too deeply") from error


def _oddities(raw: dict[str, Any]) -> list[tuple[Place, str]]:
    """What JSON readers let pass, and what could not be written out again."""
    found: _Found = []
    waiting: list[tuple[Place, Any]] = [((), raw)]
    while waiting and len(found) < MOST_SHOWN:
        path, value = waiting.pop()
        if len(path) > DEEPEST:
            found.append((path[:8], "nested too deeply"))
        elif isinstance(value, dict):
            if isinstance(value, _Doubled):
                found.append(((*path, value.key), "this key is given twice"))
            found += [(path, "a key cannot be written as UTF-8") for key in value if _broken(key)]
            waiting += [((*path, key), item) for key, item in reversed(value.items())]
        elif isinstance(value, list):
            waiting += [((*path, index), item) for index, item in reversed(list(enumerate(value)))]
        elif isinstance(value, str) and _broken(value):
            found.append((path, "this text cannot be written as UTF-8"))
        elif isinstance(value, float) and not math.isfinite(value):
            found.append((path, "this is no finite number"))
    return found


def _broken(text: str) -> bool:
    """Whether a text holds half of a surrogate pair."""
    return re.search("[\ud800-\udfff]", text) is not None


def _refusal(file: str, found: _Found) -> CertificateError:
    problems = [Problem(CertificateError.slug, message, path, file) for path, message in found[:MOST_SHOWN]]
    lines = [f"{file}: {problem.path_text}: {problem.message}" for problem in problems]
    if len(found) > MOST_SHOWN:
        lines.append(f"{file}: and {len(found) - MOST_SHOWN} more")
    return CertificateError("\n".join(["not a certificate of format version 1:", *lines]), problems)


def _refused(
    file: str, message: str, path: Place = (), place: tuple[int | None, int | None] = (None, None)
) -> CertificateError:
    """The error of a file that is no certificate, for one reason."""
    problem = Problem(CertificateError.slug, message, path, file, *place)
    where = ":".join(str(part) for part in (file, *place) if part is not None)
    return CertificateError(f"{where}: {path_text(path)}{': ' if path else ''}{message}", [problem])

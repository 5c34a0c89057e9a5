"""Reads JSON strictly: what a lenient reader would overlook is an error with its position.

Rejected are keys that are given twice (other readers may use the other value), numbers that JSON does not have, text
that cannot be encoded, and too many levels. The argument `what` is what messages say the file is not.
"""

from __future__ import annotations

import json
import math
import re
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from pyaccount.errors import CertificateError, Problem, path_text, printable, quoted
from pyaccount.errors import Path as Place

#: The most levels: a certificate contains its document, which has at most 50 levels, and adds few.
DEEPEST = 64
#: The most problems of one file that are reported.
MOST_SHOWN = 20
#: The most digits that are parsed: longer integers exceed every double, and Python takes quadratic time for them.
_LONGEST_INTEGER = 400

Model = TypeVar("Model", bound=BaseModel)
Oddities = list[tuple[Place, str]]


def bytes_of(file: str, what: str, largest: int) -> bytes:
    """Return the bytes of a regular file of at most `largest` bytes. Raises `CertificateError`."""
    try:
        path = Path(file)
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            other = "a folder" if stat.S_ISDIR(status.st_mode) else "not a regular file"
            raise refused(file, f"this is {other}; give the JSON file of {what}")
        if status.st_size > largest:
            raise refused(file, f"{what} has at most {largest:_} bytes")
        with path.open("rb") as stream:
            data = stream.read(largest + 1)
    except CertificateError:
        raise
    except (OSError, ValueError) as error:
        # A name with a null character raises ValueError.
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise refused(file, f"cannot be read: {reason or error}") from error
    if len(data) > largest:
        raise refused(file, f"{what} has at most {largest:_} bytes")
    return data


def object_of(
    data: bytes, file: str, what: str, taken_for: Callable[[str, str], str | None] | None = None
) -> dict[str, Any]:
    """Return the object in a JSON text; `taken_for` guesses what other text is. Raises `CertificateError`."""
    raw = _json(data, file, what, taken_for)
    if not isinstance(raw, dict):
        raise refused(file, f"not {what}: an object is expected, not {quoted(raw)}")
    oddities = list(_oddities(raw))
    if oddities:
        raise _file_error(file, what, oddities)
    return raw


class _Doubled(dict[str, Any]):
    """A JSON object in which a key was given twice."""

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
    """Return an integer, or infinity if it is too large for a double, since later computations convert it to one."""
    whole = int(digits) if len(digits) <= _LONGEST_INTEGER else math.inf
    return whole if abs(whole) <= sys.float_info.max else math.inf


def _json(data: bytes, file: str, what: str, taken_for: Callable[[str, str], str | None] | None) -> Any:
    try:
        return json.loads(data.decode(), object_pairs_hook=_object, parse_int=_integer)
    except UnicodeDecodeError as error:
        raise refused(file, f"not {what}: byte {error.start} is not UTF-8 text") from error
    except json.JSONDecodeError as error:
        if taken_for is not None and (message := taken_for(data.decode(), file)) is not None:
            raise refused(file, message) from error
        message = f"not {what}: not JSON: {error.msg}"
        raise refused(file, message, place=(error.lineno, error.colno)) from error
    except RecursionError as error:
        raise refused(file, f"not {what}: nested too deeply") from error


def _oddities(raw: dict[str, Any]) -> Oddities:
    """Return the problems that JSON readers accept, and the texts that could not be written again."""
    found: Oddities = []
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
            found.append((path, "this is not a finite number"))
    return found


def _broken(text: str) -> bool:
    """Return whether a text contains half of a surrogate pair."""
    return re.search("[\ud800-\udfff]", text) is not None


def _file_error(file: str, what: str, found: Oddities) -> CertificateError:
    """Return the error for a file with several problems."""
    problems = [Problem(CertificateError.slug, message, path, file) for path, message in found[:MOST_SHOWN]]
    lines = [f"{printable(file)}: {problem.path_text}: {problem.message}" for problem in problems]
    if len(found) > MOST_SHOWN:
        lines.append(f"{printable(file)}: and {len(found) - MOST_SHOWN} more")
    return CertificateError("\n".join([f"not {what}:", *lines]), problems)


def typed(model: type[Model], raw: dict[str, Any], file: str, what: str) -> Model:
    """Return the object of a file as this model. Raises `CertificateError` with every field that does not fit."""
    try:
        return model.model_validate(raw, strict=True)
    except ValidationError as error:
        found: Oddities = [(one["loc"], one["msg"]) for one in error.errors(include_url=False, include_input=False)]
        raise _file_error(file, what, found) from error


def refused(
    file: str, message: str, path: Place = (), place: tuple[int | None, int | None] = (None, None)
) -> CertificateError:
    """Return the error for a file with one problem."""
    problem = Problem(CertificateError.slug, message, path, file, *place)
    where = ":".join(str(part) for part in (printable(file), *place) if part is not None)
    return CertificateError(f"{where}: {path_text(path)}{': ' if path else ''}{message}", [problem])

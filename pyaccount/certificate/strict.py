"""JSON read strictly: what a lenient reader would overlook is an error with its place.

Keys given twice (of which other readers may take the other one), numbers that JSON does not have, text that cannot be
written out again, and more levels than anything here has are all refused. `what` is what messages say that a file is not.
"""

from __future__ import annotations

import json
import math
import re
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyaccount.errors import CertificateError, Problem, path_text, printable, shown
from pyaccount.errors import Path as Place

#: A certificate holds its document, which has at most 50 levels, and few of its own.
DEEPEST = 64
#: Of the problems of one file, so many are told.
MOST_SHOWN = 20
#: No double is as large as an integer of so many digits, and Python takes quadratic time for them.
_LONGEST_INTEGER = 400

Oddities = list[tuple[Place, str]]


def bytes_of(file: str, what: str, largest: int) -> bytes:
    """The bytes of a regular file of at most a size. Raises `CertificateError`."""
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
        # ValueError: a name with a null character.
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise refused(file, f"cannot be read: {reason or error}") from error
    if len(data) > largest:
        raise refused(file, f"{what} has at most {largest:_} bytes")
    return data


def object_of(
    data: bytes, file: str, what: str, taken_for: Callable[[str, str], str | None] | None = None
) -> dict[str, Any]:
    """The object that a JSON text holds; `taken_for` says of a text that is no JSON what it may be. Raises `CertificateError`."""
    raw = _json(data, file, what, taken_for)
    if not isinstance(raw, dict):
        raise refused(file, f"not {what}: an object is expected, not {shown(raw)}")
    found = list(_oddities(raw))
    if found:
        raise refusal(file, what, found)
    return raw


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
    """An integer that is a finite number as a double too: whatever is computed with it starts with that."""
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
    """What JSON readers let pass, and what could not be written out again."""
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
            found.append((path, "this is no finite number"))
    return found


def _broken(text: str) -> bool:
    """Whether a text holds half of a surrogate pair."""
    return re.search("[\ud800-\udfff]", text) is not None


def refusal(file: str, what: str, found: Oddities) -> CertificateError:
    """The error of a file that is wrong in several places."""
    problems = [Problem(CertificateError.slug, message, path, file) for path, message in found[:MOST_SHOWN]]
    lines = [f"{printable(file)}: {problem.path_text}: {problem.message}" for problem in problems]
    if len(found) > MOST_SHOWN:
        lines.append(f"{printable(file)}: and {len(found) - MOST_SHOWN} more")
    return CertificateError("\n".join([f"not {what}:", *lines]), problems)


def refused(
    file: str, message: str, path: Place = (), place: tuple[int | None, int | None] = (None, None)
) -> CertificateError:
    """The error of a file that is wrong, for one reason."""
    problem = Problem(CertificateError.slug, message, path, file, *place)
    where = ":".join(str(part) for part in (printable(file), *place) if part is not None)
    return CertificateError(f"{where}: {path_text(path)}{': ' if path else ''}{message}", [problem])

"""An inconsistency of a certificate, and reading documents that may have any shape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

SOLVE = "solve"


@dataclass(frozen=True, slots=True)
class Inconsistency:
    """Something that does not fit, where, and why."""

    path: str
    message: str


def at(value: object, *path: str, default: object = None) -> Any:
    """What stands at a path of a mapping that may have any shape."""
    for part in path:
        if not isinstance(value, dict) or part not in value:
            return default
        value = value[part]
    return value


def is_number(value: object) -> bool:
    """Whether a value of a document is a number."""
    # An integer that no double holds is no number of a document.
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= 1e300

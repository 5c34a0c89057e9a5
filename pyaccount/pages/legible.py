"""Texts that can be shown: what a page is about may be a stranger's, and every printer begins with this.

A name may hold what moves the cursor, clears a terminal or turns the direction of reading.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from pyaccount.errors import printable
from pyaccount.pages.page import Code

Part = TypeVar("Part")


def legible(part: Part) -> Part:
    """Return a page, or a part of one, with every text in it printable; lines of code stay lines."""
    shown: Any = _legible(part)
    result: Part = shown
    return result


def _legible(part: Any) -> Any:
    if isinstance(part, str):
        return printable(part)
    if isinstance(part, Code):
        return Code("\n".join(map(printable, part.text.split("\n"))), part.language)
    if isinstance(part, tuple):
        return tuple(map(_legible, part))
    if isinstance(part, Mapping):
        return {key: _legible(value) for key, value in part.items()}
    if is_dataclass(part) and not isinstance(part, type):
        return replace(part, **{field.name: _legible(getattr(part, field.name)) for field in fields(part)})
    return part

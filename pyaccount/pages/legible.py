"""Makes texts safe to show. Texts on a page may come from others, so every printer begins with this.

A name may contain characters that move the cursor, clear a terminal or reverse the reading direction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from pyaccount.errors import printable
from pyaccount.pages.page import Code

Part = TypeVar("Part")


def legible(part: Part) -> Part:
    """Return a page, or a part of one, with every text printable; code keeps its line breaks."""
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

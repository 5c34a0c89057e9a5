"""A record whose texts can be shown: certificates, comparisons and runs may be a stranger's, and every printer begins with this.

A name may hold what moves the cursor, clears a terminal or turns the direction of reading. JSON is data, and is left as it is.
"""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel

from pyaccount.errors import printable

Model = TypeVar("Model", bound=BaseModel)


def legible(record: Model) -> Model:
    """Return the record with every text in it printable, keys of mappings included; itself where they are all so already.

    It is for people to read, and for no comparison: two texts may become the same.
    """
    changed = {
        name: shown for name in type(record).model_fields if (shown := _shown(old := getattr(record, name))) is not old
    }
    return record.model_copy(update=changed) if changed else record


def _shown(value: Any) -> Any:
    """A value of a record; the very same object where nothing in it had to be changed."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, BaseModel):
        return legible(value)
    if isinstance(value, dict):
        items = {_shown(key): _shown(item) for key, item in value.items()}
        return value if _same(items, value) and _same(items.values(), value.values()) else items
    if isinstance(value, list | tuple):
        entries = [_shown(item) for item in value]
        return value if _same(entries, value) else type(value)(entries)
    return value


def _same(shown: Any, values: Any) -> bool:
    return len(shown) == len(values) and all(one is other for one, other in zip(shown, values, strict=True))

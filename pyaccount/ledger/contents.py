"""What the rows of a ledger contain: makes objects of their columns, and refuses what no command writes.

Somebody may have changed a row. Every function raises one of `UNREADABLE` for a row that became something else: the types that
its class states, the names that it repeats from its columns, and the forms of its costs are checked. `LedgerRows` makes of this
an error with the place of the row.
"""

from __future__ import annotations

import json
import math
import types
from collections.abc import Callable
from dataclasses import is_dataclass
from functools import lru_cache
from typing import Any, Literal, NoReturn, Union, get_args, get_origin, get_type_hints

from pyaccount.ledger.events import KINDS, Event, Head, hash_of, moment_of, spelled, subject
from pyaccount.ledger.state import BlockState, EntryCost, EntryPlace, KeptDataSet, LedgerEntry


def has_shape(value: object, hint: Any) -> bool:
    """Return whether a value has the type of a hint, throughout. Numbers are finite, and truth values are no numbers.

    Hints are plain types, dataclasses, `Literal`, unions, `tuple[X, ...]` and `dict[str, X]`.
    """
    return _shape(hint)(value)


@lru_cache(maxsize=256)
def _shape(hint: Any) -> Callable[[Any], bool]:  # noqa: PLR0911 - one for each form of a type
    arguments = get_args(hint)
    match get_origin(hint):
        case None if is_dataclass(hint):
            assert isinstance(hint, type)
            fields = {name: _shape(one) for name, one in get_type_hints(hint).items()}
            return lambda value: (
                type(value) is hint and all(fits(getattr(value, name)) for name, fits in fields.items())
            )
        case None if hint is float:
            return lambda value: type(value) in (int, float) and math.isfinite(value)
        case None:
            exact = type(None) if hint is None else hint
            return lambda value: type(value) is exact
        case origin if origin is Literal:
            return lambda value: type(value) is str and value in arguments
        case origin if origin in (types.UnionType, Union):
            options = [_shape(one) for one in arguments]
            return lambda value: any(fits(value) for fits in options)
        case origin if origin is tuple:
            item = _shape(arguments[0])
            return lambda value: type(value) is tuple and all(map(item, value))
        case origin if origin is dict:
            key, below = map(_shape, arguments)
            return lambda value: type(value) is dict and all(key(name) and below(one) for name, one in value.items())
    raise AssertionError(f"no row has the type {hint}")


def parsed(content: object) -> Any:
    """Return the plain data of a text. Raises `TypeError` for another type, and `ValueError` for what is not JSON."""
    if not isinstance(content, str):
        raise TypeError("the content of a row is a text")
    return json.loads(content, parse_constant=_no_number)


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number of JSON")


def head_of(sequence: Any, time: Any, hash_: Any) -> Head:
    """Return the end of the chain from the columns of `head`."""
    _fits(type(sequence) is int and sequence >= 0 and _is_hash(hash_))
    _fits(spelled(moment_of(time)) == time if sequence else time == "")
    return Head(sequence, time, hash_)


def event_of(columns: Event, data_set: object, content: Any) -> Event:
    """Return an event with its content; `columns` has everything else, and `data_set` is the column for look-ups."""
    _fits(type(columns.sequence) is int and columns.kind in KINDS)
    _fits(_is_hash(columns.previous) and _is_hash(columns.hash) and spelled(moment_of(columns.time)) == columns.time)
    _fits(isinstance(content, dict) and subject(content) == data_set)
    # An amendment is the only event that is not about a data set.
    amended = columns.kind == "clock-amended"
    _fits(amended == (data_set == ""))
    _fits(not amended or (has_shape(content, dict[str, str]) and content.keys() == {"amended_from", "reason"}))
    return columns._replace(content=content)


def _is_hash(value: object) -> bool:
    return isinstance(value, str) and len(value) == len(Head().hash)


def kept_of(name: str, content: Any) -> KeptDataSet:
    """Return the data set of this name."""
    kept = KeptDataSet.of(content)
    _fits(has_shape(kept, KeptDataSet) and kept.data_set.name == name and kept.to_mapping() == content)
    # Reads the filters.
    _fits(kept.filters is not None)
    return kept


def block_of(data_set: str, name: str, filters: dict[str, EntryCost], content: Any) -> BlockState:
    """Return a block of a data set; `filters` has the cost of nothing in each of its filters."""
    block = BlockState.of(content)
    # A key that is missing would have its default.
    _fits(has_shape(block, BlockState) and block.to_mapping() == content)
    _fits((block.data_set, block.name) == (data_set, name))
    _fits({name: len(one.spent) for name, one in block.accounts.items()} == {k: len(v) for k, v in filters.items()})
    return block


def entry_of(identity: Any, content: Any) -> LedgerEntry:
    """Return the entry with this identifier."""
    entry = LedgerEntry.of(content)
    _fits(has_shape(entry, LedgerEntry) and entry.to_mapping() == content)
    _fits(entry.id == identity and bool(entry.places))
    return entry


def counts_in(place: EntryPlace, filters: dict[str, EntryCost]) -> bool:
    """Return whether a place names no filter, or one of the data set, with a cost of its form."""
    if place.filter is None:
        return True
    return place.filter in filters and len(place.cost) == len(filters[place.filter])


def phases_of(entry: LedgerEntry, content: Any) -> list[dict[str, Any]]:
    """Return the phases of an entry, which are those that were reserved."""
    _fits(isinstance(content, list) and hash_of(content) == entry.phases_sha256)
    return list(content)


def _fits(holds: bool) -> None:
    if not holds:
        raise ValueError("the row has other values than a command writes")

"""Checks that what was read from a row has the types that its class states: somebody may have changed the row."""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from dataclasses import is_dataclass
from functools import lru_cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints


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

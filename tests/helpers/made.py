"""Recipes of mechanisms of the core, for tests."""

from collections.abc import Iterable
from typing import Any

from pyaccount.profiles.base import Recipe


def sampled(constructor: str, *arguments: Any) -> Recipe[Any]:
    """Return the recipe of a mechanism that can be sampled; lists become tuples, as recipes require."""
    return Recipe(f"Sampled.{constructor}", tuple(_whole(one) for one in arguments))


def _whole(value: Any) -> Any:
    return tuple(_whole(one) for one in value) if isinstance(value, Iterable) and not isinstance(value, str) else value

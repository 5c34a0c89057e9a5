"""Recipes for objects of the core, which can be sent to another process and compared by a fingerprint."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from operator import attrgetter
from typing import Generic, TypeVar

from pyaccount import _core
from pyaccount.forks import cached_property

Made = TypeVar("Made")


@dataclass(frozen=True)
class Recipe(Generic[Made]):
    """An object of the core: the name of its constructor in the core, and the arguments, which may be recipes too.

    Equal recipes make objects that give the same numbers, bit for bit. Pickling stores the recipe, not the object.
    """

    constructor: str
    arguments: tuple[object, ...]

    @cached_property
    def core(self) -> Made:
        """Return the object; it is made on first use and kept."""
        made: Made = attrgetter(self.constructor)(_core)(*(_made(argument) for argument in self.arguments))
        return made

    @cached_property
    def fingerprint(self) -> str:
        """Return the SHA-256 of the constructor and the arguments, with every bit of every number."""
        return fingerprint(self.constructor, self.arguments)

    def __getstate__(self) -> dict[str, object]:
        return {"constructor": self.constructor, "arguments": self.arguments}


def fingerprint(*values: object) -> str:
    """Return the SHA-256 of numbers, words, tuples and recipes, which is the same in every process.

    Raises `TypeError` for anything else.
    """
    digest = hashlib.sha256()
    for text in _spelled(values):
        digest.update(text.encode())
    return digest.hexdigest()


def _made(argument: object) -> object:
    if isinstance(argument, Recipe):
        return argument.core
    if isinstance(argument, tuple) and not all(isinstance(item, float) for item in argument):
        return tuple(_made(item) for item in argument)
    return argument


def _spelled(value: object) -> list[str]:
    """Return unambiguous text for a value, in pieces."""
    match value:
        case Recipe():
            return [f"<{value.fingerprint}>"]
        case tuple() | list():
            return ["(", *(text for item in value for text in _spelled(item)), ")"]
        case bool() | None:
            return [f"{value};"]
        case float():
            return [f"{value.hex()};"]
        case int():
            return [f"{value};"]
        case str():
            return [f"{len(value)}:{value};"]
    raise TypeError(f"{type(value).__name__} has no fingerprint")

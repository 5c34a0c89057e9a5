"""Recipes for objects of the core, which can be sent to another process."""

from __future__ import annotations

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

    def __getstate__(self) -> dict[str, object]:
        return {"constructor": self.constructor, "arguments": self.arguments}


def _made(argument: object) -> object:
    if isinstance(argument, Recipe):
        return argument.core
    if isinstance(argument, tuple) and not all(isinstance(item, float) for item in argument):
        return tuple(_made(item) for item in argument)
    return argument

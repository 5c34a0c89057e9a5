"""The base class of profiles, rounds of one profile, and recipes for objects of the core, sent to another process as data."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import attrgetter
from typing import ClassVar, Generic, NamedTuple, Self, TypeVar

from pyaccount import _core
from pyaccount.forks import cached_property


class Graded(NamedTuple):
    """The size, the rate and the noise of a round that is no more private with more of the first two and less noise."""

    size: float
    rate: float
    noise: float


class ProfileKind:
    """A profile of the core. Subclasses are frozen data classes, whose fields are its constructor's arguments, by their names."""

    __slots__ = ()

    #: The name of the core's constructor. It is that of the class, in the core's spelling, unless the class says another one.
    constructor: ClassVar[str]
    #: What a mechanism with such a profile is called in messages; None if it is called by its sampler.
    called: ClassVar[str | None] = None
    #: Why a Rényi divergence may not be known, for the end of a message; empty if there is no reason to give.
    without_divergence: ClassVar[str] = ""
    #: Whether the profile is that of losses. If not, it follows from divergences, and nothing is known of single losses.
    has_losses: ClassVar[bool] = True
    #: Whether the composition of such rounds is again a profile of this class, in closed form.
    closed: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        if "constructor" not in vars(cls):
            cls.constructor = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__.removesuffix("Profile")).lower()

    def _made(self) -> _core.RoundProfile:
        """Return the core's profile, newly made from the fields."""
        made: Callable[..., _core.RoundProfile] = getattr(_core.RoundProfile, self.constructor)
        values = {name: getattr(self, name) for name in type(self).__match_args__}  # type: ignore[attr-defined]
        return made(**{k: one.build() if isinstance(one, ProfileKind) else one for k, one in values.items()})

    def build(self) -> _core.RoundProfile:
        """Return the profile, made by the core."""
        return _built(self)

    def reversed(self) -> ProfileKind | None:
        """Return the profile of the pair (Q, P), for that of (P, Q); None if it is not known.

        Whether a pair is its own reversal, and whether it has one, the core says. A pair whose directions differ has the field
        `reverse`.
        """
        profile = self.build()
        if profile.symmetric:
            return self
        turned = self.turned()
        return None if turned is self or profile.reversed() is None else turned

    def turned(self) -> Self:
        """Return the profile with the other value of `reverse`; itself if it has no such field."""
        if "reverse" not in type(self).__match_args__:  # type: ignore[attr-defined] # data classes have it
            return self
        return replace(self, reverse=not self.reverse)  # type: ignore[attr-defined,type-var]

    def flat(self) -> Iterator[tuple[ProfileKind, int]]:
        """Yield the profiles that this one is composed of, with the number of rounds of each; most are one round."""
        yield self, 1

    def graded(self) -> Graded | None:
        """Return the size, the rate and the noise, if rounds that differ in rate and noise may be bounded by one of them."""
        return None

    def regraded(self, rate: float, noise: float) -> ProfileKind:
        """Return the profile with another rate and noise. The rate of a profile without sampling stays 1."""
        raise NotImplementedError

    def order(self) -> tuple[object, ...]:
        """Return the key by which profiles are sorted: the name of the constructor, then the fields."""
        return (self.constructor, *(getattr(self, name) for name in type(self).__match_args__))  # type: ignore[attr-defined]

    def __lt__(self, other: ProfileKind) -> bool:
        return self.order() < other.order()


#: As many are kept as long schedules have kinds of rounds: an engine asks for each of them several times.
@lru_cache(maxsize=2**15)
def _built(profile: ProfileKind) -> _core.RoundProfile:
    return profile._made()


@dataclass(frozen=True, slots=True)
class Rounds:
    """`count` rounds with the same profile."""

    profile: ProfileKind
    count: int


def counted(rounds: Iterable[Rounds]) -> tuple[Rounds, ...]:
    """Return the rounds in a fixed order, with equal ones counted together."""
    counts: dict[ProfileKind, int] = {}
    for item in rounds:
        counts[item.profile] = counts.get(item.profile, 0) + item.count
    return tuple(Rounds(profile, counts[profile]) for profile in sorted(counts, key=lambda one: one.order()))


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

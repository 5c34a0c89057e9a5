"""Profiles of what is done with other mechanisms: composed, run on a sample, run sometimes, the best of several runs.

Further a record that is shown beside them, and the worst of several.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from pyaccount import _core
from pyaccount.profiles.base import ProfileKind, Rounds


@dataclass(frozen=True, slots=True)
class CompositionProfile(ProfileKind):
    """The composition of rounds, bounded from above, or from below."""

    constructor: ClassVar[str] = "composed"

    rounds: tuple[tuple[ProfileKind, int], ...]
    below: bool

    @classmethod
    def of(cls, rounds: tuple[Rounds, ...], *, below: bool) -> CompositionProfile:
        """Return the composition of these rounds."""
        return cls(tuple((item.profile, item.count) for item in rounds), below)

    def _made(self) -> _core.RoundProfile:
        return _core.RoundProfile.composed([(one.build(), count) for one, count in self.rounds], below=self.below)

    def reversed(self) -> CompositionProfile | None:
        """Return the composition of the reversed rounds; None if one of them has no known reversal."""
        reversals = [(one.reversed(), count) for one, count in self.rounds]
        known = tuple((one, count) for one, count in reversals if one is not None)
        return replace(self, rounds=known) if len(known) == len(reversals) else None

    def flat(self) -> Iterator[tuple[ProfileKind, int]]:
        """Yield the profiles inside, at any depth, with the number of rounds of each."""
        for one, count in self.rounds:
            yield from ((inner, count * more) for inner, more in one.flat())


class _OfOne(ProfileKind):
    """A profile that is made of one other."""

    __slots__ = ()

    inner: ProfileKind

    def reversed(self) -> ProfileKind | None:
        """Return the profile of the reversed pair, which is reversed inside and outside."""
        inner = self.inner.reversed()
        if inner is None:
            return super().reversed()
        return replace(self.turned(), inner=inner)  # type: ignore[type-var]


@dataclass(frozen=True, slots=True)
class SubsampledProfile(_OfOne):
    """(1 − q)Q + qP against Q, for the profile of P against Q; `reverse` is the direction add."""

    inner: ProfileKind
    probability: float
    reverse: bool


@dataclass(frozen=True, slots=True)
class SometimesProfile(_OfOne):
    """The profile of a mechanism that is run with a probability, where the output shows whether it was run."""

    inner: ProfileKind
    probability: float


@dataclass(frozen=True, slots=True)
class ShownProfile(_OfOne):
    """A pair beside an outcome that shows the record with a probability; `reverse` is the direction add."""

    called: ClassVar[str | None] = "a release that may show the record, such as partition selection"
    without_divergence: ClassVar[str] = ": what shows the record has an infinite one"

    inner: ProfileKind
    probability: float
    reverse: bool


@dataclass(frozen=True, slots=True)
class WorstProfile(ProfileKind):
    """The largest of several profiles, of which it is not known which one is that of the data sets."""

    called: ClassVar[str | None] = "partition selection"
    without_divergence: ClassVar[str] = ": a partition that only the record has makes it infinite"

    profiles: tuple[ProfileKind, ...]

    def _made(self) -> _core.RoundProfile:
        return _core.RoundProfile.worst([one.build() for one in self.profiles])

    def reversed(self) -> WorstProfile | None:
        """Return the largest of the profiles of the reversed pairs; None if one of them is not known."""
        reversals = [one.reversed() for one in self.profiles]
        known = tuple(one for one in reversals if one is not None)
        return WorstProfile(known) if len(known) == len(reversals) else None


@dataclass(frozen=True, slots=True)
class SelectionProfile(ProfileKind):
    """The best of a random number of runs, from upper bounds on one run in each direction."""

    called: ClassVar[str | None] = "the best of a random number of runs"

    inner_remove: ProfileKind
    inner_add: ProfileKind
    law: str
    parameters: tuple[float, ...]
    reverse: bool

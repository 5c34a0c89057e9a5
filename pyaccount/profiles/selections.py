"""Profiles of selections with a bounded range of losses, such as the exponential mechanism."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pyaccount import _core
from pyaccount.profiles.base import ProfileKind, Rounds, counted


@dataclass(frozen=True, slots=True)
class ExponentialProfile(ProfileKind):
    """The worst pair of laws whose losses lie in an interval of this length."""

    constructor: ClassVar[str] = "exponential"
    called: ClassVar[str | None] = "a selection of bounded range"

    range: float


@dataclass(frozen=True, slots=True)
class ExponentialRunsProfile(ProfileKind):
    """The worst of several such runs, each of which may depend on the earlier ones."""

    constructor: ClassVar[str] = "exponential_runs"
    called: ClassVar[str | None] = "selections of bounded range"

    range: float
    runs: int


def in_blocks(rounds: tuple[Rounds, ...]) -> tuple[Rounds, ...]:
    """Return the rounds with mechanisms of one bounded range in blocks of as many runs as the core bounds together.

    The profile of a block of k runs is the supremum over all choices of the two-point losses of each run, which may depend on
    what was released before. Composed with all other rounds, blocks of the same and of other ranges among them, it bounds the
    runs in any order with them; the proof is at the head of `rust/core/src/pair/exponential_runs.rs`. The composition of k
    single runs bounds them too, but loosely, because no choice is the worst for every ε at once.
    """
    runs: dict[float, int] = {}
    rest = []
    for item in rounds:
        match item.profile:
            case ExponentialProfile(bound):
                runs[bound] = runs.get(bound, 0) + item.count
            case ExponentialRunsProfile(bound, each):
                runs[bound] = runs.get(bound, 0) + each * item.count
            case _:
                rest.append(item)
    if not any(count > 1 for count in runs.values()):
        return rounds
    for bound, count in runs.items():
        most = _core.most_exponential_runs(bound)
        whole, left = divmod(count, most)
        rest += [
            Rounds(ExponentialProfile(bound) if each == 1 else ExponentialRunsProfile(bound, each), number)
            for each, number in ((most, whole), (left, 1))
            if number * each
        ]
    return counted(rest)

"""Rounds that the core can compose, as data, and their largest privacy loss.

`Bounds` holds, for each direction, the rounds whose composition bounds the mechanism from above, and the rounds of a concrete
pair of data sets that bounds it from below. The two are the same if the theorem is tight.

If records are of several kinds, such as those of disjoint parts, each kind has a composition of its own, and the guarantee is
the worst of them. `worst_of` packs them into one `Bounds` for each direction, and `alternatives_of` unpacks them. Nothing is
composed with the maximum of profiles: `combine` composes each kind with everything else, and the maximum is taken last.

**The largest loss** is computed without rounding: it is the ε at δ = 0.
Lap(0, b) against Lap(s, b) has the losses (|y − s| − |y|)/b. They are at most s/b, with equality for every y ≤ 0: half of the
outcomes. So n_i independent rounds of each kind lose at most S = Σ n_i s_i/b_i together, and exactly S with a positive
probability: δ(ε) = E[(1 − e^{ε − ΣL})_+] is 0 for ε ≥ S and positive below, and the smallest ε at δ = 0 is S. This is the
composition of pure differential privacy (Dwork, McSherry, Nissim & Smith 2006), and its bound is attained.

The same holds for other rounds with a largest loss. What it is, the profile of the core says, in its direction. If records are
of several kinds, the largest loss of the worst kind is the smallest ε at δ = 0 for all of them.

S is summed in fractions, without rounding. Numbers are taken as the decimals that documents and certificates show: 0.3 is
3/10, not the double nearest to it. So three releases of scale 10 are exactly (0.3, 0)-differentially private. The decimal is
within half a unit in the last place of the double.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import chain, product
from typing import Any, ClassVar, NamedTuple

from pyaccount import _core
from pyaccount.directions import DIRECTIONS, Direction
from pyaccount.profiles import CompositionProfile, ProfileKind, Rounds, added, counted, in_blocks, merged
from pyaccount.rounding import decimal_beside


@dataclass(frozen=True, slots=True)
class Bounds:
    """The rounds that bound a mechanism in one direction, from above and from below."""

    upper: tuple[Rounds, ...]
    lower: tuple[Rounds, ...]
    #: If the laws in `upper` lie above the theorem's: laws below the theorem's. None if `upper` are exactly the theorem's rounds.
    inner: tuple[Rounds, ...] | None = None
    #: The number of kinds of rounds before nearly alike ones were bounded by one of them (`pyaccount.plan.alike`); None if none
    #: were. Then `upper` are laws above the original rounds, and `lower` and `inner` are laws below them.
    kinds: int | None = None


DirectedBounds = dict[Direction, Bounds]


@dataclass(frozen=True, slots=True)
class Alternative:
    """The rounds for one kind of record, such as those of one part, with everything else that the record takes part in."""

    name: str
    bounds: DirectedBounds


@dataclass(frozen=True, slots=True)
class _WorstOf(ProfileKind):
    """Stands for the worst of several compositions; the core has no such profile."""

    constructor: ClassVar[str] = "worst"

    of: tuple[tuple[Rounds, ...], ...]

    def _made(self) -> _core.RoundProfile:
        raise NotImplementedError("several compositions are no profile: `compositions` returns them")


@dataclass(frozen=True, slots=True)
class _EitherOf(_WorstOf):
    """Stands for the least of several compositions, each of which bounds the mechanism from above."""

    constructor: ClassVar[str] = "either"


def compositions(rounds: tuple[Rounds, ...]) -> tuple[tuple[Rounds, ...], ...]:
    """Return the compositions that are meant by `rounds`: the rounds themselves, unless they stand for several.

    `chosen` says which of their numbers counts.
    """
    if len(rounds) == 1 and isinstance(rounds[0].profile, _WorstOf):
        return rounds[0].profile.of
    return (rounds,)


def chosen(rounds: tuple[Rounds, ...]) -> Callable[..., Any]:
    """Return how the number of `rounds` follows from those of their compositions: `max` for the worst of them, else `min`."""
    return min if len(rounds) == 1 and isinstance(rounds[0].profile, _EitherOf) else max


def either_of(upper: Sequence[tuple[Rounds, ...]]) -> tuple[Rounds, ...]:
    """Return rounds that stand for the least of several compositions, each of which bounds a mechanism from above."""
    return (Rounds(_EitherOf(tuple(upper)), 1),)


def best_of(lower: Sequence[tuple[Rounds, ...]]) -> tuple[Rounds, ...]:
    """Return rounds that stand for the largest of several compositions, each of which bounds a mechanism from below."""
    return _packed(lower)


def alternatives_of(bounds: DirectedBounds) -> tuple[DirectedBounds, ...]:
    """Return the bounds for each kind of record, in one order for both directions; usually there is one kind."""
    split = {
        direction: (
            compositions(one.upper),
            compositions(one.lower),
            None if one.inner is None else compositions(one.inner),
        )
        for direction, one in bounds.items()
    }
    count = max(len(upper) for upper, _, _ in split.values())
    if count == 1:
        return (bounds,)
    return tuple(
        {
            direction: Bounds(upper[index], lower[index], None if inner is None else inner[index])
            for direction, (upper, lower, inner) in split.items()
        }
        for index in range(count)
    )


def worst_of(alternatives: Sequence[DirectedBounds]) -> DirectedBounds:
    """Return the bounds of the worst of several kinds of records; equal kinds count once.

    The profile is the maximum of those of the kinds: every pair of neighbouring data sets differs in records of one kind,
    and is bounded by the profile of this kind. The lower end is the maximum too, since each kind has data sets of its own.
    """
    distinct: list[DirectedBounds] = []
    for one in (kind for bounds in alternatives for kind in alternatives_of(bounds)):
        if one not in distinct:
            distinct.append(one)
    if len(distinct) == 1:
        return distinct[0]
    worst: DirectedBounds = {}
    for direction in DIRECTIONS:
        sides = [one[direction] for one in distinct]
        inner = None
        if any(side.inner is not None for side in sides):
            inner = _packed([side.inner or side.upper for side in sides])
        upper = _packed([side.upper for side in sides])
        same = all(side.lower == side.upper for side in sides)
        worst[direction] = Bounds(upper, upper if same else _packed([side.lower for side in sides]), inner)
    return worst


def _packed(sides: Iterable[tuple[Rounds, ...]]) -> tuple[Rounds, ...]:
    """Return one round that stands for the worst of several compositions."""
    return (Rounds(_WorstOf(tuple(sides)), 1),)


def tight(remove: ProfileKind, add: ProfileKind, count: int) -> DirectedBounds:
    """Return bounds whose upper and lower rounds are the same: `count` rounds of one profile for each direction."""
    rounds = {"remove": (Rounds(remove, count),), "add": (Rounds(add, count),)}
    return {direction: Bounds(rounds[direction], rounds[direction]) for direction in DIRECTIONS}


def enclosed(
    upper: tuple[ProfileKind, ProfileKind], lower: tuple[ProfileKind, ProfileKind], count: int
) -> DirectedBounds:
    """Return bounds with separate upper and lower rounds, each given as (remove, add)."""
    return {
        direction: Bounds((Rounds(above, count),), (Rounds(below, count),))
        for direction, above, below in zip(DIRECTIONS, upper, lower, strict=True)
    }


def one_round(rounds: tuple[Rounds, ...], *, below: bool) -> ProfileKind:
    """Return the profile of one run: that of its only round, or the composed one."""
    if not below:
        rounds = in_blocks(rounds)
    if len(rounds) == 1 and rounds[0].count == 1:
        return rounds[0].profile
    return CompositionProfile.of(rounds, below=below)


def reversed_rounds(rounds: tuple[Rounds, ...]) -> tuple[Rounds, ...] | None:
    """Return the rounds of the pair (Q, P), given those of (P, Q); None if they are not known."""
    reversals = [(item.profile.reversed(), item.count) for item in rounds]
    known = [Rounds(profile, count) for profile, count in reversals if profile is not None]
    return counted(known) if len(known) == len(reversals) else None


def combine(parts: Iterable[DirectedBounds], *, merge_gaussians: bool) -> DirectedBounds:
    """Return the bounds of several bodies that run in sequence.

    Equal rounds are counted together, in a fixed order, so that `count: k` and k equal phases are one computation. With
    `merge_gaussians` all Gaussian rounds become one: the composition of Gaussian mechanisms with sensitivities s_i and
    noise σ_i is exactly the Gaussian mechanism with (s/σ)² = Σ (s_i/σ_i)² (Dong, Roth & Su 2022, Corollary 3.3). Bounds on
    Rényi divergences are added before they are converted to one profile. Mechanisms of one bounded range are bounded together
    (`in_blocks`). If records are of several kinds in a body, each kind is combined with everything else.
    """
    bodies = list(parts)
    kinds = [alternatives_of(body) for body in bodies]
    if any(len(of_body) > 1 for of_body in kinds):
        return worst_of([combine(choice, merge_gaussians=merge_gaussians) for choice in product(*kinds)])
    combined: DirectedBounds = {}
    for direction, one in in_turn(bodies).items():
        upper = counted(one.upper)
        lower = upper if one.lower is one.upper else counted(one.lower)
        inner = None if one.inner is None else counted(one.inner)
        upper, inner = in_blocks(added(upper)), None if inner is None else in_blocks(inner)
        if merge_gaussians:
            upper, lower = merged(upper, rounding=1.0), merged(lower, rounding=-1.0)
            inner = None if inner is None else merged(inner, rounding=-1.0)
        combined[direction] = Bounds(upper, lower, inner)
    return combined


def in_turn(bodies: Sequence[DirectedBounds]) -> DirectedBounds:
    """Return the rounds of bodies that run in sequence, all for one kind of record, as they are: nothing is merged."""
    joined: DirectedBounds = {}
    for direction in DIRECTIONS:
        sides = [body[direction] for body in bodies]
        upper = tuple(chain.from_iterable(side.upper for side in sides))
        same = all(side.lower is side.upper for side in sides)
        inner = None
        if any(side.inner is not None for side in sides):
            inner = tuple(chain.from_iterable(side.inner or side.upper for side in sides))
        lower = upper if same else tuple(chain.from_iterable(side.lower for side in sides))
        joined[direction] = Bounds(upper, lower, inner)
    return joined


def repeated(run: DirectedBounds, count: int) -> DirectedBounds:
    """Return `count` runs, from the rounds of one run. A record is of the same kind in all of them."""

    def times(rounds: tuple[Rounds, ...]) -> tuple[Rounds, ...]:
        return tuple(Rounds(item.profile, count * item.count) for item in rounds)

    kinds: list[DirectedBounds] = []
    for one in alternatives_of(run):
        many: DirectedBounds = {}
        for direction, side in one.items():
            upper = times(side.upper)
            lower = upper if side.lower is side.upper else times(side.lower)
            many[direction] = replace(
                side, upper=upper, lower=lower, inner=None if side.inner is None else times(side.inner)
            )
        kinds.append(many)
    return worst_of(kinds)


class LargestLoss(NamedTuple):
    """The doubles next to the largest loss, below and above; they are equal if the loss is the decimal of a double."""

    at_least: float
    at_most: float


@lru_cache(maxsize=256)
def largest_loss(rounds: tuple[Rounds, ...]) -> LargestLoss | None:
    """Return the largest loss of all rounds together, in nats; None if it is unbounded, or not known."""
    kinds = [_sum(of_kind) for of_kind in compositions(rounds)]
    known = [loss for loss in kinds if loss is not None]
    if len(known) < len(kinds):
        return None
    pick = chosen(rounds)
    least, most = pick(loss[0] for loss in known), pick(loss[1] for loss in known)
    try:
        return LargestLoss(decimal_beside(least, -math.inf), decimal_beside(most, math.inf))
    except OverflowError:
        return None


def losses_bounded(bounds: DirectedBounds) -> bool:
    """Return whether the losses of every composition are bounded, so that some ε holds at δ = 0."""
    sides: Iterable[tuple[Rounds, ...]] = (rounds for one in bounds.values() for rounds in (one.upper, one.lower))
    return all(largest_loss(rounds) is not None for rounds in sides)


def _sum(rounds: Iterable[Rounds]) -> tuple[Fraction, Fraction] | None:
    """Return bounds on the sum of the largest losses of rounds; None if one is not known."""
    least = most = Fraction(0)
    for item in rounds:
        loss = item.profile.build().largest_loss()
        if loss is None:
            return None
        least, most = least + item.count * loss[0], most + item.count * loss[1]
    return least, most

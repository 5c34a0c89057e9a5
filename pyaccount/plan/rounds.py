"""Rounds that the core can compose, as data.

`Part` names a profile of the core by its constructor and arguments, so that equal rounds of different phases compare
equal and are counted together. `Bounds` holds, for each direction, the rounds whose composition bounds the mechanism
from above, and the rounds of a concrete pair of data sets that bounds it from below. The two are the same if the
theorem is tight.

If records are of several kinds, such as those of disjoint parts, each kind has a composition of its own, and the guarantee is
the worst of them. `worst_of` packs them into one `Bounds` for each direction, and `alternatives_of` unpacks them. Nothing is
composed with the maximum of profiles: `combine` composes each kind with everything else, and the maximum is taken last.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, product
from typing import TypeGuard

from pyaccount import _core
from pyaccount.directions import DIRECTIONS, Direction


@dataclass(frozen=True, slots=True, order=True)
class Part:
    """A profile of the core: the name of its constructor, positional arguments and keyword arguments.

    An argument may be another profile, or a profile with the number of its rounds.
    """

    constructor: str
    arguments: tuple[float | str | tuple[float, ...] | tuple[tuple[float, ...], ...] | Part | tuple[Part, int], ...]
    options: tuple[tuple[str, bool | float], ...] = ()

    def build(self) -> _core.RoundProfile:
        """Return the profile, made by the core."""
        return _profile(self)

    def reversed(self) -> Part | None:
        """Return the profile of the pair (Q, P), for that of (P, Q); None if it is not known.

        A pair whose directions differ has the option `reverse`, and a profile that is made of one other reverses both. Whether
        a pair is its own reversal, and whether it has one, the core says.
        """
        inner = [value for value in self.arguments if isinstance(value, Part)]
        if self.constructor == "composed":
            counted = [(one[0].reversed(), one[1]) for one in self.arguments if _is_counted(one)]
            known = tuple((part, count) for part, count in counted if part is not None)
            return replace(self, arguments=known) if len(known) == len(counted) else None
        if len(inner) == 1 and (other := inner[0].reversed()) is not None:
            within = tuple(other if isinstance(value, Part) else value for value in self.arguments)
            return replace(self, arguments=within, options=_flipped(self.options))
        profile = self.build()
        if profile.symmetric:
            return self
        return replace(self, options=_flipped(self.options)) if profile.reversed() is not None else None


#: As many are kept as long schedules have kinds of rounds: an engine asks for each of them several times.
@lru_cache(maxsize=2**15)
def _profile(part: Part) -> _core.RoundProfile:
    constructor: Callable[..., _core.RoundProfile] = getattr(_core.RoundProfile, part.constructor)
    if part.constructor == "composed":
        return constructor([_built(value) for value in part.arguments], **dict(part.options))
    return constructor(*map(_built, part.arguments), **dict(part.options))


def _flipped(options: tuple[tuple[str, bool | float], ...]) -> tuple[tuple[str, bool | float], ...]:
    """Return the options of the other direction."""
    return tuple((name, not value if name == "reverse" else value) for name, value in options)


def _built(value: object) -> object:
    """Return an argument with the profiles in it made by the core."""
    if isinstance(value, Part):
        return value.build()
    if isinstance(value, tuple) and value and isinstance(value[0], Part):
        return (value[0].build(), *value[1:])
    return value


@dataclass(frozen=True, slots=True)
class Rounds:
    """`count` rounds with the same profile."""

    part: Part
    count: int


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


#: The constructor of a part that stands for the worst of several compositions. The core never makes it.
_WORST = "worst"


def compositions(rounds: tuple[Rounds, ...]) -> tuple[tuple[Rounds, ...], ...]:
    """Return the compositions whose worst is meant by `rounds`: the rounds themselves, unless `worst_of` made them."""
    if len(rounds) != 1 or rounds[0].part.constructor != _WORST:
        return (rounds,)
    return tuple(
        tuple(Rounds(item[0], item[1]) for item in one.arguments if _is_counted(item))
        for one in rounds[0].part.arguments
        if isinstance(one, Part)
    )


def _is_counted(argument: object) -> TypeGuard[tuple[Part, int]]:
    return isinstance(argument, tuple) and bool(argument) and isinstance(argument[0], Part)


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
    parts = (Part("composed", tuple((item.part, item.count) for item in rounds)) for rounds in sides)
    return (Rounds(Part(_WORST, tuple(parts)), 1),)


def tight(remove: Part, add: Part, count: int) -> DirectedBounds:
    """Return bounds whose upper and lower rounds are the same: `count` rounds of one profile for each direction."""
    rounds = {"remove": (Rounds(remove, count),), "add": (Rounds(add, count),)}
    return {direction: Bounds(rounds[direction], rounds[direction]) for direction in DIRECTIONS}


def enclosed(upper: tuple[Part, Part], lower: tuple[Part, Part], count: int) -> DirectedBounds:
    """Return bounds with separate upper and lower rounds, each given as (remove, add)."""
    return {
        direction: Bounds((Rounds(above, count),), (Rounds(below, count),))
        for direction, above, below in zip(DIRECTIONS, upper, lower, strict=True)
    }


def one_round(rounds: tuple[Rounds, ...], *, below: bool) -> Part:
    """Return the profile of one run: that of its only round, or the composed one."""
    if not below:
        rounds = in_blocks(rounds)
    if len(rounds) == 1 and rounds[0].count == 1:
        return rounds[0].part
    return Part("composed", tuple((item.part, item.count) for item in rounds), (("below", below),))


def gaussian(sensitivity: float, noise_multiplier: float) -> Part:
    """Return the Gaussian mechanism with this sensitivity and noise multiplier, both in units of the clip norm."""
    return Part("gaussian", (sensitivity, noise_multiplier))


def reversed_rounds(rounds: tuple[Rounds, ...]) -> tuple[Rounds, ...] | None:
    """Return the rounds of the pair (Q, P), given those of (P, Q); None if they are not known."""
    reversals = [(item.part.reversed(), item.count) for item in rounds]
    known = [Rounds(part, count) for part, count in reversals if part is not None]
    return counted_rounds(known) if len(known) == len(reversals) else None


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
        upper = counted_rounds(one.upper)
        lower = upper if one.lower is one.upper else counted_rounds(one.lower)
        inner = None if one.inner is None else counted_rounds(one.inner)
        upper, inner = in_blocks(_added(upper)), None if inner is None else in_blocks(inner)
        if merge_gaussians:
            upper, lower = _merged(upper, rounding=1.0), _merged(lower, rounding=-1.0)
            inner = None if inner is None else _merged(inner, rounding=-1.0)
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
        return tuple(Rounds(item.part, count * item.count) for item in rounds)

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


def counted_rounds(rounds: Iterable[Rounds]) -> tuple[Rounds, ...]:
    """Return the rounds in a fixed order, with equal ones counted together."""
    counts: dict[Part, int] = {}
    for item in rounds:
        counts[item.part] = counts.get(item.part, 0) + item.count
    order = sorted(counts, key=lambda part: (part.constructor, part.arguments, part.options))
    return tuple(Rounds(part, counts[part]) for part in order)


def in_blocks(rounds: tuple[Rounds, ...]) -> tuple[Rounds, ...]:
    """Return the rounds with mechanisms of one bounded range in blocks of as many runs as the core bounds together.

    The profile of a block of k runs is the supremum over all choices of the two-point losses of each run, which may depend on
    what was released before. Composed with all other rounds, blocks of the same and of other ranges among them, it bounds the
    runs in any order with them; the proof is at the head of `rust/core/src/pair/exponential_runs.rs`. The composition of k
    single runs bounds them too, but loosely, because no choice is the worst for every ε at once.
    """
    runs: dict[float, int] = {}
    for item in rounds:
        match item.part.constructor, item.part.arguments:
            case "exponential", (int() | float() as bound,):
                runs[bound] = runs.get(bound, 0) + item.count
            case "exponential_runs", (int() | float() as bound, int() | float() as each):
                runs[bound] = runs.get(bound, 0) + int(each) * item.count
    if not any(count > 1 for count in runs.values()):
        return rounds
    rest = [item for item in rounds if item.part.constructor not in ("exponential", "exponential_runs")]
    for bound, count in runs.items():
        most = _core.most_exponential_runs(bound)
        whole, left = divmod(count, most)
        rest += [
            Rounds(_of_bounded_range(bound, each), number)
            for each, number in ((most, whole), (left, 1))
            if number * each
        ]
    return counted_rounds(rest)


def _of_bounded_range(bound: float, runs: int) -> Part:
    """Return the profile of one run, or of several runs together."""
    return Part("exponential", (bound,)) if runs == 1 else Part("exponential_runs", (bound, runs))


def _added(rounds: tuple[Rounds, ...]) -> tuple[Rounds, ...]:
    """Return the rounds with one profile for all that are known by their Rényi divergences.

    The divergence of a composition, adaptive or not, is at most the sum of those of its rounds (Bun & Steinke 2016, Lemma
    2.2; Mironov 2017). If only divergences of some orders are known for a round, the sum is known for the orders that all
    have; rounds without a common order stay separate.
    """
    known = [item for item in rounds if item.part.constructor in ("renyi", "zcdp")]
    if not known or (len(known) == 1 and known[0].count == 1):
        return rounds
    listed = [item for item in known if item.part.constructor == "renyi"]
    rho = math.fsum(item.count * _numbers(item.part.arguments[0])[0] for item in known if item not in listed)
    tables = [dict(zip(*map(_numbers, item.part.arguments), strict=True)) for item in listed]
    orders = sorted(set.intersection(*map(set, tables))) if tables else []
    if listed and not orders:
        return rounds
    # The sums err by less than two units of rounding.
    up = 1.0 + 2.0 * sys.float_info.epsilon
    if listed:
        totals = [
            (rho * a + math.fsum(item.count * table[a] for item, table in zip(listed, tables, strict=True))) * up * up
            for a in orders
        ]
        together = Part("renyi", (tuple(orders), tuple(totals)))
    else:
        together = Part("zcdp", (rho * up,))
    return counted_rounds([*(item for item in rounds if item not in known), Rounds(together, 1)])


def _numbers(argument: object) -> tuple[float, ...]:
    """Return a number, or a tuple of numbers, as a tuple."""
    return tuple(argument) if isinstance(argument, tuple) else (argument,)  # type: ignore[return-value]


def _merged(rounds: tuple[Rounds, ...], *, rounding: float) -> tuple[Rounds, ...]:
    gaussians = [item for item in rounds if item.part.constructor == "gaussian"]
    if not gaussians:
        return rounds
    squares = math.fsum(item.count * _ratio(item.part) ** 2 for item in gaussians)
    # Quotient, square, product, sum, root and the last product err by less than 5 units of rounding; the ratio is moved by 8
    # to the safe side.
    ratio = math.sqrt(squares) * (1.0 + rounding * 4.0 * sys.float_info.epsilon)
    rest = tuple(item for item in rounds if item.part.constructor != "gaussian")
    return (Rounds(gaussian(ratio, 1.0), 1), *rest)


def _ratio(part: Part) -> float:
    """Return sensitivity over noise of a Gaussian part."""
    sensitivity, noise_multiplier = part.arguments
    assert isinstance(sensitivity, int | float)
    assert isinstance(noise_multiplier, int | float)
    return sensitivity / noise_multiplier

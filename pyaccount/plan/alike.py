"""Rounds that are nearly alike, bounded by the worst of them: a long schedule of noise or rates is composed in few kinds.

Each step toward fewer kinds of rounds gives a mechanism that is no more private:

- Equal rounds are one kind wherever they stand: what composes does not depend on the order.
- *Less noise.* A round with the noise multiplier σ is one with σ′ < σ, to whose sum more noise was added independently
  (post-processing): N(0, σ² − σ′²) for Gaussian noise; for Laplace noise of scale b, with scale b′ < b, nothing with the
  probability b′²/b² and else Laplace noise of scale b: its characteristic function 1/(1 + b²t²) is 1/(1 + b′²t²) times
  b′²/b² + (1 − b′²/b²)/(1 + b²t²).
- *Larger rates.* Where records take part independently of one another, one that takes part with probability p′ > p and is then
  left out with the probability 1 − p/p′ takes part with p: the number of times that a group takes part is stochastically larger
  with p′, and its pair dominates (shifts that are larger in a coupling: Choquette-Choo et al. 2023, Lemma 4.5, and Lemma 4.6 for
  two mixtures).

So the rounds of a group, each with the least noise and the largest rate of any of them, compose to an upper bound of what these
rounds compose to; with the most noise and the smallest rate, to a lower bound (products of dominating pairs dominate: Zhu, Dong
& Wang 2022, Theorem 10). Which rounds make up a group decides how far apart these are, and nothing else.

Here Gaussian rounds and those of Poisson sampling are grouped, of which the pair itself is composed. Any others stay as they are.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from pyaccount.directions import DIRECTIONS
from pyaccount.plan.rounds import Bounds, Part, Rounds, counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyaccount.plan.rounds import DirectedBounds

#: Up to so many kinds of rounds are composed as they are.
MANY = 768
#: Upper and lower bounds are composed separately, so that groups save work only if they are this many times fewer.
FEWER = 3
#: How often the size of the groups is halved in the search for the coarsest ones, in logarithms.
HALVINGS = 10
#: Rounds with (k/σ)² beyond this are composed as they are: the estimate below says nothing of them.
LARGEST_EXPONENT = 100.0


class _Kind(NamedTuple):
    """Rounds that differ from others of their family in these two numbers alone; the rate is 1 without sampling."""

    rate: float
    noise: float
    rounds: int


#: A constructor, its argument that is no number of a kind (sensitivity, or size of the group of records), its options.
_Family = tuple[str, float, tuple[tuple[str, bool], ...]]
#: Groups of kinds of rounds, by these kinds and what their family has but for its options.
_Known = dict[tuple[str, float, tuple[_Kind, ...]], list[list[_Kind]]]


def grouped(bounds: DirectedBounds, width: float) -> DirectedBounds:
    """Return the bounds with nearly alike rounds in groups, which make ε about this much wider, relatively.

    Directions that gain nothing keep their rounds: those with at most `MANY` kinds, those that would still have more than a
    third of them, and those whose upper and lower rounds are not the same.

    Args:
        bounds: The rounds to compose.
        width: By how much ε of the upper rounds may lie above that of the lower ones, relatively. It is met to first order only:
            whoever must keep to it looks at the answer.
    """
    known: _Known = {}
    return {side: _grouped(bounds[side], width, known) for side in DIRECTIONS}


def composed_alike(bounds: DirectedBounds) -> bool:
    """Whether some rounds are bounded by others that are nearly alike."""
    return any(bounds[side].kinds is not None for side in DIRECTIONS)


def _grouped(bounds: Bounds, width: float, known: _Known) -> Bounds:
    """`grouped` in one direction; `known` are the groups of the other one, whose rounds may have the same numbers."""
    kinds = len(bounds.upper)
    if kinds <= MANY or bounds.upper != bounds.lower or bounds.inner is not None:
        return bounds
    families: dict[_Family, list[_Kind]] = {}
    rest: list[Rounds] = []
    for item in bounds.upper:
        found = _read(item)
        if found is None:
            rest.append(item)
        else:
            families.setdefault(found[0], []).append(found[1])
    groups = _coarsest(families, width, known)
    if FEWER * (len(groups) + len(rest)) > kinds:
        return bounds
    upper = counted([*rest, *(_worst(family, group) for family, group in groups)])
    lower = counted([*rest, *(_best(family, group) for family, group in groups)])
    return replace(bounds, upper=upper, lower=lower, inner=lower, kinds=kinds)


def _read(rounds: Rounds) -> tuple[_Family, _Kind] | None:
    """The family and the kind of rounds; None for those that are not grouped."""
    part = rounds.part
    numbers = [value for value in part.arguments if isinstance(value, int | float)]
    if part.constructor == "gaussian":
        size, noise = numbers
        rate = 1.0
    elif part.constructor == "poisson":
        size, rate, noise = numbers
    else:
        return None
    if size <= 0.0 or (size / noise) ** 2 > LARGEST_EXPONENT:
        return None
    return (part.constructor, size, part.options), _Kind(rate, noise, rounds.count)


def _part(family: _Family, rate: float, noise: float) -> Part:
    constructor, size, options = family
    return Part(constructor, (size, noise) if constructor == "gaussian" else (size, rate, noise), options)


def _worst(family: _Family, group: Sequence[_Kind]) -> Rounds:
    """The rounds of a group, each with the largest rate and the least noise."""
    part = _part(family, max(kind.rate for kind in group), min(kind.noise for kind in group))
    return Rounds(part, sum(kind.rounds for kind in group))


def _best(family: _Family, group: Sequence[_Kind]) -> Rounds:
    """The rounds of a group, each with the smallest rate and the most noise."""
    part = _part(family, min(kind.rate for kind in group), max(kind.noise for kind in group))
    return Rounds(part, sum(kind.rounds for kind in group))


def _square(family: _Family, rate: float, noise: float) -> float:
    """How much a round counts, as an estimate: ε of many rounds is about proportional to the root of the sum of these.

    It is p²(e^{(k/σ)²} − 1), the variance of the likelihood ratio of one draw of all k; (k/σ)² without sampling.
    """
    constructor, size, _ = family
    square = (size / noise) ** 2
    return square if constructor == "gaussian" else rate**2 * math.expm1(square)


def _coarsest(families: dict[_Family, list[_Kind]], width: float, known: _Known) -> list[tuple[_Family, list[_Kind]]]:
    """Return few groups that keep to the width.

    Each spreads the sum of squares by up to the same amount: groups of rounds that count much are narrow.
    """
    # The root's relative change is half of the sum's.
    share = 2.0 * width
    groups: list[tuple[_Family, list[_Kind]]] = []
    for family, kinds in families.items():
        key = (*family[:2], tuple(kinds))
        if key not in known:
            allowed = share * math.fsum(_square(family, kind.rate, kind.noise) * kind.rounds for kind in kinds)
            # Neighbours by rate, or by noise: where both change, either may keep what is alike together.
            orders = sorted(kinds), sorted(kinds, key=lambda kind: (kind.noise, kind.rate))
            known[key] = min((_within(family, order, allowed) for order in orders), key=len)
        groups += [(family, group) for group in known[key]]
    return groups


def _within(family: _Family, ordered: Sequence[_Kind], allowed: float) -> list[list[_Kind]]:
    """Groups of neighbours that spread the sum of squares by no more than this in all."""
    # Groups of which none spreads it by more than this are within it in any case.
    low, high = allowed / len(ordered), allowed
    best = list(_split(family, ordered, low))
    for _ in range(HALVINGS):
        middle = math.sqrt(low * high)
        groups = list(_split(family, ordered, middle))
        if math.fsum(_spread(family, group) for group in groups) <= allowed:
            low, best = middle, groups
        else:
            high = middle
    return best


def _split(family: _Family, ordered: Sequence[_Kind], most: float) -> Iterator[list[_Kind]]:
    """Neighbours together while their group spreads the sum of squares by no more than `most`."""
    group: list[_Kind] = []
    rates, noises, count = (math.inf, 0.0), (math.inf, 0.0), 0
    for kind in ordered:
        wider = (min(rates[0], kind.rate), max(rates[1], kind.rate))
        noisier = (min(noises[0], kind.noise), max(noises[1], kind.noise))
        count += kind.rounds
        spread = count * (_square(family, wider[1], noisier[0]) - _square(family, wider[0], noisier[1]))
        if group and spread > most:
            yield group
            group, count = [], kind.rounds
            wider, noisier = (kind.rate, kind.rate), (kind.noise, kind.noise)
        group.append(kind)
        rates, noises = wider, noisier
    if group:
        yield group


def _spread(family: _Family, group: Sequence[_Kind]) -> float:
    rates, noises = [kind.rate for kind in group], [kind.noise for kind in group]
    most, least = _square(family, max(rates), min(noises)), _square(family, min(rates), max(noises))
    return sum(kind.rounds for kind in group) * (most - least)

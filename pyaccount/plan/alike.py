"""Bound nearly alike rounds by the worst of them, so that a long schedule of noise or rates is composed of few kinds.

Each step toward fewer kinds of rounds gives a mechanism that is no more private:

- Equal rounds are one kind wherever they are in the schedule: a composition does not depend on the order.
- *Less noise.* A round with noise multiplier σ is a round with σ′ < σ to whose sum more noise is added independently
  (post-processing). For Gaussian noise this is N(0, σ² − σ′²). For Laplace noise of scales b′ < b it is 0 with probability
  b′²/b² and otherwise Laplace noise of scale b: the characteristic function 1/(1 + b²t²) is 1/(1 + b′²t²) times
  b′²/b² + (1 − b′²/b²)/(1 + b²t²).
- *Larger rates.* Let records take part independently of one another. A record that takes part with probability p′ > p and is
  then left out with probability 1 − p/p′ takes part with probability p. So the number of times that a group takes part is
  stochastically larger with p′, and the pair of p′ dominates (shifts that are larger in a coupling: Choquette-Choo et al. 2023,
  Lemma 4.5, and Lemma 4.6 for two mixtures).

So take the rounds of a group. Each with the least noise and the largest rate of any of them, they compose to an upper bound of
their composition; with the most noise and the smallest rate, to a lower bound (products of dominating pairs dominate: Zhu, Dong
& Wang 2022, Theorem 10). The choice of groups affects only how far apart the two bounds are.

Only Gaussian rounds and rounds of Poisson sampling are grouped, because for these the pair itself is composed. Other rounds are
kept as they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from pyaccount.directions import DIRECTIONS
from pyaccount.plan.rounds import Bounds, DirectedBounds
from pyaccount.profiles import ProfileKind, Rounds, counted

#: Up to this many kinds of rounds are composed as they are.
MANY = 768
#: Groups are used only if they are this many times fewer than the kinds, since their upper and lower bounds are composed
#: separately.
FEWER = 3
#: How often the size of the groups is halved in the search for the coarsest ones, in logarithms.
HALVINGS = 10
#: Rounds with a larger (k/σ)² are composed as they are: the estimate in `_square` is not valid for them.
LARGEST_EXPONENT = 100.0


class _Kind(NamedTuple):
    """Rounds that differ from others of their family only in rate and noise; the rate is 1 without sampling."""

    rate: float
    noise: float
    rounds: int


class _Family(NamedTuple):
    """What rounds of a family have in common: all of their profile but rate and noise."""

    profile: ProfileKind
    #: The sensitivity, or the size of the group of records.
    size: float
    sampled: bool

    def rounds(self, rate: float, noise: float, count: int) -> Rounds:
        """Return rounds of the family."""
        return Rounds(self.profile.regraded(rate, noise), count)


#: Groups of kinds of rounds, by these kinds, the size, and whether the rounds are sampled; they are the same in both directions.
_Known = dict[tuple[float, bool, tuple[_Kind, ...]], list[list[_Kind]]]


def grouped_alike(bounds: DirectedBounds, width: float) -> DirectedBounds:
    """Return the bounds with nearly alike rounds in groups, which widens the interval of ε by about `width`.

    A direction keeps its rounds if grouping gains nothing: if it has at most `MANY` kinds, if more than a third of them
    would be left, or if its upper and lower rounds differ.

    Args:
        bounds: The rounds to compose.
        width: How far ε of the upper rounds may lie above ε of the lower ones, relatively. It is met only to first
            order: a caller that must keep to it checks the result.
    """
    known: _Known = {}
    return {side: _grouped(bounds[side], width, known) for side in DIRECTIONS}


def composed_alike(bounds: DirectedBounds) -> bool:
    """Whether some rounds are bounded by others that are nearly alike."""
    return any(bounds[side].kinds is not None for side in DIRECTIONS)


def _grouped(bounds: Bounds, width: float, known: _Known) -> Bounds:
    """Return `grouped_alike` for one direction; `known` has the groups of the other one, whose rounds may be the same."""
    kinds = len(bounds.upper)
    if kinds <= MANY or bounds.upper != bounds.lower or bounds.inner is not None:
        return bounds
    families: dict[_Family, list[_Kind]] = {}
    rest: list[Rounds] = []
    for item in bounds.upper:
        family_and_kind = _read(item)
        if family_and_kind is None:
            rest.append(item)
        else:
            families.setdefault(family_and_kind[0], []).append(family_and_kind[1])
    groups = _coarsest(families, width, known)
    if FEWER * (len(groups) + len(rest)) > kinds:
        return bounds
    upper = counted([*rest, *(_as_one(family, group, worst=True) for family, group in groups)])
    lower = counted([*rest, *(_as_one(family, group, worst=False) for family, group in groups)])
    return replace(bounds, upper=upper, lower=lower, inner=lower, kinds=kinds)


def _read(rounds: Rounds) -> tuple[_Family, _Kind] | None:
    """Return the family and the kind of rounds; None for rounds that are not grouped."""
    graded = rounds.profile.graded()
    if graded is None or graded.size <= 0.0 or (graded.size / graded.noise) ** 2 > LARGEST_EXPONENT:
        return None
    common = rounds.profile.regraded(1.0, 1.0)
    return _Family(common, graded.size, not rounds.profile.closed), _Kind(graded.rate, graded.noise, rounds.count)


def _as_one(family: _Family, group: Sequence[_Kind], *, worst: bool) -> Rounds:
    """Return the rounds of a group, each with the largest rate and the least noise, or the reverse."""
    rates, noises = [kind.rate for kind in group], [kind.noise for kind in group]
    rate, noise = (max(rates), min(noises)) if worst else (min(rates), max(noises))
    return family.rounds(rate, noise, sum(kind.rounds for kind in group))


def _square(family: _Family, rate: float, noise: float) -> float:
    """Return an estimate of a round's weight: ε of many rounds is about proportional to the root of the sum of these.

    It is p²(e^{(k/σ)²} − 1), the variance of the likelihood ratio of one draw of all k; (k/σ)² without sampling.
    """
    square = (family.size / noise) ** 2
    return rate**2 * math.expm1(square) if family.sampled else square


def _coarsest(families: dict[_Family, list[_Kind]], width: float, known: _Known) -> list[tuple[_Family, list[_Kind]]]:
    """Return few groups that keep to the width.

    Each group spreads the sum of squares by up to the same amount, so groups of rounds with large weights are narrow.
    """
    # The root's relative change is half of the sum's.
    share = 2.0 * width
    groups: list[tuple[_Family, list[_Kind]]] = []
    for family, kinds in families.items():
        key = (family.size, family.sampled, tuple(kinds))
        if key not in known:
            allowed = share * math.fsum(_square(family, kind.rate, kind.noise) * kind.rounds for kind in kinds)
            # If both rate and noise change, sorting by either one may keep alike rounds together: both are tried.
            orders = [sorted(kinds), sorted(kinds, key=lambda kind: (kind.noise, kind.rate))]
            if orders[0] == orders[1]:
                del orders[1]
            known[key] = min((_within(family, order, allowed) for order in orders), key=len)
        groups += [(family, group) for group in known[key]]
    return groups


def _within(family: _Family, ordered: Sequence[_Kind], allowed: float) -> list[list[_Kind]]:
    """Return groups of neighbours that together spread the sum of squares by at most `allowed`."""
    # If no group spreads the sum by more than this, all of them together keep to the limit.
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
    """Yield groups of neighbours, each as long as it spreads the sum of squares by at most `most`."""
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

"""Partition selection: which partitions of a table are released, by a truncated geometric law or by noisy counts.

A record contributes to at most k partitions, once to each of them, and each partition is selected by its own count of
records, independently. A partition without records is never selected. The record raises the counts of k partitions (or fewer)
by 1, from n_1, …, n_k to n_1 + 1, …, n_k + 1, so the laws of a release with and without it are products of k pairs M(n_i + 1)
against M(n_i), and whatever the other partitions are is the same in both. Fewer partitions are dominated by k: a pair more
reveals no less. Under zero-out a record without contribution is in no partition, which is the same. So the guarantee is the
worst product over all (n_1, …, n_k), in each direction. Which pairs M(n + 1) against M(n) can be the worst ones?

**Counts with noise, over a threshold τ** (Korolova, Kenthapadi, Mishra & Ntoulas 2009; Rogers 2023, arXiv:2309.09170). For n
= 0, M(0) releases nothing, and M(1) a count with probability p = Pr[1 + Z ≥ τ]: the pair has the loss ∞ with probability p
and otherwise ln(1 − p). For n ≥ 1 the release is a function of n + Z, and so dominated by Z + 1 against Z. For n → ∞ the
count passes the threshold almost surely, and these pairs approach that one in total variation, so that no smaller bound
holds. So the worst is a number j of new partitions, with p each, and k − j counts with noise that move by 1, and the profile
of a release is

    max over 0 ≤ j ≤ k of  1 − (1 − p)^j + (1 − p)^j·h_{k−j}(α/(1 − p)^j), remove;  of  h_{k−j}(α(1 − p)^j), add,

with h_i that of i counts with noise. At α = e^{k/b} with Laplace noise only 1 − (1 − p)^j is left, which is most for j = k: δ
= 1 − (1 − p)^k, the figure that libraries compute. If k is large, some j are bounded together: a ≤ j ≤ b by b new partitions
beside k − a counts. If no count is released, that is a function of the same output.

*A larger threshold is never less private*: p falls, and the pair with a smaller p is a function of the other, which forgets a
released count with some probability. *More noise with the same p* is not either, as more noise is not
(`plan.mechanisms.additive`). With the same threshold it may be: it lifts counts of 1 over the threshold more often.

**Truncated geometric** (Desfontaines, Voss, Gipson & Mandayam 2022, arXiv:2006.03684). A partition with n records is selected
with probability π_n: π_0 = 0, and π_{n+1} = min(e^ε π_n + δ, 1 − e^{−ε}(1 − π_n − δ), 1), the largest that (ε, δ) allow. The
first of the three is least for π_n ≤ π* = (1 − δ)/(1 + e^ε), the third for π_n ≥ 1 − δ. While one of the three is least, the
probabilities of both outcomes, (π_{n+1}, 1 − π_{n+1}) and (π_n, 1 − π_n), are affine functions of π_n. So the pair of an n
between two others a and c of one stretch is (1 − λ) times that of a plus λ times that of c, outcome by outcome, with the same
λ in both laws. In a product with any other pairs the hockey-stick divergence is jointly convex, so it is at most that of a or
of c. Hence the worst vector of counts has only the first and last n of each stretch: the n = 0, the last one up to π*, the
first one above, the last one up to 1 − δ, and the one whose π_{n+1} is 1. These are at most five pairs, and all products of k
of them are composed if they are not too many; otherwise k times the pair that dominates the five. For one partition the
profile is at most that of a stated (ε, δ), and smaller by how far π* is from the nearest π_n.

**The worst product** is not the same for every ε. One pair dominates all of them: that whose profile is the largest of theirs
(`rust/core/src/pair/worst.rs`). A release by itself has exactly this profile. Several runs, and a run beside other phases or
on a sample, are bounded by composing and sampling that pair, whatever the counts are, also if they depend on what was
released before or on which records were drawn. That is an upper bound only: the worst product of one run need not be that of
another. The lower end then comes from some counts.

**A record that is replaced** takes part in k partitions in one data set, and in k others in the other: the direction remove
for k partitions, and add for k others. A partition of both does not change.

**On a sample** the counts of other records are random. A partition that only the protected record has is the one pair that is
attained for certain, and gives the lower end.

**Rounding.** The probabilities of the truncated geometric law are computed with 700 digits and rounded once. A tail of noise
is moved by a relative 1e-11 to the safe side of each end, by more than the functions of the standard library err.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import combinations_with_replacement
from statistics import NormalDist
from typing import NamedTuple, cast

from pyaccount.directions import DIRECTIONS, Direction
from pyaccount.document.mechanisms import PartitionSelection
from pyaccount.document.words import Assumed
from pyaccount.errors import Problem
from pyaccount.plan.common import GROUP_LEMMA, given, number, refused_groups
from pyaccount.plan.mechanisms.base import MechanismPlan, MechanismWords, Released
from pyaccount.plan.rounds import Bounds, DirectedBounds, worst_of
from pyaccount.plan.theorem import Reduction
from pyaccount.profiles import (
    CompositionProfile,
    FiniteProfile,
    GaussianProfile,
    LaplaceProfile,
    ProfileKind,
    Rounds,
    ShownProfile,
    WorstProfile,
    merged,
)
from pyaccount.rounding import shortest, up

#: The most products of pairs of which the worst is the guarantee; beyond, one pair dominates each partition.
MOST_PRODUCTS = 40
#: How far a tail of noise is moved, relatively: for the largest arguments the rounding of their squares is less.
_TAIL = 1e-11
#: The same for 1 − (1 − p)^j, whose functions err by a few units of rounding.
_POWER = 1e-14
#: The relative error of a probability that was rounded once.
_ROUNDED = 1e-15
#: Smaller probabilities are counted as this one, which is above them.
_LEAST = 1e-285
#: The digits with which probabilities are computed before they are rounded: 1 − π may be e^−500, and δ 1e-280.
_DIGITS = 700
#: Two equal laws; and two without a common outcome.
_NOTHING, _EVERYTHING = FiniteProfile((1.0,), (1.0,)), FiniteProfile((1.0, 0.0), (0.0, 1.0))

CONTRIBUTIONS = Assumed(
    "A record contributes to at most {most}, and counts once in each of them; which ones they are depends on this record alone. "
    "A user with several records is one record.",
    "A record counts once, in at most {most} of its own choice.",
)
OWN_COUNT = Assumed(
    "Every partition is selected by the number of its records alone, with randomness of its own; one without records is never "
    "selected, also if it is known to exist.",
    "A partition is selected by its own count alone, and never with no record.",
)
NOISE = Assumed(
    "Every count gets {law}, drawn at a resolution that does not reveal the count, from a generator that cannot be predicted.",
    "Noise: {law}, unpredictable.",
)
THRESHOLD = Assumed(
    "A partition is selected if its noisy count is at least {threshold}. Beside the selected partitions at most these noisy "
    "counts of them are released, and nothing of the others.",
    "Noisy counts from {threshold} on are kept, and nothing else.",
)
ONLY_WHICH = Assumed(
    "Which partitions are selected is released, and no count. A partition with n records is selected with the probability π_n of "
    "(ε, δ) = ({epsilon}, {delta}) for one partition (truncated geometric).",
    "π_n of (ε, δ) = ({epsilon}, {delta}) selects; no counts.",
)
EMPTY = Assumed(
    "A record that is set to zero contributes to no partition.",
    "A record that is set to zero contributes to no partition.",
)


class CountStep(NamedTuple):
    """The pair of one partition whose count a record raises by 1: with the record against without it, and the other way round."""

    remove: ProfileKind
    add: ProfileKind
    #: Whether counts attain or approach it, so that it bounds the mechanism from below, too.
    attained: bool = True

    def of(self, direction: Direction) -> ProfileKind:
        """Return the profile of a direction."""
        return self.remove if direction == "remove" else self.add


class CountSteps(NamedTuple):
    """The pairs of one partition among which the worst ones are."""

    #: Bounds on the probability that a partition which only the record has is selected, from below and from above.
    new: tuple[float, float]
    #: The pairs of partitions that other records have, too. If there are several, the first one reveals most at usual ε.
    shared: tuple[CountStep, ...]

    @property
    def attained(self) -> bool:
        """Whether every pair is attained or approached by some counts."""
        return self.new[0] >= _LEAST and all(one.attained for one in self.shared)


def steps_of(mechanism: PartitionSelection) -> CountSteps:
    """Return the steps among which the worst ones are. No number of the mechanism may be blank."""
    if mechanism.strategy == "truncated-geometric":
        return geometric_steps(given(mechanism.epsilon), given(mechanism.delta))
    size = number(mechanism.noise())
    moved = LaplaceProfile(1.0, size) if mechanism.strategy == "laplace" else GaussianProfile(1.0, size)
    return CountSteps(_passing(mechanism), (CountStep(moved, moved),))


def _passing(mechanism: PartitionSelection) -> tuple[float, float]:
    """Return bounds on the probability that a partition with one record is selected, from below and from above."""
    if mechanism.delta is not None:
        return mechanism.delta, mechanism.delta
    height = float((Fraction(repr(number(mechanism.threshold))) - 1) / Fraction(repr(number(mechanism.noise()))))
    chance = laplace_tail(height) if mechanism.strategy == "laplace" else gaussian_tail(height)
    return chance * (1.0 - _TAIL), max(_LEAST, min(1.0, chance * (1.0 + _TAIL)))


def laplace_tail(height: float) -> float:
    """Return Pr[Z ≥ height] for Laplace noise of scale 1."""
    return 0.5 * math.exp(-height) if height >= 0.0 else 1.0 - 0.5 * math.exp(height)


def gaussian_tail(height: float) -> float:
    """Return Pr[Z ≥ height] for Gaussian noise with σ = 1."""
    return 0.5 * math.erfc(height * math.sqrt(0.5))


def _threshold_of(mechanism: PartitionSelection) -> str:
    """Return the threshold as text: as it is stated, or the least one with the stated δ, rounded up; τ while it is not known."""
    if mechanism.delta is None:
        return "τ" if mechanism.threshold in ("solve", None) else shortest(number(mechanism.threshold))
    if mechanism.noise() == "solve":
        return "τ"
    if mechanism.strategy == "gaussian":
        height = -NormalDist().inv_cdf(mechanism.delta)
    else:
        height = -math.log(2.0 * mechanism.delta) if mechanism.delta <= 0.5 else math.log(2.0 - 2.0 * mechanism.delta)
    return up(max(0.0, 1.0 + number(mechanism.noise()) * (height + 1e-9 * abs(height))))


def geometric_steps(epsilon: float, delta: float) -> CountSteps:
    """Return the steps at the ends of the stretches of the truncated geometric law."""
    with localcontext(prec=_DIGITS):
        e, d = Decimal(repr(epsilon)), Decimal(repr(delta))
        ratio = e.exp()
        per_ratio = d / (ratio - 1)
        middle = (1 - d) / (1 + ratio)
        # π_n = δ(e^{nε} − 1)/(e^ε − 1) on the first stretch.
        last = int((1 + middle / per_ratio).ln() / e)
        before = per_ratio * ((last * e).exp() - 1)
        after = ratio * before + d
        ends = [(before, after)] if last else []
        # 1 − π_n is e^{−mε}(1 − π + δ/(e^ε − 1)) − δ/(e^ε − 1) on the second one, m counts after its first.
        rest = 1 - after
        if rest >= d:
            ends.append((after, 1 - (rest - d) / ratio))
            further = int(((rest + per_ratio) / (d + per_ratio)).ln() / e)
            rest = (rest + per_ratio) * (-further * e).exp() - per_ratio
            ends.append((1 - rest, 1 - (rest - d) / ratio))
            rest = (rest - d) / ratio
        if rest > 0:
            ends.append((1 - rest, Decimal(1)))
        return CountSteps((delta, delta), tuple(_selected(*one) for one in dict.fromkeys(ends)))


def _selected(before: Decimal, after: Decimal) -> CountStep:
    """Return the step of a partition that is selected with these probabilities, without the record and with it.

    A probability that is too small for a double, not to be selected with the record, becomes 0, and one without it `_LEAST`: the
    former law is then a function of the new one.
    """
    chances = (1 - before, 1 - after)
    attained = all(chance == 0 or chance >= _LEAST for chance in chances)
    without, within = max(float(chances[0]), _LEAST), float(chances[1]) if chances[1] >= _LEAST else 0.0
    p, q = (float(after), within), (float(before), without)
    return CountStep(FiniteProfile(p, q, _ROUNDED), FiniteProfile(p, q, _ROUNDED, reverse=True), attained)


class Product(NamedTuple):
    """How many new partitions there are, and of each other step: in a bound on some vectors of counts, and in one of them."""

    above: tuple[int, ...]
    below: tuple[int, ...]


def products(pairs: int, partitions: int) -> list[Product] | None:
    """Return products that bound every product of `partitions` steps; None if they would be more than `MOST_PRODUCTS`."""
    if pairs == 1:
        return [
            Product((last, partitions - first), (last, partitions - last))
            for first, last in _blocks(partitions, MOST_PRODUCTS)
        ]
    if math.comb(partitions + pairs, partitions) > MOST_PRODUCTS:
        return None
    kinds = range(pairs + 1)
    counts = [tuple(map(one.count, kinds)) for one in combinations_with_replacement(kinds, partitions)]
    return [Product(one, one) for one in counts]


def _blocks(partitions: int, most: int) -> Iterator[tuple[int, int]]:
    """Yield the first and the last number of each of at most `most` blocks of 0 … `partitions`: single ones at both ends."""
    single, first = max(1, most // 4), 0
    if partitions < most:
        single = partitions + 1
    left, blocks = partitions + 1 - 2 * single, max(1, most - 2 * single)
    while first <= partitions:
        inside = single <= first <= partitions - single
        width = -(-left // blocks) if inside else 1
        last = min(first + width - 1, partitions - single) if inside else first
        yield first, last
        first = last + 1


def _profile_of(steps: CountSteps, counts: Sequence[int], direction: Direction, *, below: bool) -> ProfileKind:
    """Return the profile of a product of steps, from above or from below: new partitions, and as many of each other step.

    From below, steps are left out that may not be attained.
    """
    new, *more = counts
    kept = [(one, n) for one, n in zip(steps.shared, more, strict=True) if n and (one.attained or not below)]
    rounds = tuple(Rounds(one.of(direction), n) for one, n in kept)
    if sum(n for _, n in kept) > 1:
        rounds = merged(rounds, rounding=-1.0 if below else 1.0)
    if len(rounds) == 1 and rounds[0].count == 1:
        beside = rounds[0].profile
    else:
        beside = CompositionProfile.of(rounds, below=below) if rounds else _NOTHING
    chance = steps.new[0 if below else 1]
    if not new or (below and chance < _LEAST):
        return beside
    if new > 1:
        chance = (
            -math.expm1(new * math.log1p(-chance)) * (1.0 - _POWER if below else 1.0 + _POWER) if chance < 1.0 else 1.0
        )
    if chance >= 1.0:
        return _EVERYTHING
    if direction == "add" and beside is _NOTHING:
        # One loss, −ln(1 − r): the pair itself is known to fewer units of rounding than a profile beside what is shown.
        return FiniteProfile((chance, 1.0 - chance), (0.0, 1.0), reverse=True)
    return ShownProfile(beside, chance, direction == "add")


def worst(profiles: Iterator[ProfileKind]) -> ProfileKind:
    """Return the profile of the worst of several pairs."""
    distinct = tuple(dict.fromkeys(profiles))
    return distinct[0] if len(distinct) == 1 else WorstProfile(distinct)


def _replaced_products(steps: CountSteps, chosen: Sequence[Product], *, below: bool) -> Iterator[ProfileKind]:
    """Yield the compositions of one product for the old record with one for the new record."""
    for old in chosen:
        removed = _profile_of(steps, old.below if below else old.above, "remove", below=below)
        for new in chosen:
            added = _profile_of(steps, new.below if below else new.above, "add", below=below)
            yield CompositionProfile.of((Rounds(removed, 1), Rounds(added, 1)), below=below)


class PartitionSelectionPlan(MechanismPlan[PartitionSelection]):
    """The worst product of what a record changes in its partitions."""

    def released(self, mechanism: PartitionSelection, group: int) -> Released:
        """Return the profile of the worst product of steps; from below some products, and the worst of attained ones."""
        steps, k = steps_of(mechanism), mechanism.max_partitions
        chosen = products(len(steps.shared), k)
        remove, add = (self._side(steps, k, chosen, side) for side in DIRECTIONS)
        if not self._replaced():
            return replace(remove, add=add)
        # The old record in the direction remove, and the new one in the direction add, whichever data set is the first.
        lower, *more = (
            CompositionProfile.of((Rounds(one, remove.count), Rounds(other, add.count)), below=True)
            for one in (remove.lower, *remove.further_pairs)
            for other in (add.lower, *add.further_pairs)[-2:]
        )
        if chosen is not None and len(chosen) ** 2 <= MOST_PRODUCTS:
            upper, supremum = (worst(_replaced_products(steps, chosen, below=below)) for below in (False, True))
            known = None if remove.supremum is None else supremum
            return Released(upper, lower, further_pairs=tuple(more), supremum=known)
        upper = CompositionProfile.of((Rounds(remove.upper, remove.count), Rounds(add.upper, add.count)), below=False)
        return Released(upper, lower, further_pairs=tuple(more))

    def bounds(self) -> DirectedBounds:
        """Return the rounds of all runs. For one run by itself, counts with Laplace noise alone are rounds of their own.

        They reach their largest loss k/b, at which the composition of all of them as one profile would leave a rest.
        """
        mechanism, k = self._of(), self._of().max_partitions
        if mechanism.strategy != "laplace" or k == 1 or not self._by_itself() or self._replaced():
            return super().bounds()
        steps, chosen = steps_of(mechanism), products(1, k)
        rounds = (Rounds(steps.shared[0].remove, k),)
        remove, add = (self._side(steps, k, given(chosen)[1:], side) for side in DIRECTIONS)
        some_new = replace(remove, add=add).above(lambda one: cast("ProfileKind", one.supremum))
        return worst_of([dict.fromkeys(DIRECTIONS, Bounds(rounds, rounds)), some_new.bounds()])

    def _side(self, steps: CountSteps, k: int, chosen: list[Product] | None, side: Direction) -> Released:
        """Return what one run reveals in a direction, of a record that is added or removed."""
        rest = [0] * len(steps.shared)
        if chosen is None:
            # As many pairs as partitions, each of them the worst of all.
            ways = [[int(kind == one) for kind in range(len(rest) + 1)] for one in range(len(rest) + 1)]
            upper, count = worst(_profile_of(steps, way, side, below=False) for way in ways), k
            lows = [ways[1], ways[0], *ways[2:]]
        else:
            upper, count = worst(_profile_of(steps, one.above, side, below=False) for one in chosen), 1
            # Those without a new partition are the last ones.
            news = [1 if k > 1 else 0, k, k // 2, k - 1, 0]
            kinds = range(min(2, len(rest)))
            lows = [
                [new, *(k - new if one == kind else 0 for one in range(len(rest)))] for new in news for kind in kinds
            ]
        if self.node.draw is not None or self._nested():
            lows = [[k if chosen is not None else 1, *rest]]
        low, *more = (_profile_of(steps, one, side, below=True) for one in lows)
        supremum = None
        if chosen is not None and len(lows) > 1:
            supremum = worst(_profile_of(steps, one.below, side, below=True) for one in chosen)
        return Released(upper, low, count, further_pairs=tuple(more), supremum=supremum)

    def words(self) -> Reduction:
        """Return the theorem; it is tight for one release by itself, if every product was looked at."""
        usual, mechanism = super().words(), self._of()
        alone = self._by_itself() and not self._replaced()
        if self.node.draw is not None or self._nested():
            return replace(usual, tight=False, lower_end=OF_NEW)
        if not alone:
            return usual
        pairs = 1 if mechanism.blank() else len(steps_of(mechanism).shared)
        chosen = products(pairs, mechanism.max_partitions)
        exact = chosen is not None and all(one.above == one.below for one in chosen)
        if exact and (mechanism.blank() or steps_of(mechanism).attained):
            return replace(usual, tight=True, lower_end=None)
        return usual

    def described(self, mechanism: PartitionSelection) -> MechanismWords:
        """Return the theorem of the strategy."""
        k = mechanism.max_partitions
        common = (
            CONTRIBUTIONS.filled(most=f"{k} partition{'' if k == 1 else 's'}"),
            *((EMPTY,) if self.asked.privacy.adjacency == "zero-out" else ()),
            OWN_COUNT,
        )
        if mechanism.strategy == "truncated-geometric":
            epsilon, delta = shortest(mechanism.epsilon or 0.0), shortest(mechanism.delta or 0.0)
            return MechanismWords(
                "partition selection by a truncated geometric law",
                "the worst products of the ends of the three stretches of π_n",
                "Desfontaines, Voss, Gipson & Mandayam 2022 (arXiv:2006.03684); joint convexity",
                f"π_(n+1) against π_n for the worst n of each of {k}, ε = {epsilon}, δ = {delta}",
                (*common, ONLY_WHICH.filled(epsilon=epsilon, delta=delta)),
                lower_end=OF_SOME,
            )
        laplace, size = mechanism.strategy == "laplace", mechanism.noise()
        symbol = "b" if laplace else "σ"
        said = symbol if size == "solve" else shortest(size)
        law = f"Laplace noise of scale {said}" if laplace else f"Gaussian noise of deviation {said}"
        noisy = f"Lap(1, {said}) against Lap(0, {said})" if laplace else f"N(1, {said}²) against N(0, {said}²)"
        known = size != "solve" and mechanism.threshold != "solve"
        chance = up(_passing(mechanism)[1]) if known or mechanism.delta is not None else "p"
        return MechanismWords(
            f"partition selection by counts with {mechanism.strategy.capitalize()} noise",
            "the worst number of partitions that only the record has",
            "Korolova, Kenthapadi, Mishra & Ntoulas 2009; Rogers 2023 (arXiv:2309.09170); every number of new partitions",
            f"j partitions that only the record has, each selected with probability {chance}, beside {k} − j of {noisy}, "
            "the worst j",
            (*common, NOISE.filled(law=law), THRESHOLD.filled(threshold=_threshold_of(mechanism))),
            lower_end=OF_SOME,
        )

    def own_refusals(self, mechanism: PartitionSelection) -> list[Problem]:
        """Refuse groups of records."""
        return refused_groups(
            self.asked,
            "no bound is implemented for groups of records in partition selection: records of a group may share a partition, "
            f"whose count then changes by more than 1; {GROUP_LEMMA}",
        )

    def _by_itself(self) -> bool:
        """Return whether one run, on all records, is the whole document."""
        return self._alone() and self.node.count == 1 and self.node.draw is None

    def _replaced(self) -> bool:
        return self.asked.privacy.adjacency == "replace-one"

    def _nested(self) -> bool:
        """Return whether the runs are inside of another phase."""
        return self.node not in self.asked.phases


OF_NEW = "partitions that only the record contributes to"
OF_SOME = (
    "some counts of the record's partitions: partitions that only the record contributes to, and others of one count"
)

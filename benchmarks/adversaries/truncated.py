"""Truncated batches of a few records: every draw of every record is enumerated, and which of a batch are kept.

A record that is set to zero is drawn, kept and dropped as before, and contributes 0; all others contribute the same number.
A record that was drawn and dropped counts as drawn.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from adversaries.cells import Sums, gaussian
from adversaries.component import Component, Impossible, Setting
from adversaries.training import binomial, fraction, run


def _kept(drawn: int, own: bool, most: int) -> Iterator[tuple[Fraction, bool, int]]:
    """Yield what is kept of `drawn` others and the record itself: (probability, whether the record is, how many others)."""
    if drawn + own <= most:
        yield Fraction(1), own, drawn
    elif own:
        yield Fraction(most, drawn + 1), True, most - 1
        yield 1 - Fraction(most, drawn + 1), False, most
    else:
        yield Fraction(1), False, most


def b_min_sep(at: Setting) -> Component:
    """Return truncated b-min-sep sampling of two or three records: which of them wait is the state."""
    if at.adjacency != "zero-out" or at.group > 1:
        raise Impossible
    size, rounds, p, noise = at.rng.randint(2, 3), 2, at.probability(0.05), at.number(0.7, 3.0)
    apart, start, most = at.rng.randint(2, 3), at.rng.choice(["warm", "cold"]), at.rng.randint(1, size - 1)
    sampler = {"kind": "b-min-sep", "min_separation": apart, "start": start, "truncate_to": most}
    training = {"iterations": rounds, "sampling_probability": p, "dataset_size": size}
    drawn = fraction(p)
    stationary = 1 / (apart - 1 + 1 / drawn)
    begin = {0: Fraction(1)}
    if start == "warm":
        begin = {0: 1 - (apart - 1) * stationary} | dict.fromkeys(range(1, apart), stationary)
    made: dict[tuple[tuple[bool, int], ...], Fraction] = {}

    def follow(waits: tuple[int, ...], sums: tuple[tuple[bool, int], ...], weight: Fraction) -> None:
        if not weight:
            return
        if len(sums) == rounds:
            made[sums] = made.get(sums, Fraction(0)) + weight
            return
        free = [one for one in range(size) if waits[one] == 0]
        for chosen in _subsets(free):
            share = drawn ** len(chosen) * (1 - drawn) ** (len(free) - len(chosen))
            after = tuple(apart - 1 if one in chosen else max(waits[one] - 1, 0) for one in range(size))
            own = 0 in chosen
            for kept, took, others in _kept(len(chosen) - own, own, most):
                follow(after, (*sums, (took, others)), weight * share * kept)

    for waits in _states(tuple(begin), size):
        follow(waits, (), math.prod((begin[one] for one in waits), start=Fraction(1)))
    return _component(at, run(sampler, training, {"multiplier": noise}), made, noise)


def _subsets(of: list[int]) -> Iterator[frozenset[int]]:
    for mask in range(1 << len(of)):
        yield frozenset(one for index, one in enumerate(of) if mask >> index & 1)


def _states(values: tuple[int, ...], size: int) -> Iterator[tuple[int, ...]]:
    if size == 0:
        yield ()
        return
    for rest in _states(values, size - 1):
        for value in values:
            yield (*rest, value)


def balls_in_bins(at: Setting) -> Component:
    """Return truncated bins: of each bin the same records are kept in all of its rounds, which are one with less noise."""
    if at.adjacency != "zero-out" or at.group > 1:
        raise Impossible
    size, bins, noise = at.rng.randint(2, 6), at.rng.randint(1, 3), at.number(0.7, 4.0)
    rounds, most = at.rng.randint(bins, 7), at.rng.randint(1, size - 1)
    sampler = {"kind": "balls-in-bins", "bins": bins, "truncate_to": most}
    training = {"iterations": rounds, "dataset_size": size}
    turns = [len(range(one, rounds, bins)) for one in range(bins)]
    made: dict[tuple[tuple[bool, int], ...], Fraction] = {}

    def fill(index: int, left: int, own: int, sums: tuple[tuple[bool, int], ...], weight: Fraction) -> None:
        if index == bins:
            made[sums] = made.get(sums, Fraction(0)) + weight
            return
        # The rest of the others is spread evenly over this bin and those behind it.
        for here, share in binomial(left, Fraction(1, bins - index)).items():
            if share:
                for kept, took, others in _kept(here, own == index, most):
                    fill(index + 1, left - here, own, (*sums, (took, others)), weight * share * kept)

    for own in range(bins):
        fill(0, size - 1, own, (), Fraction(1, bins))
    return _component(at, run(sampler, training, {"multiplier": noise}), made, noise, [math.sqrt(one) for one in turns])


def _component(
    at: Setting,
    body: dict[str, object],
    made: dict[tuple[tuple[bool, int], ...], Fraction],
    noise: float,
    factors: list[float] | None = None,
) -> Component:
    """Return the pairs in which others contribute 0, 1, −1 or something between."""

    def law(record: float, other: float) -> Sums:
        sums: dict[tuple[float, ...], float] = {}
        for rounds, weight in made.items():
            by = factors or [1.0] * len(rounds)
            mean = tuple(f * (took * record + others * other) for f, (took, others) in zip(by, rounds, strict=True))
            sums[mean] = sums.get(mean, 0.0) + float(weight)
        return sums

    others = (0.0, -1.0, 1.0, round(at.rng.uniform(-1.0, 1.0), 2))
    size = len(next(iter(made)))
    return Component(body, tuple(gaussian(law(1.0, one), law(0.0, one), (noise,) * size) for one in others))

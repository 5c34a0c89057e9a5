"""Records and users that wait after they took part, runs of a few rounds with every pattern enumerated, and matrices."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from adversaries.component import Body, Builder, Component, Impossible, Setting
from adversaries.training import binomial, fraction, patterns, run
from adversaries.unsampled import scaled

Patterns = dict[tuple[float, ...], float]


def _waiting(counts: dict[int, Fraction], apart: int, rounds: int, start: str) -> Patterns:
    """Return the probability of every sequence of counts, if a record waits apart − 1 rounds after a round with a count."""
    drawn = 1 - counts[0]
    stationary = 1 / (apart - 1 + 1 / drawn) if drawn else Fraction(0)
    states = {0: Fraction(1)}
    if start == "warm":
        states = dict.fromkeys(range(1, apart), stationary)
        states[0] = 1 - (apart - 1) * stationary
    found: dict[tuple[int, ...], Fraction] = {}

    def follow(taken: tuple[int, ...], wait: int, weight: Fraction) -> None:
        if not weight:
            return
        if len(taken) == rounds:
            found[taken] = found.get(taken, Fraction(0)) + weight
        elif wait:
            follow((*taken, 0), wait - 1, weight)
        else:
            for count, share in counts.items():
                follow((*taken, count), apart - 1 if count else 0, weight * share)

    for wait, weight in states.items():
        follow((), wait, weight)
    return {tuple(float(x) for x in taken): float(weight) for taken, weight in found.items()}


@dataclass(frozen=True)
class Process:
    """How a record takes part in a few rounds: probabilities of its patterns, for each kind of record."""

    sampler: Body
    training: Body
    weights: tuple[Patterns, ...]


def b_min_sep(at: Setting, rounds: int) -> Process:
    p, apart, start = at.probability(0.05), at.rng.randint(2, 3), at.rng.choice(["warm", "cold"])
    sampler = {"kind": "b-min-sep", "min_separation": apart, "start": start}
    weights = _waiting(binomial(1, fraction(p)), apart, rounds, start)
    return Process(sampler, {"sampling_probability": p}, (weights,))


def user_b_min_sep(at: Setting, rounds: int) -> Process:
    p, apart, start, records = (
        at.probability(0.05),
        at.rng.randint(2, 3),
        at.rng.choice(["warm", "cold"]),
        at.rng.randint(1, 3),
    )
    shared = at.adjacency == "zero-out" and at.rng.random() < 0.5
    sampler: Body = {"kind": "user-b-min-sep", "records_per_user": records, "min_separation": apart, "start": start}
    sampler["attribution"] = "shared" if shared else "single"
    after = at.rng.choice(["draw", "participation"]) if shared else "draw"
    if after == "participation":
        sampler["waits_after"] = after
    counts = binomial(records, fraction(p))
    if not shared or after == "participation":
        # Records that no other user has take part whenever they are drawn while their user does not wait.
        return Process(sampler, {"sampling_probability": p}, (_waiting(counts, apart, rounds, start),))
    # Every record is drawn in every round, and takes part if no record of its user was drawn in the apart − 1 rounds before.
    before = apart - 1 if start == "warm" else 0
    weights: Patterns = {}
    for drawn in itertools.product(counts, repeat=before + rounds):
        taken = tuple(
            float(drawn[t]) if not any(drawn[max(0, t - apart + 1) : t]) else 0.0
            for t in range(before, before + rounds)
        )
        weights[taken] = weights.get(taken, 0.0) + float(math.prod(counts[one] for one in drawn))
    return Process(sampler, {"sampling_probability": p}, (weights,))


def balls_in_bins(at: Setting, rounds: int) -> Process:
    bins = at.rng.randint(1, rounds)
    weights = {
        tuple(1.0 if one % bins == k else 0.0 for one in range(rounds)): float(Fraction(1, bins)) for k in range(bins)
    }
    return Process({"kind": "balls-in-bins", "bins": bins}, {}, (weights,))


def cyclic(at: Setting, rounds: int, phase: str = "random") -> Process:
    """Return cyclic Poisson sampling: a record is drawn in the rounds of its part, which is secret if the phase is random."""
    p, parts = at.probability(0.05), at.rng.randint(1, rounds)
    sampler = {"kind": "cyclic-poisson", "partitions": parts, "phase": phase}
    counts = binomial(1, fraction(p))
    kinds = []
    for part in range(parts):
        choices = [counts if one % parts == part else {0: Fraction(1)} for one in range(rounds)]
        kinds.append({
            tuple(map(float, taken)): float(math.prod(choice[one] for choice, one in zip(choices, taken, strict=True)))
            for taken in itertools.product(*choices)
        })  # fmt: skip
    if phase == "random":
        mixed: Patterns = {}
        for kind in kinds:
            for taken, weight in kind.items():
                mixed[taken] = mixed.get(taken, 0.0) + weight / parts
        kinds = [mixed]
    return Process(sampler, {"sampling_probability": p}, tuple(kinds))


def cyclic_fixed(at: Setting, rounds: int) -> Process:
    return cyclic(at, rounds, "fixed")


def sampled_run(process: Callable[[Setting, int], Process], *, matrix: bool = False) -> Builder:
    """Return the builder of a run of a few rounds, every one of which is enumerated, with correlated noise or without."""

    def build(at: Setting) -> Component:
        if at.group > 1:
            raise Impossible
        rounds, noise = at.rng.randint(2, 3), at.number(0.7, 4.0)
        made = process(at, rounds)
        given, entries = (
            scaled(at, at.rng.choice(["toeplitz", "banded-square-root", "dense", "banded-inverse"]), rounds)
            if matrix
            else ({}, None)
        )
        more = {"matrix": given} if matrix else {}
        body = run(made.sampler, {"iterations": rounds} | made.training, {"multiplier": noise}, **more)
        return Component(body, tuple(patterns(at, weights, noise, entries) for weights in made.weights))

    return build

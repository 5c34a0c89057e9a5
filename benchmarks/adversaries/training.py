"""Training runs: batches are drawn, sums of clipped gradients are released with noise.

The record contributes 1, and −1 if it is replaced, unless said otherwise; gradients of all other records are equal, so that a
sum follows from how often the record was drawn. The laws of these counts are sums of fractions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product as every

import numpy as np

from adversaries.cells import Sums, gaussian
from adversaries.component import Body, Component, Impossible, Setting, attained
from adversaries.laws import Law, adaptive, power, product, products

Counts = dict[int, Fraction]


def binomial(n: int, p: Fraction) -> Counts:
    return {j: math.comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(n + 1)}


def without_replacement(drawn: int, special: int, size: int) -> Counts:
    """Return the law of how many special records are among `drawn` distinct ones of `size`."""
    total = math.comb(size, drawn)
    return {
        j: Fraction(math.comb(special, j) * math.comb(size - special, drawn - j), total)
        for j in range(min(drawn, special) + 1)
        if drawn - j <= size - special
    }


def two_stages(first: Counts, second: Callable[[int], Counts]) -> Counts:
    """Return the law of a count that is drawn given another one."""
    made: Counts = {}
    for i, weight in first.items():
        for j, share in second(i).items():
            made[j] = made.get(j, Fraction(0)) + weight * share
    return made


def sums(counts: Counts, record: float, others: Callable[[int], float] = lambda _: 0.0) -> Sums:
    """Return the law of the sum, if a draw of the record contributes `record`, and all other draws together `others(j)`."""
    made: dict[tuple[float, ...], float] = {}
    for j, weight in counts.items():
        if weight:
            mean = (j * record + others(j),)
            made[mean] = made.get(mean, 0.0) + float(weight)
    return made


def run(sampler: Body, training: Body, noise: Body, **more: Body) -> Body:
    return {"training": training, "sampler": sampler, "noise": noise, **more}


def _rounds(at: Setting) -> int:
    return at.rng.choice([1, 1, 2, 3, 5, 12, 40])


def fraction(number: float) -> Fraction:
    return Fraction(repr(number))


def poisson(at: Setting) -> Component:
    """Return Poisson sampling: several draws, schedules, truncated batches, other sums of a batch, strata."""
    shape = at.rng.choice(["plain", "plain", "draws", "schedule", "truncated", "also", "max"])
    if shape == "truncated":
        return _truncated(at)
    p, noise, rounds = at.probability(0.001), at.number(0.4, 5.0), _rounds(at)
    draws = at.rng.randint(2, 4) if shape == "draws" else 1
    sampler = {"kind": "poisson", **({"draws_per_iteration": draws} if draws > 1 else {})}

    def one(rate: float, sigma: float, record: float = 1.0) -> Law:
        counts = binomial(at.group * draws, fraction(rate))
        nothing: Sums = {(0.0,): 1.0}
        if at.replaced:
            return gaussian(sums(counts, record), sums(counts, -record), sigma, nothing)
        return gaussian(sums(counts, record), nothing, sigma)

    if shape == "schedule":
        rounds = at.rng.randint(1, 5)
        sigmas = [at.number(0.5, 5.0) for _ in range(rounds)]
        rates = [at.probability() for _ in range(rounds)] if at.rng.random() < 0.5 else [p] * rounds
        several = len(set(rates)) > 1
        training: Body = {"iterations": rounds, "sampling_probability": {"schedule": rates} if several else rates[0]}
        body = run(sampler, training, {"multiplier": {"schedule": sigmas}})
        return attained(body, products([one(rate, sigma) for rate, sigma in zip(rates, sigmas, strict=True)]))
    if shape == "also":
        other, rounds = at.number(0.6, 8.0), min(rounds, 3)
        also = [{"multiplier": other, "what": "another sum of the batch"}]
        body = run(sampler, {"iterations": rounds, "sampling_probability": p}, {"multiplier": noise, "also": also})
        counts = binomial(at.group, fraction(p))
        p_sums = {(float(j), float(j)): float(w) for j, w in counts.items()}
        q_sums = {(-a, -b): w for (a, b), w in p_sums.items()} if at.replaced else {(0.0, 0.0): 1.0}
        return Component(body, (power(gaussian(p_sums, q_sums, (noise, other)), rounds),))
    law = power(one(p, noise), rounds)
    training = {"iterations": rounds, "sampling_probability": {"max": p} if shape == "max" else p}
    body = run(sampler, training, {"multiplier": noise})
    less = power(one(p, noise, at.rng.uniform(0.1, 0.9)), rounds)
    return attained(body, law, less)


def _truncated(at: Setting) -> Component:
    """Return truncated Poisson batches of a small data set. A record that is set to zero takes its place in a batch."""
    if at.adjacency == "add-remove":
        raise Impossible
    size, p, noise = at.rng.randint(2 + at.group, 12), at.probability(0.05), at.number(0.5, 5.0)
    kept, rounds = at.rng.randint(1, size - 1), at.rng.choice([1, 2, 4])
    training = {"iterations": rounds, "dataset_size": size, "sampling_probability": p}
    body = run({"kind": "poisson", "truncate_to": kept}, training, {"multiplier": noise})
    own, rest = binomial(at.group, fraction(p)), binomial(size - at.group, fraction(p))

    def law(record: float, other: float) -> Sums:
        made: dict[tuple[float, ...], float] = {}
        for (j, chance), (r, weight) in every(own.items(), rest.items()):
            stays = {j: Fraction(1)} if j + r <= kept else without_replacement(kept, j, j + r)
            for i, share in stays.items():
                mean = (i * record + (min(j + r, kept) - i) * other,)
                made[mean] = made.get(mean, 0.0) + float(chance * weight * share)
        return {mean: weight for mean, weight in made.items() if weight}

    instead = -1.0 if at.replaced else 0.0
    pairs = [gaussian(law(1.0, other), law(instead, other), noise) for other in (0.0, -1.0, 1.0)]
    return Component(body, tuple(power(pair, rounds) for pair in pairs))


def fixed(at: Setting, kind: str) -> tuple[Body, Body, Callable[[int], Counts], int]:
    """Return the sampler, its training section, the law of the count for a number of special records, and the draws."""
    size = at.rng.choice([3, 4, 6, 10, 30, 100, 1000])
    draws = at.rng.randint(1, min(size - at.group, 6) if size > at.group else 1)
    sampler: Body = {"kind": kind}
    training = {"dataset_size": size, "expected_batch_size": draws}
    if at.group >= size:
        raise Impossible
    if kind == "fixed-size":
        return sampler, training, lambda k: without_replacement(draws, k, size), draws
    if kind == "with-replacement":
        return sampler, training, lambda k: binomial(draws, Fraction(k, size)), draws
    if at.group > 1 and kind != "must-wo" and at.adjacency == "add-remove":
        raise Impossible
    subset = at.rng.randint(draws, draws + 4) if kind == "must-wo" else at.rng.randint(1, min(size - 1, 8))
    sampler["subset_size"] = subset
    if kind == "must-ow":
        return (
            sampler,
            training,
            lambda k: two_stages(without_replacement(subset, k, size), lambda i: binomial(draws, Fraction(i, subset))),
            draws,
        )
    if kind == "must-wo":
        return (
            sampler,
            training,
            lambda k: two_stages(binomial(subset, Fraction(k, size)), lambda i: without_replacement(draws, i, subset)),
            draws,
        )
    return (
        sampler,
        training,
        lambda k: two_stages(binomial(subset, Fraction(k, size)), lambda i: binomial(draws, Fraction(i, subset))),
        draws,
    )


def fixed_draws(kind: str) -> Callable[[Setting], Component]:
    """Return the builder of a sampler with a fixed number of draws, in each of which another record may be displaced."""

    def build(at: Setting) -> Component:
        sampler, training, law, draws = fixed(at, kind)
        counts, noise, rounds = law(at.group), at.number(0.5, 6.0), at.rng.choice([1, 1, 2, 3, 8])
        body = run(sampler, training | {"iterations": rounds}, {"multiplier": noise})

        def one(record: float, instead: float, other: float) -> Law:
            def rest(j: int) -> float:
                return (draws - j) * other

            q = {(draws * other,): 1.0} if at.adjacency == "add-remove" else sums(counts, instead, rest)
            return gaussian(sums(counts, record, rest), q, noise)

        if at.adjacency == "add-remove":
            law = one(1.0, 0.0, -1.0)
            if kind in ("must-ow", "must-ww"):
                return Component(body, (power(law, rounds),))
            return attained(body, power(law, rounds), power(one(1.0, 0.0, 0.3), rounds))
        if at.replaced:
            choices = [one(1.0, -1.0, -1.0), one(1.0, -1.0, 1.0), one(1.0, -1.0, 0.0)]
        else:
            choices = [one(1.0, 0.0, -1.0), one(1.0, 0.0, 0.0), one(1.0, 0.0, 1.0)]
        pairs = [power(choice, rounds) for choice in choices]
        if rounds > 1:
            # Gradients may depend on what was released: the other records are turned by looking at the loss.
            epsilon = at.rng.uniform(0.0, 3.0)
            seen = adaptive(choices[0], choices, epsilon)
            turned = adaptive(choices[1], choices, epsilon)
            pairs += [product(one_seen, power(choices[0], rounds - 2)) for one_seen in (seen, turned)]
        if at.group == 1:
            pairs.append(power(_flat(at, counts, draws, noise), min(rounds, 4)) if rounds <= 4 else pairs[0])
        return Component(body, tuple(pairs))

    return build


def _flat(at: Setting, counts: Counts, draws: int, noise: float) -> Law:
    """Return a pair with gradients of norm 1 in the plane, or with a record that is set to zero."""
    angles = [at.rng.uniform(0.0, 2.0 * math.pi) for _ in range(3)]
    other, record, instead = ((math.cos(a), math.sin(a)) for a in angles)
    if not at.replaced:
        instead = (0.0, 0.0)

    def law(own: tuple[float, float]) -> Sums:
        made: dict[tuple[float, ...], float] = {}
        for j, weight in counts.items():
            mean = tuple(j * o + (draws - j) * u for o, u in zip(own, other, strict=True))
            made[mean] = made.get(mean, 0.0) + float(weight)
        return made

    return gaussian(law(record), law(instead), (noise, noise))


def cyclic(at: Setting) -> Component:
    p, parts, noise = at.probability(), at.rng.randint(1, 4), at.number(0.5, 4.0)
    rounds = at.rng.randint(1, 9)
    body = run(
        {"kind": "cyclic-poisson", "partitions": parts},
        {"iterations": rounds, "sampling_probability": p},
        {"multiplier": noise},
    )

    def of_part(records: int) -> Law:
        counts = binomial(records, fraction(p))
        return gaussian(sums(counts, 1.0), sums(counts, -1.0) if at.replaced else {(0.0,): 1.0}, noise)

    longest = -(-rounds // parts)
    if at.group == 1:
        return attained(body, power(of_part(1), longest))
    # All records in the first part, or spread over the parts.
    spread = [of_part(len(range(part, at.group, parts))) for part in range(min(parts, at.group))]
    turns = [len(range(part, rounds, parts)) for part in range(parts)]
    apart = products([power(one, turn) for one, turn in zip(spread, turns, strict=False) if turn])
    return Component(body, (power(of_part(at.group), longest), apart))


def patterns(
    at: Setting, weights: dict[tuple[float, ...], float], noise: float, entries: np.ndarray | None = None
) -> Law:
    """Return the law of a run from the probabilities of which rounds the record takes part in, and how often."""
    means: Sums = weights
    if entries is not None:
        means = dict[tuple[float, ...], float]()
        for taken, weight in weights.items():
            mean = tuple(float(x) for x in entries @ np.array(taken))
            means[mean] = means.get(mean, 0.0) + weight
    zero = (0.0,) * len(next(iter(means)))
    against = {tuple(-x for x in one): w for one, w in means.items()} if at.replaced else {zero: 1.0}
    return gaussian(means, against, (noise,) * len(zero))


def _of_group(at: Setting, one: dict[tuple[float, ...], float]) -> dict[tuple[float, ...], float]:
    """Return the law of how often the records of a group take part in each round, each by itself."""
    made = {(0.0,) * len(next(iter(one))): 1.0}
    for _ in range(at.group):
        more: dict[tuple[float, ...], float] = {}
        for (taken, weight), (own, share) in every(made.items(), one.items()):
            both = tuple(a + b for a, b in zip(taken, own, strict=True))
            more[both] = more.get(both, 0.0) + weight * share
        made = more
    return made


def allocation(at: Setting) -> Component:
    block = at.rng.randint(1, 3)
    # One replaced record is sampled, unless it is in every round.
    least = block if at.replaced and at.group == 1 else 1
    taken, blocks, noise = at.rng.randint(least, block), at.rng.choice([1, 1, 2]), at.number(0.5, 4.0)
    sampler = {"kind": "random-allocation", "iterations_per_allocation": block, "participations": taken}
    body = run(sampler, {"iterations": block * blocks}, {"multiplier": noise})
    chosen = [one for one in every((0.0, 1.0), repeat=block) if sum(one) == taken]
    law = power(patterns(at, _of_group(at, {one: 1.0 / len(chosen) for one in chosen}), noise), blocks)
    return Component(body, (law,))


def bins(at: Setting) -> Component:
    """Return balls in bins: the sums of the rounds of each bin are all that matters, so the bins' means are enumerated."""
    if at.replaced and at.group == 1:
        raise Impossible
    number, rounds, noise = at.rng.randint(1, 3), at.rng.randint(1, 7), at.number(0.7, 6.0)
    if rounds < number:
        raise Impossible
    body = run({"kind": "balls-in-bins", "bins": number}, {"iterations": rounds}, {"multiplier": noise})
    turns = [len(range(one, rounds, number)) for one in range(number)]
    weights = {
        tuple(math.sqrt(turns[one]) if one == k else 0.0 for one in range(number)): 1.0 / number for k in range(number)
    }
    return Component(body, (patterns(at, _of_group(at, weights), noise),))


BUILDERS: dict[str, Callable[[Setting], Component]] = {
    "poisson": poisson,
    **{kind: fixed_draws(kind) for kind in ("fixed-size", "with-replacement", "must-ow", "must-wo", "must-ww")},
    "random-allocation": allocation,
    "balls-in-bins": bins,
    "cyclic-poisson": cyclic,
}

"""Tools for tests of sampled mechanisms: enumerated laws, Toeplitz matrices, and estimates from samples."""

from collections.abc import Iterator
from functools import lru_cache
from itertools import product
from math import comb
from typing import Any

import numpy as np
from scipy.linalg import toeplitz  # type: ignore[import-untyped]

from pyaccount import _core

Array = np.ndarray[Any, np.dtype[np.float64]]


#: Participation patterns with their probabilities.
Law = dict[tuple[int, ...], float]


def renewal_law(n: int, b: int, p: float, *, warm: bool) -> Law:
    """Return the law of one record under b-min-sep sampling, enumerated round by round."""
    total = 1.0 + (b - 1) * p
    starts = [1.0 / total] + [p / total] * (b - 1) if warm else [1.0]
    law: Law = {}
    for x in product((0, 1), repeat=n):
        for start, chance in enumerate(starts):
            available, probability = start, chance
            for i, taken in enumerate(x):
                if i < available:
                    probability *= 1 - taken
                elif taken:
                    probability *= p
                    available = i + b
                else:
                    probability *= 1 - p
            if probability > 0.0:
                law[x] = law.get(x, 0.0) + probability
    return law


def users_law(n: int, b: int, p: float, k: int, *, warm: bool) -> Law:
    """Return the law of the numbers of a user's k records that are drawn in each round of b-min-sep sampling."""
    joins = 1.0 - (1.0 - p) ** k
    total = 1.0 + (b - 1) * joins
    starts = [1.0 / total] + [joins / total] * (b - 1) if warm else [1.0]
    law: Law = {}

    def walk(x: tuple[int, ...], probability: float) -> None:
        if len(x) >= n:
            law[x[:n]] = law.get(x[:n], 0.0) + probability
            return
        for j in range(k + 1):
            rest = (j, *[0] * (b - 1)) if j else (0,)
            walk((*x, *rest), probability * comb(k, j) * p**j * (1.0 - p) ** (k - j))

    for wait, chance in enumerate(starts):
        walk((0,) * wait, chance)
    return {x: probability for x, probability in law.items() if probability > 0.0}


def phase_law(n: int, parts: int, p: float) -> Law:
    """Return the law of cyclic Poisson sampling from a random part: each round of the part with probability p."""
    law: Law = {}
    for phase in range(parts):
        for x in product((0, 1), repeat=n):
            if all(i % parts == phase for i, taken in enumerate(x) if taken):
                turns = len(range(phase, n, parts))
                probability = p ** sum(x) * (1.0 - p) ** (turns - sum(x)) / parts
                law[x] = law.get(x, 0.0) + probability
    return {x: probability for x, probability in law.items() if probability > 0.0}


def allocation_law(t: int, k: int) -> Law:
    """Return the law of random allocation: k of t rounds, all choices equally likely."""
    chosen = [x for x in product((0, 1), repeat=t) if sum(x) == k]
    return dict.fromkeys(chosen, 1.0 / len(chosen))


def bin_law(n: int, bins: int) -> Law:
    return {tuple(int(i % bins == t) for i in range(n)): 1.0 / bins for t in range(bins)}


@lru_cache(maxsize=64)
def counts_law(items: tuple[tuple[tuple[int, ...], float], ...], others: int) -> Law:
    """Return the law of the numbers of other records in each place, by adding one record after the other."""
    places = len(items[0][0])
    found: Law = {(0,) * places: 1.0}
    for _ in range(others):
        following: Law = {}
        for (r, chance), (x, probability) in product(found.items(), items):
            key = tuple(a + b for a, b in zip(r, x, strict=True))
            following[key] = following.get(key, 0.0) + chance * probability
        found = following
    return found


def outcomes_of(x: tuple[int, ...], shares: list[float]) -> Iterator[tuple[tuple[int, ...], float]]:
    """Yield the outcomes of a pattern under truncation: 1 if nothing is truncated (a share of 0), 2 if it is kept, 0 if not."""
    choices = [
        [(0, 1.0)] if not taken else [(1, 1.0)] if share == 0.0 else [(2, share), (0, 1.0 - share)]
        for taken, share in zip(x, shares, strict=True)
    ]
    for combination in product(*choices):
        yield tuple(m for m, _ in combination), float(np.prod([weight for _, weight in combination]))


def pair_given(law: Law, r: tuple[int, ...], limit: int) -> tuple[Law, Law]:
    """Return the mixtures P and Q over multiples of columns, given the counts of other records."""
    shares = [limit / (count + 1) if count >= limit else 0.0 for count in r]
    present: Law = {}
    absent: Law = {}
    for x, probability in law.items():
        for m, weight in outcomes_of(x, shares):
            away = tuple(-1 if one == 2 else 0 for one in m)
            present[m] = present.get(m, 0.0) + probability * weight
            absent[away] = absent.get(away, 0.0) + probability * weight
    return present, absent


def lower_toeplitz(column: Array, n: int) -> Array:
    """Return the n×n lower-triangular Toeplitz matrix with this first column, which is filled up with zeros."""
    full = np.zeros(n)
    full[: len(column)] = column
    return np.asarray(toeplitz(full, np.zeros(n)))


def estimated(
    mechanism: _core.Sampled,
    direction: str,
    parameter: Any,
    stretch: float,
    epsilon: float,
    cap: float,
    shards: int,
    curve: _core.ComposedCurve | None = None,
) -> tuple[float, float, float]:
    """Return δ(ε) as the mean of samples from a proposal, its standard error, and the mean square. No sample exceeds the cap."""
    tables: list[tuple[float, float, list[tuple[float, float]]]] = [(epsilon, cap, [])]
    sums, _ = mechanism.simulate(
        direction,
        parameter,
        stretch,
        tables,
        edges=None,
        key=(3, 1, 1, 0),
        first=0,
        count=shards,
        threads=0,
        time_limit=None,
        curve=curve,
    )
    assert all(square <= cap * value * (1.0 + 1e-9) for ((_, value, square),) in sums)
    count = shards * _core.SHARD_SIZE
    mean = sum(shard[0][1] for shard in sums) / count
    square = sum(shard[0][2] for shard in sums) / count
    return mean, float(np.sqrt((square - mean * mean) / count)), square

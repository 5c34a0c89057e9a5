"""Partition selection on small tables: each partition of the record has some other records, and is selected by its own count.

The truncated geometric law is computed from its recursion in high precision, for every count. Counts with noise are cells above
the threshold and one outcome for what is not released.
"""

from __future__ import annotations

import math

import numpy as np
from mpmath import mp, mpf
from scipy.special import ndtr

from adversaries.cells import ERROR, gaussian, laplace
from adversaries.component import Component, Impossible, Setting, mechanism
from adversaries.laws import Array, Law, finite, positive, products

#: How many vectors of counts are drawn, beside those with one count everywhere.
_VECTORS = 6
#: The cells of a count above the threshold, on each side of its mean, and how far they reach.
_CELLS, _REACH = 60, 30.0
#: More counts than this have a law that is not followed to its end.
_COUNTS = 400


def partition_selection(at: Setting) -> Component:
    if at.group > 1:
        raise Impossible
    k = at.rng.choice([1, 1, 2, 3, 4])
    strategy = at.rng.choice(["truncated-geometric", "laplace", "gaussian"])
    body = {"strategy": strategy, "max_partitions": k}
    if strategy == "truncated-geometric":
        epsilon, delta = at.number(0.1, 3.0), at.number(1e-8, 0.1)
        body |= {"epsilon": epsilon, "delta": delta}
        laws = _truncated_geometric(epsilon, delta)
        whole = len(laws) < _COUNTS
        steps = laws if whole else laws[:: max(1, len(laws) // 40)]
    else:
        noise = at.number(0.4, 8.0)
        body["scale" if strategy == "laplace" else "sigma"] = noise
        height = at.rng.uniform(-0.5, 6.0 if strategy == "gaussian" else 14.0)
        threshold = float(f"{max(0.01, 1.0 + height * noise):.4g}")
        if at.rng.random() < 0.4:
            # The probability is stated, and the threshold follows from it, rounded up.
            chance = float(f"{_tail((threshold - 1.0) / noise, strategy):.3g}")
            if not 1e-30 < chance < 1.0:
                raise Impossible
            body["delta"] = chance
            threshold = _threshold(chance, noise, strategy)
        else:
            body["threshold"] = threshold
        several = [0, 1, 2, math.ceil(threshold), math.ceil(threshold) + 3]
        one = (laplace if strategy == "laplace" else gaussian)({(1.0,): 1.0}, {(0.0,): 1.0}, noise)
        # The limit of very many records, and cells of real counts.
        steps = [_released(0, threshold, noise, strategy), one]
        steps += [_released(count, threshold, noise, strategy) for count in several[1:]]
        whole = False
    vectors = [[law] * k for law in (steps if len(steps) < 30 else [steps[0], *at.rng.sample(steps, 20)])]
    for _ in range(_VECTORS if k > 1 else 0):
        vectors.append([at.rng.choice(steps) for _ in range(k)])
    vectors += [[steps[0]] * j + [steps[1]] * (k - j) for j in range(1, k)]
    pairs = [products(vector) for vector in vectors]
    if at.replaced:
        added = [products([law.reversed() for law in vector]) for vector in vectors]
        pairs = [products([pairs[0], one]) for one in added[:4]] + [products([one, added[0]]) for one in pairs[1:8]]
    worst = whole and k == 1 and not at.replaced and len(steps) < 30
    return Component(mechanism("partition-selection", **body), tuple(pairs), worst)


def _truncated_geometric(epsilon: float, delta: float) -> list[Law]:
    """Return the laws of all counts, from the recursion that defines the probabilities."""
    with mp.workdps(60):
        e, d = mpf(repr(epsilon)), mpf(repr(delta))
        chances, laws = [mpf(0)], []
        while chances[-1] < 1 and len(laws) < _COUNTS:
            last = chances[-1]
            chances.append(min(mp.exp(e) * last + d, 1 - mp.exp(-e) * (1 - last - d), mpf(1)))
            p, q = chances[-1], last
            laws.append(finite([float(p), float(1 - p)], [float(q), float(1 - q)]))
        return laws


def _tail(height: float, strategy: str) -> float:
    if strategy == "gaussian":
        return float(ndtr(-height))
    return 0.5 * math.exp(-height) if height >= 0.0 else 1.0 - 0.5 * math.exp(height)


def _threshold(chance: float, noise: float, strategy: str) -> float:
    """Return a threshold that a count of 1 passes with this probability, up to a relative 1e-13 of it."""
    low, high = -40.0, 700.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _tail(middle, strategy) > chance else (low, middle)
    return 1.0 + noise * high


def _released(count: int, threshold: float, noise: float, strategy: str) -> Law:
    """Return the law of what is released of a partition with `count` other records; one with none is not in the table."""
    middle = count + 0.5
    edges = np.unique(
        np.concatenate(
            [
                [threshold],
                threshold + noise * np.linspace(0.0, 4.0, _CELLS)[1:],
                middle + noise * np.linspace(-_REACH, _REACH, 2 * _CELLS),
            ]
        )
    )
    edges = np.append(edges[edges >= threshold], np.inf)
    masses = [_masses(edges, mean, noise, strategy) for mean in (count + 1, count)]
    if count == 0:
        masses[1] = np.zeros(len(edges))
        masses[1][0] = 1.0
    return positive_or_shown(Law(masses[0], masses[1], ERROR), shown=count == 0)


def _masses(edges: Array, mean: float, noise: float, strategy: str) -> Array:
    """Return the mass below the first edge, and those of the cells between edges."""
    at = (edges - mean) / noise
    if strategy == "gaussian":
        left, right = at[:-1], at[1:]
        cells = np.where(left > 0.0, ndtr(-left) - ndtr(-right), ndtr(right) - ndtr(left))
        return np.concatenate([[ndtr(at[0])], cells])
    below = np.where(at < 0.0, 0.5 * np.exp(np.minimum(at, 0.0)), 1.0 - 0.5 * np.exp(-np.maximum(at, 0.0)))
    above = np.where(at > 0.0, 0.5 * np.exp(-np.maximum(at, 0.0)), 1.0 - 0.5 * np.exp(np.minimum(at, 0.0)))
    cells = np.where(at[:-1] > 0.0, above[:-1] - above[1:], below[1:] - below[:-1])
    return np.concatenate([[below[0]], cells])


def positive_or_shown(law: Law, *, shown: bool) -> Law:
    """Return the law without outcomes whose masses are too small for doubles; those that show the record are one."""
    if not shown:
        return positive(law)
    passed = float(np.sum(law.p[1:]))
    return finite([passed, float(law.p[0])], [0.0, 1.0], ERROR)

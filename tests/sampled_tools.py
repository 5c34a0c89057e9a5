"""What tests of sampled mechanisms share: laws by enumeration, the matrix of a first column, estimates from samples."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from scipy.linalg import toeplitz  # type: ignore[import-untyped]

from pyaccount import _core

Array = np.ndarray[Any, np.dtype[np.float64]]


#: Participation patterns with their probabilities.
Law = dict[tuple[int, ...], float]


def renewal_law(n: int, b: int, p: float, *, warm: bool) -> Law:
    """b-min-sep sampling of one record, by going through the rounds."""
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


def bin_law(n: int, bins: int) -> Law:
    return {tuple(int(i % bins == t) for i in range(n)): 1.0 / bins for t in range(bins)}


def lower_toeplitz(column: Array, n: int) -> Array:
    """The n×n lower-triangular Toeplitz matrix with this first column, filled up with zeros."""
    full = np.zeros(n)
    full[: len(column)] = column
    return np.asarray(toeplitz(full, np.zeros(n)))


def estimated(  # noqa: PLR0917 - a proposal, and how many samples
    mechanism: _core.Sampled,
    direction: str,
    parameter: Any,
    stretch: float,
    epsilon: float,
    cap: float,
    shards: int,
    curve: _core.ComposedCurve | None = None,
) -> tuple[float, float, float]:
    """δ(ε) as the mean of samples from a proposal, its standard error, and the mean square; no sample is above the cap."""
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

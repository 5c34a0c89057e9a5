"""What tests of sampled mechanisms share: the matrix of a first column, and estimates from samples."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import toeplitz  # type: ignore[import-untyped]

from pyaccount import _core

Array = np.ndarray[Any, np.dtype[np.float64]]


def lower_toeplitz(column: Array, n: int) -> Array:
    """The n×n lower-triangular Toeplitz matrix with this first column, filled up with zeros."""
    full = np.zeros(n)
    full[: len(column)] = column
    return np.asarray(toeplitz(full, np.zeros(n)))


def estimated(  # noqa: PLR0917 - a proposal, and how many samples
    mechanism: _core.Sampled, direction: str, parameter: float, stretch: float, epsilon: float, cap: float, shards: int
) -> tuple[float, float, float]:
    """δ(ε) as the mean of samples from a proposal, its standard error, and the mean square."""
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
    )
    count = shards * _core.SHARD_SIZE
    mean = sum(shard[0][1] for shard in sums) / count
    square = sum(shard[0][2] for shard in sums) / count
    return mean, float(np.sqrt((square - mean * mean) / count)), square

"""Sums that are the same on every processor.

Linear algebra libraries choose their kernels, and with them the order of sums, by the processor and the number of
threads. Sums on which a certificate depends are computed here instead: exactly with one rounding, or in a fixed order.
Searches for good coefficients may use anything that is fast, because they only propose a matrix.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from pyaccount import _core

Vector = NDArray[np.float64]
Entries = NDArray[np.float64]


def total(terms: Vector) -> float:
    """Return the sum of non-negative terms, correctly rounded; infinite if it, or a term, exceeds the largest double."""
    try:
        return math.fsum(terms.tolist())
    except OverflowError:
        return math.inf


def norm(vector: Vector) -> float:
    """Return ‖v‖₂: the root of a correctly rounded sum of rounded squares, none of which may overflow."""
    return math.sqrt(total(np.square(vector)))


def gram(vectors: Vector) -> Vector:
    """Return the inner products of the rows of a matrix.

    Each is off by at most (m + 1)·1.1e−16 of Σ |a_k·b_k|, where m is the length of the rows.
    """
    rows = len(vectors)
    return np.frombuffer(_core.gram(np.ascontiguousarray(vectors), rows)).reshape(rows, rows)


def quotient(series: Vector, divisor: Vector) -> Vector:
    """Return the first coefficients of a(x)/c(x), as many as `series` has; c_0 ≠ 0.

    An overflow gives ∞ or NaN. Time O(n·bands).
    """
    a, c = (np.ascontiguousarray(vector, dtype=np.float64) for vector in (series, divisor))
    return np.frombuffer(_core.series_quotient(a, c))


def autocorrelation(column: Vector) -> Vector:
    """Return Σ_i c_i·c_{i+k} for each k, by numpy's pairwise sums, whose order depends only on their length.

    Time O(n²).
    """
    return np.array([(column[: len(column) - k] * column[k:]).sum() for k in range(len(column))])


def spaced_sum(column: Vector, rounds: int, apart: int, most: int) -> Vector:
    """Return Σ_{k < most} c_{i − k·apart} for each round i below `rounds`.

    That is the sum of the first column and of those that are multiples of `apart` later, computed by doubling: for c ≥
    0 the relative error of each sum is at most 2·log₂(most) units of rounding. Time O(rounds·log(most)).
    """
    power = np.zeros(rounds)
    power[: len(column)] = column[:rounds]
    found, before, size = np.zeros(rounds), 0, 1
    while most:
        if most & 1 and before * apart < rounds:
            found[before * apart :] += power[: rounds - before * apart]
        before += size * (most & 1)
        shift = size * apart
        if shift < rounds:
            doubled = power.copy()
            doubled[shift:] += power[:-shift]
            power = doubled
        most, size = most >> 1, 2 * size
    return found

"""ln Σ exp, for the many small arrays of oracles: scipy's own takes a quarter of a millisecond for each, whatever its size."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]


def logsumexp(exponents: Any, axis: int | None = None, b: Any = None) -> Any:
    """ln Σ b exp(x) along an axis; weights b are 1 unless they are given, and none is negative."""
    x: Array = np.asarray(exponents, dtype=float)
    with np.errstate(divide="ignore"):
        if b is not None:
            x = x + np.log(b)
        top = np.max(x, axis=axis, keepdims=True)
        # Where every term is 0 their sum is.
        top = np.where(np.isfinite(top), top, 0.0)
        sums = np.log(np.sum(np.exp(x - top), axis=axis, keepdims=True)) + top
    return sums.squeeze() if axis is None else sums.squeeze(axis)

"""Sums of exponentials by their logarithms, which neither overflow nor lose a small one beside 1."""

from __future__ import annotations

import math
from collections.abc import Sequence


def log_sum(logarithms: Sequence[float]) -> float:
    """Return ln Σ e^x."""
    most = max(logarithms)
    if not math.isfinite(most):
        return most
    return most + math.log(math.fsum(math.exp(one - most) for one in logarithms))

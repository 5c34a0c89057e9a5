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


def shifted(logarithm: float) -> float:
    """Return ln(1 + e^x)."""
    return logarithm + math.log1p(math.exp(-logarithm)) if logarithm > 0.0 else math.log1p(math.exp(logarithm))


def log_expm1(x: float) -> float:
    """Return ln(e^x − 1) for x ≥ 0; −∞ at 0."""
    if x <= 0.0:
        return -math.inf
    return math.log(math.expm1(x)) if x < 1.0 else x + math.log1p(-math.exp(-x))

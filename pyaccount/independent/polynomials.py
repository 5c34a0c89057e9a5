"""Polynomials that are above (x − 1)₊, proven in rational numbers (section 10.8)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise


def is_above(coefficients: Sequence[Fraction]) -> bool:
    """Return whether p(x) = Σ a_k·x^k ≥ (x − 1)₊ is proven for all x ≥ 0: p ≥ 0 on [0, 1], and p − x + 1 ≥ 0 on [1, ∞).

    With v = 1/x the second is v^d·(p − x + 1) ≥ 0 on [0, 1], the polynomial with the coefficients in reverse.
    """
    beyond = [*coefficients, *[Fraction(0)] * (2 - len(coefficients))]
    beyond[0] += 1
    beyond[1] -= 1
    return _nonnegative(coefficients) and _nonnegative(beyond[::-1])


def _nonnegative(coefficients: Sequence[Fraction]) -> bool:
    """Return whether a polynomial is proven to be at least 0 on [0, 1].

    Its values are means of its Bernstein coefficients Σ_(k ≤ i) C(i, k)/C(d, k)·a_k.
    """
    d = len(coefficients) - 1
    parts = [[Fraction(math.comb(i, k), math.comb(d, k)) * coefficients[k] for k in range(i + 1)] for i in range(d + 1)]
    return _means([sum(each, Fraction(0)) for each in parts], 40)


def _means(here: list[Fraction], depth: int) -> bool:
    """Return whether means of such coefficients are at least 0: if one is negative, the interval is halved (de Casteljau)."""
    if min(here) >= 0:
        return True
    if here[0] < 0 or here[-1] < 0 or not depth:
        return False
    rows = [here]
    while len(rows[-1]) > 1:
        rows.append([(a + b) / 2 for a, b in pairwise(rows[-1])])
    return _means([row[0] for row in rows], depth - 1) and _means([row[-1] for row in rows[::-1]], depth - 1)

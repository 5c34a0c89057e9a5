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

    Its values are means of its Bernstein coefficients Σ_(k ≤ i) C(i, k)/C(d, k)·a_k. If one is negative, the interval is halved
    (de Casteljau's algorithm), at most 40 times.
    """
    d = len(coefficients) - 1
    whole = [
        sum((Fraction(math.comb(i, k), math.comb(d, k)) * coefficients[k] for k in range(i + 1)), Fraction(0))
        for i in range(d + 1)
    ]
    waiting = [(whole, 0)]
    while waiting:
        here, depth = waiting.pop()
        if min(here) >= 0:
            continue
        if here[0] < 0 or here[-1] < 0 or depth == 40:
            return False
        left, right = [], []
        while here:
            left.append(here[0])
            right.append(here[-1])
            here = [(a + b) / 2 for a, b in pairwise(here)]
        waiting += [(left, depth + 1), (right[::-1], depth + 1)]
    return True

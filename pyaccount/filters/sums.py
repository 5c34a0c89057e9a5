"""Sums and differences of bounds, rounded outward.

Every double is a fraction, so that a sum is computed exactly and rounded once: 0.1 added ten times is rounded ten times,
each time by less than one unit in the last place, and a sum that is a double itself is not moved at all.
"""

from __future__ import annotations

import math
from fractions import Fraction

from pyaccount.document.mechanisms.base import rounded_up


def sum_up(*numbers: float) -> float:
    """Return the least double that is at least the sum of non-negative numbers, infinity among them."""
    if math.inf in numbers:
        return math.inf
    return rounded_up(sum(map(Fraction, numbers), Fraction(0)))


def fits(budget: Fraction | float, *numbers: float) -> bool:
    """Return whether the exact sum of non-negative numbers is at most the budget."""
    return math.inf not in numbers and sum(map(Fraction, numbers), Fraction(0)) <= Fraction(budget)


def left_down(budget: Fraction | float, spent: float) -> float:
    """Return the largest double that is at most budget − spent, and at least 0."""
    if spent == math.inf:
        return 0.0
    exact = Fraction(budget) - Fraction(spent)
    return max(0.0, -rounded_up(-exact))

"""Polynomials that bound δ(ε) by several moments: what is proven of them."""

import math
import random

import numpy as np
import pytest

from pyaccount.risk.polynomials import MomentPolynomial


def of(*coefficients: float) -> MomentPolynomial:
    return MomentPolynomial(coefficients, ((0.0, 0.0),) * len(coefficients))


@pytest.mark.parametrize(
    ("coefficients", "dominates"),
    [
        # x²/4 − x + 1 = (x/2 − 1)², and the same with another square: both touch.
        ((0.0, 0.0, 0.25), True),
        ((0.0, 0.0, math.nextafter(0.25, 0.0)), False),
        ((0.0, 0.0, math.nextafter(0.25, 1.0)), True),
        ((0.0, 1.0), True),
        ((0.0, math.nextafter(1.0, 0.0)), False),
        ((-1e-300, 1.0, 1.0), False),
        # (x − ½)² touches 0 within, and a little below it does not hold.
        ((0.25, -1.0, 1.0, 1.0), True),
        ((0.25, -1.0, 1.0), True),
        ((0.2499, -1.0, 1.0), False),
        # x³ − x² + 4x/27 has a double root nowhere, and is below 0 somewhere.
        ((0.0, 4.0 / 27.0, -1.0, 1.0), False),
        # The last coefficient decides far out.
        ((1.0, 1.0, 1.0, -1e-200), False),
        ((math.inf, 1.0, 1.0), False),
        ((math.nan, 1.0, 1.0), False),
        ((1.0,), False),
    ],
)
def test_what_dominates_is_told_from_what_does_not(coefficients: tuple[float, ...], dominates: bool) -> None:
    assert of(*coefficients).dominates is dominates


def test_random_polynomials_are_judged_as_their_values_are() -> None:
    """On a fine grid, where the least value is not too near 0."""
    draw = random.Random(5)
    grid = np.concatenate([np.linspace(0.0, 1.0, 4001), 1.0 / np.linspace(1.0, 1e-6, 4001)])
    judged = [0, 0]
    for _ in range(300):
        degree = draw.randint(2, 7)
        coefficients = [draw.gauss(0.0, 1.0) for _ in range(degree + 1)]
        coefficients[0], coefficients[-1] = abs(coefficients[0]), abs(coefficients[-1])
        excess = np.polyval(coefficients[::-1], grid) - np.maximum(grid - 1.0, 0.0)
        least = float(np.min(excess / (1.0 + grid**degree)))
        if abs(least) > 1e-4:
            assert of(*coefficients).dominates == (least > 0.0), coefficients
            judged[least > 0.0] += 1
    assert min(judged) > 30


def test_no_bound_is_better_than_none_where_numbers_end() -> None:
    assert of(0.0, 0.0, 0.25).bound(0.0) == pytest.approx(0.25)
    assert MomentPolynomial((0.0, 0.0, 0.25), ((0.0, 0.0), (0.0, 0.0), (0.0, math.inf))).bound(1.0) == 1.0
    # Not even where a power underflows whose coefficient is large.
    large = MomentPolynomial((0.0, 0.0, 1e290), ((0.0, 0.0),) * 3)
    assert large.bound(750.0) == pytest.approx(math.exp(290.0 * math.log(10.0) - 750.0), rel=1e-9)
    # Beyond all doubles nothing is claimed to be 0.
    assert of(0.0, 0.0, 0.25).bound(800.0) > 0.0

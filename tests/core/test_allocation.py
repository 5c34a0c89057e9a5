"""One of several rounds, chosen in secret: against quadrature, closed forms, the central limit and dominance."""

import math
from functools import partial
from itertools import pairwise

import mpmath as mp
import numpy as np
import oracle
import pytest
from log_normals import quadrature
from scipy.special import ndtr  # type: ignore[import-untyped]
from snapshots import Snapshot

from pyaccount._core import Inspection, RoundProfile

SPACING = 0.01


def between(
    squares: list[float],
    counts: list[int],
    epsilon: float,
    *,
    reverse: bool,
    spacing: float = SPACING,
    negligible: float = 1e-30,
) -> tuple[float, float]:
    """Return the two bounds on δ, each moved outwards by its error."""
    made = partial(RoundProfile.allocation, squares, counts, spacing, negligible, reverse=reverse)
    below, above = (Inspection.profile(made(below=side), epsilon)[:2] for side in (True, False))
    return below[0] - below[1], above[0] + above[1]


@pytest.mark.parametrize("squares", [[1.0, 1.0], [0.04, 0.04], [6.0, 6.0], [0.3, 2.0], [0.7] * 3, [0.5, 0.5, 3.0]])
def test_two_and_three_rounds(squares: list[float]) -> None:
    kinds = sorted(set(squares))
    counts = [squares.count(square) for square in kinds]
    for reverse in (False, True):
        for epsilon in (-0.7, 0.0, 0.05, 0.4, 1.0, 1.9):
            truth = quadrature(squares, epsilon, reverse=reverse)
            if truth < 1e-9:
                continue  # Below what the quadrature's cancellation leaves.
            low, high = between(kinds, counts, epsilon, reverse=reverse)
            assert low <= truth * (1 + 1e-8)
            assert truth * (1 - 1e-8) <= high
            assert high - low <= 0.02 * truth


@pytest.mark.parametrize(("square", "epsilon"), [(1.0, 22.0), (0.01, 1.5), (9.0, 70.0)])
def test_a_delta_of_1e_100(square: float, epsilon: float) -> None:
    """δ of two rounds is computed in many digits, far in the tail: E (Z₁ + Z₂ − 2e^ε)₊/2."""
    with mp.workdps(40):
        s, edge = mp.mpf(square), 2 * mp.exp(mp.mpf(epsilon))
        root = mp.sqrt(s)

        def inner(z: mp.mpf) -> mp.mpf:
            value = mp.exp(root * z - s / 2)
            left = edge - value
            density = mp.exp(-z * z / 2) / mp.sqrt(2 * mp.pi)
            if left <= 0:
                return density * (1 - left)
            d = (-mp.log(left) + s / 2) / root
            return density * (oracle.tail(-d) - left * oracle.tail(root - d))

        # Where the first term alone reaches the edge, the curvature of the integrand is nearly that of a corner.
        whole = (mp.log(edge) + s / 2) / root
        truth = mp.quad(inner, [*mp.linspace(-12, whole, 41), *mp.linspace(whole, whole + 12, 13)[1:]])
        truth /= 2
    assert 1e-125 < truth < 1e-80
    low, high = between([square], [2], epsilon, reverse=False, negligible=1e-130)
    assert low <= truth <= high
    assert high - low <= 0.1 * truth


def test_one_round_is_gaussian() -> None:
    for sigma in (0.4, 1.0, 30.0):
        for epsilon in (-0.4, 0.0, 0.1, 2.0 / sigma):
            truth = oracle.gaussian_delta(mp.mpf(1) / mp.mpf(sigma), mp.mpf(epsilon))
            for reverse in (False, True):
                low, high = between([1.0 / sigma**2], [1], epsilon, reverse=reverse)
                assert low <= truth * (1 + mp.mpf(10) ** -12)
                assert truth * (1 - mp.mpf(10) ** -12) <= high
                assert high - low <= 1e-2 * high


def test_many_rounds_are_nearly_normal() -> None:
    """S has mean 1 and variance (e^s − 1)/T; E (S − 1)₊ of a normal law is its deviation over √(2π)."""
    rounds, square = 100_000, 1.0
    deviation = math.sqrt(math.expm1(square) / rounds)
    for reverse in (False, True):
        low, high = between([square], [rounds], 0.0, reverse=reverse, spacing=0.05)
        assert low <= high <= low * 1.01
        normal = deviation / math.sqrt(2 * math.pi)
        assert low * 0.999 <= normal <= high * 1.001
    # Two deviations from the mean, skewness changes the result by some 4 % (Edgeworth's first term).
    skewness = (math.e + 2) * math.sqrt(math.e - 1) / math.sqrt(rounds)
    density = math.exp(-2) / math.sqrt(2 * math.pi)
    expected = deviation * (density - 2 * ndtr(-2.0) + skewness / 6 * 2 * density)
    low, high = between([square], [rounds], math.log1p(2 * deviation), reverse=False, spacing=0.05)
    assert low * 0.997 <= expected <= high * 1.003
    assert high <= 1.06 * low


def test_more_rounds_hide_better_and_more_noise_does() -> None:
    for reverse in (False, True):
        for epsilon in (0.0, 0.3):
            lows_highs = [between([1.0], [count], epsilon, reverse=reverse) for count in (1, 2, 5, 17, 100)]
            assert all(more[1] < fewer[0] for fewer, more in pairwise(lows_highs))
            lows_highs = [between([square], [20], epsilon, reverse=reverse) for square in (4.0, 1.0, 0.2)]
            assert all(noisier[1] < quieter[0] for quieter, noisier in pairwise(lows_highs))


def test_ends_of_the_domain(snapshot: Snapshot) -> None:
    for square, rounds in ((1e-12, 1), (1e-12, 1000), (350.0, 3)):
        for reverse in (False, True):
            made = partial(RoundProfile.allocation, [square], [rounds], 0.05, 1e-120, reverse=reverse)
            for epsilon in (-800.0, -1.0, 0.0, 1e-6, 3.0, 600.0, 720.0, 5000.0):
                points = [Inspection.profile(made(below=side), epsilon) for side in (True, False)]
                assert np.isfinite(points).all()
                assert max(0.0, points[0][0] - points[0][1]) <= points[1][0] + points[1][1]
    snapshot.raised(RoundProfile.allocation, [900.0], [3], 0.05, 1e-120, reverse=False, below=False)

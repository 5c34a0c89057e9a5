"""What points of a profile imply elsewhere: never below the truth, and as sharp as convexity in e^ε allows."""

import math

import mpmath as mp
import numpy as np
import pytest
from scipy.optimize import linprog  # type: ignore[import-untyped]

from pyaccount.risk.implied import implied
from pyaccount.risk.rate import with_more_points
from pyaccount.risk.tradeoff import Bound, TradeOff


def gaussian(mu: float, epsilon: float) -> float:
    """δ of N(μ, 1) against N(0, 1), to fifty digits."""
    with mp.workdps(50):
        a, b = mp.mpf(mu) / 2 - mp.mpf(epsilon) / mu, -mp.mpf(mu) / 2 - mp.mpf(epsilon) / mu
        return float(mp.ncdf(a) - mp.exp(epsilon) * mp.ncdf(b))


def test_a_guarantee_holds_at_every_larger_epsilon() -> None:
    points = [Bound(8.0, 1e-4)]
    for epsilon in (8.0, 8.1, 40.0, 800.0):
        assert implied(points, points, epsilon) == 1e-4


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 1.7, 1.999])
def test_a_pure_guarantee_is_randomized_response(epsilon: float) -> None:
    """The largest profile with δ(2) = 0 in both directions: two answers that are told truly with e²/(1 + e²)."""
    with mp.workdps(50):
        truth = float((mp.exp(2) - mp.exp(epsilon)) / (1 + mp.exp(2)))
    found = implied([Bound(2.0, 0.0)], [Bound(2.0, 0.0)], epsilon)
    assert truth <= found <= truth * (1.0 + 1e-12)


@pytest.mark.parametrize("mu", [0.1, 1.0, 6.0])
def test_chords_are_above_the_profile(mu: float) -> None:
    places = [0.0, 0.5, 2.0, 9.0, 30.0, 300.0]
    points = [Bound(place, gaussian(mu, place)) for place in places]
    for epsilon in (0.0, 1e-12, 0.1, 0.7, 3.0, 8.999, 20.0, 299.0, 301.0, 5000.0):
        assert implied(points, points, epsilon) >= gaussian(mu, epsilon) * (1.0 - 1e-15)
    # What is listed is not lost.
    for point in points:
        assert implied(points, points, point.epsilon) <= point.delta


def test_nothing_sharper_follows() -> None:
    """Against a linear programme over all likelihood ratios on a fine grid: the largest δ(ε) that the points leave open."""
    rng = np.random.default_rng(4)
    grid = np.array([round(0.05 * k, 10) for k in range(-100, 101)])
    for _ in range(5):
        mu = rng.uniform(0.5, 2.5)
        remove = [Bound(e, gaussian(mu, e)) for e in (0.5, 2.0, 3.5)]
        add = [Bound(e, gaussian(0.7 * mu, e)) for e in (1.0, 3.0)]
        # Q-masses q at loss l, P-masses q e^l, and an atom of P at infinite loss.
        ratio = np.exp(grid)

        def hockey(x: float, ratio: np.ndarray = ratio) -> np.ndarray:
            return np.append(np.maximum(ratio - x, 0.0), 1.0)

        def back(x: float, ratio: np.ndarray = ratio) -> np.ndarray:
            return np.append(np.maximum(1.0 - x * ratio, 0.0), 0.0)

        limits = [hockey(math.exp(e)) for e, _ in remove] + [back(math.exp(e)) for e, _ in add]
        most = [delta for _, delta in remove] + [delta for _, delta in add]
        for epsilon in (0.0, 0.25, 1.0, 2.5, 4.0):
            best = linprog(
                -hockey(math.exp(epsilon)),
                A_ub=np.array(limits),
                b_ub=most,
                A_eq=np.array([np.append(ratio, 1.0), np.append(np.ones_like(ratio), 0.0)]),
                b_eq=[1.0, 1.0],
            )
            assert best.success
            found = implied(remove, add, epsilon)
            assert -best.fun <= found * (1.0 + 1e-7) + 1e-9
            assert found <= -best.fun * 1.02 + 1e-6


@pytest.mark.parametrize("alpha", [0.1, 1e-3, 1e-5])
def test_more_points_lower_a_rate_no_further_than_is_said(alpha: float) -> None:
    """Of N(1.5, 1) against N(0, 1): two points leave a rate that is far too high, and say so; with many it is near the truth."""
    mu = 1.5
    with mp.workdps(30):
        truth = float(mp.ncdf(mu + mp.sqrt(2) * mp.erfinv(2 * mp.mpf(alpha) - 1)))
    for places in ((1.0, 8.0), (0.0, 1.0, 4.0), tuple(0.25 * k for k in range(41))):
        points = tuple(Bound(place, gaussian(mu, place)) for place in places)
        curve = TradeOff(points, points)
        most, least = curve.true_positive_rate(alpha), with_more_points(curve, alpha)
        assert least <= truth * (1.0 + 1e-9)
        assert truth <= most * (1.0 + 1e-9)
    # The last ones leave little to be gained.
    assert most <= 1.05 * least
    assert with_more_points(TradeOff((Bound(0.0, 1.0),), (Bound(0.0, 1.0),)), alpha) <= 1.0

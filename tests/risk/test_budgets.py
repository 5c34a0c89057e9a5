"""Measures of risk from points of a profile: enclosed, against exact trade-off functions of finite and of Gaussian pairs."""

import math
import random
from statistics import NormalDist
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from scipy.optimize import linprog  # type: ignore[import-untyped]

from pyaccount.directions import DIRECTIONS
from pyaccount.risk.advantage import AdvantageBudget
from pyaccount.risk.budget import Budget, Enclosure, attained_at_least
from pyaccount.risk.gaussian_mu import GaussianBudget
from pyaccount.risk.implied import implied
from pyaccount.risk.polynomials import MomentPolynomial
from pyaccount.risk.rate import RateBudget, with_more_points
from pyaccount.risk.tradeoff import Bound, TradeOff

NORMAL = NormalDist()


class Pair:
    """Two laws on finitely many outcomes."""

    def __init__(self, first: list[float], second: list[float]) -> None:
        self.sides = {"remove": (first, second), "add": (second, first)}

    def delta(self, side: str, epsilon: float) -> float:
        """Σ (P − e^ε Q)₊."""
        return math.fsum(max(0.0, p - math.exp(epsilon) * q) for p, q in zip(*self.sides[side], strict=True))

    def rate(self, side: str, alpha: float) -> float:
        """The best test by Neyman and Pearson: outcomes by falling likelihood ratio, the last one at random."""
        found = 0.0
        for p, q in sorted(zip(*self.sides[side], strict=True), key=lambda pq: -(pq[0] / pq[1] if pq[1] else math.inf)):
            if q > alpha:
                return found + p * alpha / q
            found, alpha = found + p, alpha - q
        return found


class Normals:
    """N(μ, 1) against N(0, 1)."""

    def __init__(self, mu: float) -> None:
        self.mu = mu

    def delta(self, side: str, epsilon: float) -> float:
        """Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ)."""
        mu = self.mu
        return NORMAL.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * NORMAL.cdf(-mu / 2 - epsilon / mu)

    def rate(self, side: str, alpha: float) -> float:
        """Φ(Φ⁻¹(α) + μ)."""
        return NORMAL.cdf(NORMAL.inv_cdf(alpha) + self.mu)


def laws(count: int, seed: int) -> Pair:
    draw = random.Random(seed)
    both = [[draw.expovariate(1.0) ** 2 for _ in range(count)] for _ in range(2)]
    return Pair(*([part / sum(parts) for part in parts] for parts in both))


def looked_at(budget: Budget, pair: Any, tolerance: float, width: float = 1e-9) -> tuple[dict[Any, Any], float, float]:
    """The points that the budget asks for, each enclosed so closely, and the interval of the measure."""
    places: dict[Any, set[float]] = {side: set(budget.places()) for side in DIRECTIONS}
    for _ in range(12):
        points = {
            side: [
                Enclosure(e, pair.delta(side, e) * (1 - width) - 1e-16, pair.delta(side, e) * (1 + width) + 1e-16)
                for e in sorted(places[side])
            ]
            for side in DIRECTIONS
        }
        low, high = budget.at_least(points), budget.at_most(points)
        if high - low <= tolerance * high:
            break
        for side, more in budget.finer(points, tolerance).items():
            places[side] |= set(more)
    return points, low, high


@pytest.mark.parametrize("alpha", [1e-3, 0.02, 0.3])
@pytest.mark.parametrize(
    "pair",
    [laws(4, 1), laws(9, 2), laws(40, 3), Normals(0.3), Normals(2.0)],
    ids=["4 outcomes", "9 outcomes", "40 outcomes", "μ = 0.3", "μ = 2"],
)
def test_rates_are_enclosed_and_narrowed(pair: Any, alpha: float) -> None:
    exact = max(pair.rate(side, alpha) for side in DIRECTIONS)
    points, low, high = looked_at(RateBudget(0.5, alpha), pair, 1e-5)
    assert low <= exact * (1 + 1e-9)
    assert exact <= high * (1 + 1e-9)
    assert high - low <= 1e-5 * high
    # Of one direction less is known, and never more than is true.
    assert attained_at_least(RateBudget(0.5, alpha), points) <= exact * (1 + 1e-9)


def test_few_wide_points_enclose_too() -> None:
    for seed in range(60):
        draw, pair = random.Random(seed), laws(5, seed)
        alpha = 10 ** draw.uniform(-3, -0.2)
        budget = RateBudget(0.9 * (1 - alpha), alpha)
        points = {}
        for side in DIRECTIONS:
            places = [0.0, *sorted(draw.uniform(0.0, 4.0) for _ in range(draw.randrange(4)))]
            exact = [pair.delta(side, place) for place in places]
            points[side] = [
                Enclosure(place, max(0.0, delta - draw.uniform(0, 0.1)), min(1.0, delta + draw.uniform(0, 0.1)))
                for place, delta in zip(places, exact, strict=True)
            ]
        truth = max(pair.rate(side, alpha) for side in DIRECTIONS)
        assert budget.at_least(points) <= truth + 1e-12, seed
        assert attained_at_least(budget, points) <= truth + 1e-12, seed
        assert budget.at_most(points) >= truth - 1e-12, seed


def test_the_advantage_is_the_total_variation() -> None:
    pair = laws(7, 5)
    exact = 0.5 * sum(abs(p - q) for p, q in zip(*pair.sides["remove"], strict=True))
    _, low, high = looked_at(AdvantageBudget(0.1), pair, 1e-6)
    assert low <= exact <= high <= low * (1 + 1e-8)


@pytest.mark.parametrize(("mu", "limit", "delta"), [(0.5, 0.6, 1e-5), (2.0, 1.5, 1e-8), (1.0, 1.0, 1e-3)])
def test_mu_of_a_gaussian_pair_is_its_own(mu: float, limit: float, delta: float) -> None:
    budget = GaussianBudget(limit, delta)
    _, low, high = looked_at(budget, Normals(mu), 1e-4, width=1e-7)
    assert low <= mu <= high
    assert high - low <= 1e-4 * high
    # The range ends where the budget's own δ is the one that is told.
    assert Normals(limit).delta("remove", budget.last_epsilon) == pytest.approx(delta, rel=0.05)


def test_a_kept_mu_bounds_every_attack_above_the_least_rate() -> None:
    """The lines of the range bound the rates as the Gaussian mechanism does, down to the least rate, and hardly below it."""
    budget = GaussianBudget(1.0, 1e-5)
    lines = [(e, Normals(1.0).delta("remove", e)) for e in [budget.last_epsilon * k / 4000 for k in range(4001)]]

    def bound(alpha: float) -> float:
        return min(math.exp(e) * alpha + delta for e, delta in lines)

    for alpha in (budget.least_rate, 10 * budget.least_rate, 1e-3):
        assert bound(alpha) == pytest.approx(Normals(1.0).rate("remove", alpha), rel=1e-5)
    assert bound(budget.least_rate / 10) > 1.3 * Normals(1.0).rate("remove", budget.least_rate / 10)


@pytest.mark.parametrize("budget", [RateBudget(0.01, 1e-3), RateBudget(0.6, 0.3), AdvantageBudget(0.2)])
def test_one_point_that_is_claimed_keeps_the_budget(budget: Budget) -> None:
    claims = [(place, budget.claim(place)) for place in budget.places()]
    kept = [(place, delta) for place, delta in claims if delta is not None]
    assert kept
    for place, delta in kept:
        one = [Enclosure(place, 0.0, delta)]
        assert budget.limit * (1 - 1e-12) <= budget.at_most({"remove": one, "add": one}) <= budget.limit


@pytest.mark.parametrize(("mu", "delta"), [(10.0, 1e-280), (0.01, 1e-4), (3.0, 0.5)])
def test_the_range_of_mu_covers_every_delta_that_counts(mu: float, delta: float) -> None:
    """The end of the range, to forty digits: δ_μ has fallen below the δ told, and not much before."""
    last = GaussianBudget(mu, delta).last_epsilon

    def at(epsilon: Any) -> Any:
        return mp.ncdf(mu / mp.mpf(2) - epsilon / mu) - mp.exp(epsilon) * mp.ncdf(-mu / mp.mpf(2) - epsilon / mu)

    with mp.workdps(40):
        assert at(mp.mpf(last)) <= delta * (1 + mp.mpf(10) ** -9)
        assert at(mp.mpf(last) * (1 - mp.mpf(2) / 1000)) > delta


# ---- Polynomials that bound δ(ε) by several moments: what is proven of them


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


# ---- What points of a profile imply elsewhere: never below the truth, and as sharp as convexity in e^ε allows


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

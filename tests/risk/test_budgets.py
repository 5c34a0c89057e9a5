"""Measures of risk from points of a profile: enclosed, against exact trade-off functions of finite and of Gaussian pairs."""

import math
import random
from statistics import NormalDist
from typing import Any

import mpmath as mp
import pytest

from pyaccount.directions import DIRECTIONS
from pyaccount.risk.advantage import AdvantageBudget
from pyaccount.risk.budget import Budget, Enclosure, attained_at_least
from pyaccount.risk.gaussian_mu import GaussianBudget
from pyaccount.risk.rate import RateBudget

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

"""Bounds on the number of right guesses: against every mechanism there is, by linear programs, and against exact laws."""

import math
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import binom, norm

from pyaccount.auditing.bounds import Corners, Guesses, PairCurve, binomial_above, by_curve, chosen_guesses, impossible
from pyaccount.risk.tradeoff import Bound, TradeOff

Points = tuple[Bound, ...]


def same(epsilon: float, delta: float) -> TradeOff:
    return TradeOff((Bound(epsilon, delta),), (Bound(epsilon, delta),))


def tail(guesses: Guesses, curve: TradeOff) -> float:
    return by_curve(PairCurve.of(Corners.of(curve), guesses), guesses)


def best_attack(curve: TradeOff, outcomes: list[tuple[int, ...]], right: int) -> float:
    """The largest Pr[W ≥ v] of any mechanism with this curve whose outcomes are guesses, by a linear program.

    A variable for Pr[outcome | coins], and for each two coins that differ in one place and each point (ε, δ) the positive parts
    of P(outcome) − e^ε Q(outcome), whose sum is at most δ: that is the hockey-stick divergence, over every event at once.
    """
    m = len(outcomes[0])
    coins = list(product((0, 1), repeat=m))
    size = len(outcomes)
    place = {s: k * size for k, s in enumerate(coins)}
    pairs = [
        (s, j, point)
        for s in coins
        for j in range(m)
        # The sensitive canary is in the first data set: remove.
        for point in (curve.remove if s[j] else curve.add)
    ]
    variables = len(coins) * size + len(pairs) * size
    rows: list[Any] = []
    limits: list[float] = []
    for k, (s, j, (epsilon, delta)) in enumerate(pairs):
        flipped = (*s[:j], 1 - s[j], *s[j + 1 :])
        start = len(coins) * size + k * size
        for t in range(size):
            row = np.zeros(variables)
            row[place[s] + t], row[place[flipped] + t], row[start + t] = 1.0, -math.exp(epsilon), -1.0
            rows.append(row)
            limits.append(0.0)
        row = np.zeros(variables)
        row[start : start + size] = 1.0
        rows.append(row)
        limits.append(delta)
    totals = np.zeros((len(coins), variables))
    gain = np.zeros(variables)
    for k, s in enumerate(coins):
        totals[k, place[s] : place[s] + size] = 1.0
        for t, guess in enumerate(outcomes):
            hits = sum((g == 1) == (c == 1) for g, c in zip(guess, s, strict=True) if g)
            gain[place[s] + t] = -(hits >= right) / len(coins)
    found = linprog(gain, np.array(rows), limits, totals, np.ones(len(coins)), bounds=(0, 1), method="highs")
    assert found.status == 0
    return float(-found.fun)


def outcomes(m: int, r: int, signs: tuple[int, ...] = (-1, 1)) -> list[tuple[int, ...]]:
    """Every r guesses about m canaries."""
    found = []
    for chosen in combinations(range(m), r):
        for guess in product(signs, repeat=r):
            by_place = dict(zip(chosen, guess, strict=True))
            found.append(tuple(by_place.get(j, 0) for j in range(m)))
    return found


@pytest.mark.parametrize(("m", "r"), [(1, 1), (2, 1), (2, 2), (3, 1), (3, 2), (3, 3)])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.05), (1.0, 0.0), (1.0, 0.02), (3.0, 0.2)])
def test_no_mechanism_is_guessed_better(m: int, r: int, epsilon: float, delta: float) -> None:
    # Either guess may be made in any place.
    curve = PairCurve.of(Corners.of(same(epsilon, delta)), Guesses(m, 1, 1, 0))
    for v in range(r + 1):
        best = best_attack(same(epsilon, delta), outcomes(m, r), v)
        bound = by_curve(curve, Guesses(m, r, 0, v))
        assert bound >= best * (1.0 - 1e-9)
        if r == m == v and delta == 0.0:
            # All right, without a δ: randomised response attains it.
            assert bound == pytest.approx((math.e**epsilon / (1 + math.e**epsilon)) ** m, rel=2e-3)


def test_the_published_formula_is_no_upper_bound() -> None:
    """Three canaries, (0, 0.05): the mechanism of the docstring, and a linear program that finds it."""
    wrong, right = 0.08125, 0.13125
    laws = {s: {t: wrong if all(a != b for a, b in zip(s, t, strict=True)) else right for t in product((0, 1), repeat=3)}
            for s in product((0, 1), repeat=3)}  # fmt: skip
    for s, law in laws.items():
        assert sum(law.values()) == pytest.approx(1.0, abs=1e-15)
        for j in range(3):
            flipped = laws[(*s[:j], 1 - s[j], *s[j + 1 :])]
            assert sum(max(0.0, law[t] - flipped[t]) for t in law) == pytest.approx(0.05, abs=1e-15)
    assert best_attack(same(0.0, 0.05), outcomes(3, 3), 1) == pytest.approx(1.0 - wrong, abs=1e-9)
    # f(1) + 2mδ·max_i (f(1 − i) − f(1))/i with f(v) = Pr[Bin(3, ½) ≥ v].
    published = 7 / 8 + 2 * 3 * 0.05 * (1 / 8)
    assert published < 1.0 - wrong <= tail(Guesses(3, 2, 1, 1), same(0.0, 0.05))


CURVES = {
    "pure": TradeOff((Bound(1.0, 0.0),), (Bound(1.0, 0.0),)),
    "one-sided": TradeOff((Bound(2.0, 0.01), Bound(0.5, 0.3)), (Bound(0.5, 0.02),)),
    "many-points": TradeOff(
        (Bound(0.0, 0.3), Bound(1.0, 0.1), Bound(3.0, 0.005)), (Bound(0.0, 0.3), Bound(0.7, 0.12), Bound(2.0, 0.01))
    ),
}


@pytest.mark.parametrize("name", CURVES)
@pytest.mark.parametrize(("m", "r"), [(2, 2), (3, 2), (3, 3)])
@pytest.mark.parametrize("signs", [(-1, 1), (1,), (-1,)], ids=["both", "in", "out"])
def test_no_mechanism_with_this_curve_is_guessed_better(name: str, m: int, r: int, signs: tuple[int, ...]) -> None:
    curve = CURVES[name]
    for v in range(1, r + 1):
        best = best_attack(curve, outcomes(m, r, signs), v)
        guesses = Guesses(m, r if 1 in signs else 0, r if -1 in signs else 0, v)
        # Counts of both sides are what the outcome says: of r guesses, whichever.
        if len(signs) == 2:
            guesses = Guesses(m, r - 1, 1, v)
        bound = tail(guesses, curve)
        assert bound >= best * (1.0 - 1e-9)
        # The bound is worth something.
        assert bound < 1.0 or best > 0.6 or v < r


@pytest.mark.parametrize("name", CURVES)
@pytest.mark.parametrize(("m", "included", "excluded"), [(4, 2, 2), (10, 3, 2), (8, 8, 0), (9, 0, 5)])
def test_the_recursion_solves_its_linear_program(name: str, m: int, included: int, excluded: int) -> None:
    """The constraints a_{i+1} ≤ G(b_i) as rows of a linear program, G by its pieces: the optimum is the recursion's."""
    r = included + excluded
    for v in range(1, r + 1):
        guesses = Guesses(m, included, excluded, v)
        curve = PairCurve.of(Corners.of(CURVES[name]), guesses)
        rows, limits = [], []
        weights = np.arange(r + 1)
        for i in range(r):
            a = np.where(weights >= i + 1, weights, 0) / m
            b = np.where(weights >= i, r - weights, 0) / m
            rows.append(a)
            limits.append(curve.right[-1])
            for k in range(1, len(curve.wrong)):
                slope = (curve.right[k] - curve.right[k - 1]) / (curve.wrong[k] - curve.wrong[k - 1])
                rows.append(a - slope * b)
                limits.append(curve.right[k] - slope * curve.wrong[k])
        gain = -(weights >= v).astype(float)
        found = linprog(gain, np.array(rows), limits, np.ones((1, r + 1)), [1.0], bounds=(0, 1), method="highs")
        assert found.status == 0
        best = float(-found.fun)
        bound = by_curve(curve, guesses)
        assert best * (1.0 - 1e-7) <= bound <= max(best * 1.0011, best + 1e-9)


@pytest.mark.parametrize("m", [1, 4, 12])
@pytest.mark.parametrize("epsilon", [0.0, 0.7, 4.0])
@pytest.mark.parametrize("delta", [0.0, 1e-4, 0.05])
@pytest.mark.parametrize("together", [False, True])
def test_leaks_are_guessed_no_better(m: int, epsilon: float, delta: float, together: bool) -> None:
    """Randomised response that shows a coin with probability δ, each by itself or all at once: W has an exact law."""
    q = 1.0 / (1.0 + math.exp(-epsilon))
    for v in range(m + 1):
        apart, whole = binom.sf(v - 1, m, delta + (1.0 - delta) * q), binom.sf(v - 1, m, q)
        exact = delta + (1.0 - delta) * whole if together else apart
        bound = by_curve(PairCurve.of(Corners.of(same(epsilon, delta)), Guesses(m, 1, 1, 0)), Guesses(m, m, 0, v))
        assert bound >= exact * (1.0 - 1e-12)
        if delta == 0.0:
            # A little is lost below all right guesses: nobody is assumed to be right more often than asked for.
            assert bound <= 1.25 * exact or v < m * q + 2


def gaussian(mu: float) -> TradeOff:
    """Points of the profile of N(μ, 1) against N(0, 1), by its formula."""
    epsilons = np.linspace(0.0, 12.0, 60)
    points = tuple(
        Bound(float(e), float(norm.cdf(mu / 2 - e / mu) - math.exp(e) * norm.cdf(-mu / 2 - e / mu)) + 1e-15)
        for e in epsilons
    )
    return TradeOff(points, points)


@pytest.mark.parametrize("sigma", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("m", [2, 5, 9])
def test_a_sum_of_canaries_is_guessed_no_better(sigma: float, m: int) -> None:
    """One noisy sum of all coins, and the guess that all are in or all are out: as correlated as guesses can be."""
    curve = gaussian(1.0 / sigma)
    counts = np.arange(m + 1)
    share = binom.pmf(counts, m, 0.5)
    above = norm.sf((m / 2 - counts) / sigma)
    for v in range(1, m + 1):
        exact = float(np.sum(share * (above * (counts >= v) + (1.0 - above) * (m - counts >= v))))
        assert tail(Guesses(m, m - 1, 1, v), curve) >= exact


def test_more_right_guesses_are_less_likely_and_more_noise_too() -> None:
    for total in (10, 200):
        found = [tail(Guesses(400, total // 2, total // 2, v), gaussian(1.0)) for v in range(0, total + 1, total // 10)]
        assert found == sorted(found, reverse=True)
    curves = [tail(Guesses(100, 25, 25, 45), gaussian(mu)) for mu in (0.5, 1.0, 2.0, 4.0)]
    assert curves == sorted(curves)
    assert curves[0] < 0.02


def test_the_pair_curve_is_the_best_of_both_sides() -> None:
    """G(z) = max ½g₁(u) + ½g₀(v), ½(u + v) = z, on a grid."""
    curve = CURVES["one-sided"]
    found = PairCurve.of(Corners.of(curve), Guesses(4, 2, 2, 3))
    grid = np.linspace(0.0, 1.0, 2001)
    one = np.array([curve.true_positive_rate(float(u)) for u in grid])
    two = np.array([curve.swapped.true_positive_rate(float(u)) for u in grid])
    for k in range(0, 2001, 250):
        z = grid[k]
        best = max(0.5 * (one[u] + two[2 * k - u]) for u in range(max(0, 2 * k - 2000), min(2000, 2 * k) + 1))
        assert np.interp(z, found.wrong, found.right) == pytest.approx(best, abs=2e-3)
    for y in np.linspace(0.0, found.right[-1], 50):
        z = found.inverse(float(y))
        assert np.interp(z, found.wrong, found.right) == pytest.approx(max(y, found.right[0]), abs=1e-9)
    assert found.inverse(1.5) == math.inf


def test_impossible_is_no_accident_of_rounding() -> None:
    """At the bound itself nothing is proven, and at one part in a hundred above it is."""
    guesses = Guesses(50, 10, 10, 18)
    curve = PairCurve.of(Corners.of(gaussian(1.0)), guesses)
    bound = by_curve(curve, guesses)
    assert impossible(curve, guesses, bound)
    assert not impossible(curve, guesses, bound * 0.99)


@pytest.mark.parametrize(("successes", "trials"), [(0, 10), (3, 10), (9, 10), (0, 1), (17, 1000)])
@pytest.mark.parametrize("level", [0.05, 1e-6])
def test_rates_by_clopper_and_pearson(successes: int, trials: int, level: float) -> None:
    p = binomial_above(successes, trials, level)
    below = math.fsum(math.comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(successes + 1))
    # Rounded up, so that no more than the level is left.
    assert 0.98 * level <= below <= level * (1.0 + 1e-12)
    assert binomial_above(trials, trials, level) == 1.0


def test_equal_scores_tell_nothing_by_their_order() -> None:
    """A file sorted by who was included, all scores alike: of 200 seeds, half of the guesses are right."""
    coins = [True] * 50 + [False] * 50
    right = [chosen_guesses([1.0] * 100, coins, (50, 50), seed).right for seed in range(200)]
    # Standard deviation of one: that of 50 drawn of 100, twice: 5; of the mean of 200: 0.36.
    assert abs(float(np.mean(right)) - 50.0) < 2.0
    best = chosen_guesses([*range(100)], coins[::-1], (30, 20), 0)
    assert (best.canaries, best.included, best.excluded, best.right) == (100, 30, 20, 50)

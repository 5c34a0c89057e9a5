"""What the numbers mean: certified trade-off curves against exact ones, by enumeration and in closed form."""

import itertools
import json
import math
import random
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from oracle import gaussian_delta
from plain_documents import doc, document
from scipy.optimize import linprog  # type: ignore[import-untyped]
from snapshots import Snapshot

import pyaccount
from pyaccount.certificate.meaning import lower_points, upper_points
from pyaccount.risk.gaussian import (
    chord,
    gaussian_terms,
    hull,
    needed_at_points,
    needed_within_range,
    sharpened,
    smallest_possible,
)
from pyaccount.risk.tradeoff import Bound, TradeOff

Law = tuple[Fraction, ...]

#: Likelihood ratios 7, 3/2, 4/5, 1/3, 1/10: the two directions differ.
P: Law = tuple(Fraction(n, 100) for n in (35, 30, 24, 10, 1))
Q: Law = tuple(Fraction(n, 100) for n in (5, 20, 30, 30, 15))


def divergence(p: Law, q: Law, epsilon: float) -> float:
    """H_{e^ε}(p‖q) as the largest p(S) − e^ε q(S) of all sets S: the definition, not the sum of positive parts."""
    sets = itertools.product((0, 1), repeat=len(p))
    ratio = Fraction(math.exp(epsilon))
    best = max(sum((a - ratio * b for a, b, in_set in zip(p, q, s, strict=True) if in_set), Fraction(0)) for s in sets)
    # Above the exact value by no more than a rounding: the points are upper bounds.
    return math.nextafter(float(best), 1.0) if best > 0 else 0.0


def profile(p: Law, q: Law, epsilons: list[float]) -> tuple[Bound, ...]:
    return tuple(Bound(epsilon, divergence(p, q, epsilon)) for epsilon in epsilons)


def rates(p: Law, q: Law) -> list[tuple[float, float]]:
    """(false-positive rate, true-positive rate) of every deterministic test for p against q."""
    return [
        (
            float(sum((b for b, chosen in zip(q, s, strict=True) if chosen), Fraction(0))),
            float(sum((a for a, chosen in zip(p, s, strict=True) if chosen), Fraction(0))),
        )
        for s in itertools.product((0, 1), repeat=len(p))
    ]


def logarithms(p: Law, q: Law) -> list[float]:
    """Where the profile of p against q has its kinks, from 0 on."""
    return sorted({0.0, *(math.log(a / b) for a, b in zip(p, q, strict=True) if a > b)})


def test_the_certified_curve_of_a_discrete_pair_is_its_neyman_pearson_curve() -> None:
    curve = TradeOff(profile(P, Q, logarithms(P, Q)), profile(Q, P, logarithms(Q, P)))
    for likely, unlikely, one in ((P, Q, curve), (Q, P, curve.swapped)):
        order = sorted(range(len(P)), key=lambda k: likely[k] / unlikely[k], reverse=True)
        for count in range(len(P) + 1):
            best = order[:count]
            alpha, power = float(sum(unlikely[k] for k in best)), float(sum(likely[k] for k in best))
            assert one.true_positive_rate(alpha) == pytest.approx(power, abs=1e-12)
            assert one.true_positive_rate(alpha) >= power - 1e-15
            assert one.false_negative_rate(alpha) <= 1.0 - power + 1e-15
    total_variation = sum(abs(a - b) for a, b in zip(P, Q, strict=True)) / 2
    assert curve.advantage() == pytest.approx(float(total_variation), abs=1e-12)


def test_directions_that_change_places_would_be_caught() -> None:
    mixed = TradeOff(profile(Q, P, logarithms(Q, P)), profile(P, Q, logarithms(P, Q)))
    assert any(power > mixed.true_positive_rate(alpha) + 1e-3 for alpha, power in rates(P, Q))


weights = st.lists(st.integers(0, 40), min_size=2, max_size=5)


@example([1, 0], [1, 6], [2.225073858507e-311], [0.0])  # slopes so near 1 that their products vanish
@given(weights, weights, st.lists(st.floats(0.0, 6.0), max_size=4), st.lists(st.floats(0.0, 6.0), max_size=4))
def test_no_test_of_any_discrete_pair_beats_the_curve(
    first: list[int], second: list[int], remove: list[float], add: list[float]
) -> None:
    size = min(len(first), len(second))
    p, q = first[:size], second[:size]
    if sum(p) == 0 or sum(q) == 0:
        return
    one, other = (tuple(Fraction(n, sum(law)) for n in law) for law in (p, q))
    curve = TradeOff(profile(one, other, remove), profile(other, one, add))
    found = rates(one, other)
    for alpha, power in found:
        assert power <= curve.true_positive_rate(min(alpha, 1.0)) + 1e-15
        assert 1.0 - power >= curve.false_negative_rate(min(alpha, 1.0)) - 1e-15
    # Tests that randomise between two others.
    for (a, b), (c, d) in itertools.pairwise(found):
        assert (b + d) / 2 <= curve.true_positive_rate(min((a + c) / 2, 1.0)) + 1e-15
    assert max(power - alpha for alpha, power in found) <= curve.advantage() + 1e-15
    for alpha, power in rates(other, one):
        assert power <= curve.swapped.true_positive_rate(min(alpha, 1.0)) + 1e-15


points = st.lists(st.tuples(st.floats(0.0, 8.0), st.floats(0.0, 1.0)), max_size=6)


@given(points, points)
def test_the_advantage_is_the_widest_gap_of_the_curve(
    remove: list[tuple[float, float]], add: list[tuple[float, float]]
) -> None:
    curve = TradeOff(tuple(Bound(*one) for one in remove), tuple(Bound(*one) for one in add))
    # max t with t ≤ line(α) − α for every line, as a linear program in (α, t).
    rows = [(1.0 - math.exp(epsilon), 1.0, delta) for epsilon, delta in remove]
    rows += [(1.0 - math.exp(-epsilon), 1.0, 1.0 - math.exp(-epsilon) * (1.0 - delta)) for epsilon, delta in add]
    rows.append((1.0, 1.0, 1.0))
    solved = linprog(
        [0.0, -1.0], A_ub=[row[:2] for row in rows], b_ub=[row[2] for row in rows], bounds=[(0, 1), (None, None)]
    )
    assert curve.advantage() == pytest.approx(-solved.fun, abs=1e-7)


@given(points, points)
def test_vertices_lie_on_the_curve_and_straight_lines_join_them(
    remove: list[tuple[float, float]], add: list[tuple[float, float]]
) -> None:
    curve = TradeOff(tuple(Bound(*one) for one in remove), tuple(Bound(*one) for one in add))
    vertices = curve.vertices()
    assert (vertices[0][0], vertices[-1]) == (0.0, (1.0, 1.0))
    for (a, b), (c, d) in itertools.pairwise(vertices):
        assert c >= a
        assert d >= b - 1e-12
        assert curve.true_positive_rate(0.5 * (a + c)) == pytest.approx(0.5 * (b + d), abs=1e-9)


def gaussian_points(mu: float, epsilons: list[float]) -> tuple[Bound, ...]:
    return tuple(
        Bound(e, math.nextafter(float(gaussian_delta(mp.mpf(mu), mp.mpf(e))), 1.0)) for e in map(float, epsilons)
    )


@pytest.mark.parametrize("mu", [0.2, 1.0, 3.0])
def test_the_curve_of_a_gaussian_mechanism_lies_below_the_exact_one_and_near_it(mu: float) -> None:
    dense = gaussian_points(mu, [float(e) for e in np.linspace(0.0, 6.0 * mu, 400)])
    curve = TradeOff(dense, dense)
    for alpha in (1e-6, 1e-4, 1e-2, 0.1, 0.3, 0.5, 0.8, 0.99):
        quantile = mp.sqrt(2) * mp.erfinv(1 - 2 * mp.mpf(alpha))
        exact = float(mp.ncdf(quantile - mu))
        assert curve.false_negative_rate(alpha) <= exact
        assert curve.false_negative_rate(alpha) == pytest.approx(exact, rel=1e-3)
        assert curve.true_positive_rate(alpha) == pytest.approx(1.0 - exact, rel=2e-3)
    exact = float(2 * mp.ncdf(mp.mpf(mu) / 2) - 1)
    assert exact <= curve.advantage() <= exact + 1e-12
    # Without ε = 0 the bound is looser, but it is one.
    assert exact <= TradeOff(dense[20:], dense[20:]).advantage() <= exact + 0.05


@pytest.mark.parametrize("mu", [1e-4, 0.03, 0.7, 5.0, 80.0, 4000.0, 1e6])
def test_terms_of_the_gaussian_profile_enclose_the_exact_ones(mu: float) -> None:
    with mp.workdps(60):
        for t in (-30.0, -3.0, -0.2, 0.0, 0.4, 2.0, 11.0, 25.0, 36.0):
            epsilon = (t + mu / 2.0) * mu
            if epsilon < 0.0:
                continue
            terms = gaussian_terms(mu, epsilon)
            m, e = mp.mpf(mu), mp.mpf(epsilon)
            tail, rest = mp.ncdf(m / 2 - e / m), mp.exp(e) * mp.ncdf(-m / 2 - e / m)
            assert terms.tail_low <= tail <= terms.tail_high
            assert terms.rest_low <= rest <= terms.rest_high
            assert terms.tail_high - terms.tail_low <= 1e-6 * tail


@pytest.mark.parametrize("mu", [0.05, 0.745, 2.0, 6.0, 8.0])
def test_points_of_a_gaussian_mechanism_give_its_own_mu(mu: float) -> None:
    grid = [0.0, 0.3 * mu, mu, 2.0 * mu, 3.0 * mu, mu * mu + mu]
    exact = gaussian_points(mu, grid)
    found = needed_at_points(exact)
    assert found is not None
    assert mu <= found <= mu * (1.0 + 1e-9)
    below = tuple(Bound(point.epsilon, point.delta * (1.0 - 1e-13)) for point in exact)
    assert mu * (1.0 - 1e-9) <= smallest_possible(below) <= mu


@pytest.mark.parametrize(
    "given_points",
    [
        gaussian_points(1.3, [0.0, 1.0, 2.5, 6.0]),
        # Pure differential privacy: Laplace noise at θ = 2.
        tuple(Bound(e, max(0.0, -math.expm1((e - 2.0) / 2.0))) for e in (0.0, 0.5, 1.0, 1.9, 2.0, 3.0)),
        (Bound(1.0, 0.2), Bound(4.0, 1e-9)),
        (Bound(0.5, 1e-3),),
    ],
)
def test_mu_within_range_covers_every_epsilon_of_the_range_and_is_the_least_that_does(
    given_points: tuple[Bound, ...],
) -> None:
    mu = needed_within_range(given_points)
    assert mu is not None
    at_points = needed_at_points(given_points)
    assert at_points is not None
    assert at_points <= mu * (1.0 + 1e-12)

    def slack(m: float) -> mp.mpf:
        """The least margin of δ_m over the chords, relative to δ, on a fine grid."""
        worst = mp.inf
        corners = sorted(given_points)
        for left, right in itertools.pairwise([*corners, corners[-1]]):
            for k in range(201):
                e = left.epsilon + (right.epsilon - left.epsilon) * k / 200
                above = left.delta
                if right.epsilon > left.epsilon:
                    share = mp.expm1(e - left.epsilon) / mp.expm1(right.epsilon - left.epsilon)
                    above = (1 - share) * left.delta + share * mp.mpf(right.delta)
                if above > 0:
                    worst = min(worst, gaussian_delta(mp.mpf(m), mp.mpf(e)) / above - 1)
        return worst

    with mp.workdps(40):
        assert slack(mu) >= -1e-12
        assert slack(mu * (1.0 - 1e-3)) < 0.0


@given(st.lists(st.tuples(st.floats(0.0, 8.0), st.floats(1e-12, 0.99)), min_size=1, max_size=6))
def test_what_holds_within_the_range_holds_at_its_points(found: list[tuple[float, float]]) -> None:
    given_points = tuple(Bound(*one) for one in found)
    at_points, within = needed_at_points(given_points), needed_within_range(given_points)
    assert at_points is not None
    if within is not None:
        assert at_points <= within * (1.0 + 1e-9)
    # Every point keeps a bound that its own one, or a chord, implies.
    for point in given_points:
        possible = [mp.mpf(point.delta)]
        for left, right in itertools.product(given_points, repeat=2):
            if left.epsilon <= point.epsilon:
                possible.append(mp.mpf(left.delta))
            if left.epsilon < point.epsilon < right.epsilon:
                share = mp.expm1(point.epsilon - left.epsilon) / mp.expm1(right.epsilon - left.epsilon)
                possible.append((1 - share) * left.delta + share * mp.mpf(min(left.delta, right.delta)))
        assert gaussian_delta(mp.mpf(at_points), mp.mpf(point.epsilon)) >= min(possible) * (1 - mp.mpf(10) ** -12)


def test_a_loose_point_among_sharp_ones_costs_nothing() -> None:
    sharp = gaussian_points(1.0, [0.0, 1.0, 1.99, 2.01, 4.0])
    loose = (*sharp, Bound(2.0, sharp[2].delta))
    found, alone = needed_at_points(loose), needed_at_points((*sharp[:2], sharp[-1], Bound(2.0, sharp[2].delta)))
    assert found == pytest.approx(1.0, rel=1e-4)
    assert alone is not None
    assert alone > 1.003


def test_a_gaussian_mechanism_with_little_noise_has_its_mu() -> None:
    # σ = 1/8, one step: δ(0) = 0.99994.
    certificate = pyaccount.certify(
        document(
            training={"iterations": 1},
            sampler={"kind": "none", "max_participations": 1},
            noise__multiplier=0.125,
            privacy={"adjacency": "add-remove", "epsilon": "solve", "delta": 1e-5},
            accounting={},
        )
    )
    gaussian = certificate.meaning.gaussian
    assert gaussian.mu_at_points is not None
    assert gaussian.mu_within_range is not None
    assert 8.0 * (1.0 - 1e-3) <= gaussian.mu_lower <= 8.0 <= gaussian.mu_at_points <= 8.0 * (1.0 + 1e-3)
    assert gaussian.mu_at_points <= gaussian.mu_within_range <= 9.0


@pytest.mark.parametrize("mu", [9.0, 12.0, 14.0])
def test_deltas_next_to_one_still_have_a_mu(mu: float) -> None:
    points = gaussian_points(mu, [0.0])
    assert points[0].delta < 1.0
    found, below = needed_at_points(points), smallest_possible((Bound(0.0, math.nextafter(points[0].delta, 0.0)),))
    assert found is not None
    assert below <= mu <= found <= 1.1 * mu


def test_among_the_smallest_doubles_nothing_is_claimed() -> None:
    with mp.workdps(60):
        for epsilon in (36.2, 36.5, 37.0, 37.5, 38.0, 38.4, 38.5, 38.8, 39.0, 42.0):
            exact = gaussian_delta(mp.mpf(1), mp.mpf(epsilon))
            above = below = float(exact)
            while mp.mpf(above) < exact:
                above = math.nextafter(above, 1.0)
            while mp.mpf(below) > exact:
                below = math.nextafter(below, 0.0)
            for needed in (needed_at_points, needed_within_range):
                found = needed((Bound(epsilon, above),))
                assert found is not None
                assert 1.0 <= found < 1.2, epsilon
            assert smallest_possible((Bound(epsilon, below),)) <= 1.0


def test_sharpened_points_stay_above_the_chord_however_wide_it_is() -> None:
    rng = random.Random(3)
    with mp.workdps(60):
        for _ in range(500):
            # Differences of ε on both sides of 512, where their roundings differ most.
            left, right = Bound(rng.uniform(0.0, 1.0), rng.uniform(0.1, 1.0)), Bound(rng.uniform(513.0, 514.0), 1e-9)
            epsilon = right.epsilon - rng.expovariate(0.5)
            share = mp.expm1(mp.mpf(epsilon) - left.epsilon) / mp.expm1(mp.mpf(right.epsilon) - left.epsilon)
            exact = left.delta - share * (mp.mpf(left.delta) - right.delta)
            found = sharpened((left, Bound(epsilon, 1.0), right))[1].delta
            assert exact <= found <= exact + 1e-12 * left.delta


def test_a_balanced_accuracy_is_never_below_half_of_one_plus_the_advantage() -> None:
    rng = random.Random(9)
    text = pyaccount.certify("examples/full-batch.yaml", overrides=["accounting.profile=[0, 1]"]).to_json()
    for _ in range(40):
        data = json.loads(text)
        delta = 10.0 ** rng.uniform(-18.0, -4.0)
        for part in (data, *data["directions"].values()):
            part["profile"][0] |= {"delta": delta, "delta_lower": 0.0}
        meaning = pyaccount.Certificate.from_json(json.dumps(data)).meaning
        assert meaning.advantage <= 2 * delta
        assert Fraction(meaning.balanced_accuracy) >= (1 + Fraction(meaning.advantage)) / 2


def test_a_delta_of_one_has_no_mu_and_no_points_have_nothing_to_say() -> None:
    assert needed_at_points((Bound(1.0, 1.0),)) is None
    assert needed_within_range((Bound(0.0, 1.0), Bound(2.0, 0.5))) is None
    nothing = TradeOff((), ())
    assert (nothing.advantage(), nothing.true_positive_rate(0.0), nothing.false_negative_rate(0.5)) == (1.0, 1.0, 0.0)


def test_numbers_at_the_edge_of_doubles_stay_bounds(snapshot: Snapshot) -> None:
    extreme = (Bound(1e308, 1e-300), Bound(720.0, 0.0), Bound(2.0, 0.1))
    curve = TradeOff(extreme, extreme)
    assert curve.true_positive_rate(0.0) == pytest.approx(0.0, abs=1e-300)
    assert 0.1 < curve.true_positive_rate(1e-9) < 0.1 + 1e-7
    assert 0.0 < curve.advantage() < 1.0
    assert curve.vertices()[-1] == (1.0, 1.0)
    found = needed_within_range(extreme)
    assert found is None or found > 0.0
    for alpha in (-0.1, 1.1, math.nan):
        snapshot.raised(curve.true_positive_rate, alpha)


def test_the_hull_keeps_what_bounds_and_drops_what_does_not() -> None:
    convex = [Bound(0.0, 0.5), Bound(1.0, 0.2), Bound(2.0, 0.05)]
    assert hull([*convex, Bound(0.5, 0.49), Bound(1.5, 0.2), Bound(1.0, 0.3)]) == convex
    # δ never rises: the last point cannot be worse than the one before.
    assert hull([Bound(0.0, 0.1), Bound(1.0, 0.2)]) == [Bound(0.0, 0.1), Bound(1.0, 0.1)]
    middle = chord(convex[0], convex[1], math.log((1.0 + math.e) / 2.0))
    assert middle == pytest.approx(0.35, rel=1e-14)


def test_an_attack_on_one_sampled_round_stays_below_the_certificate_in_both_directions() -> None:
    p, sigma = 0.2, 0.8
    certificate = pyaccount.certify(
        document(
            training={"sampling_probability": p, "iterations": 1},
            noise__multiplier=sigma,
            privacy__epsilon="solve",
            # Finer where the losses of absence are, which end at −ln(1 − p).
            accounting={"profile": [*map(float, np.linspace(0.0, 0.3, 31)), *map(float, np.linspace(0.4, 6.0, 57))]},
        )
    )
    curve = certificate.trade_off
    assert not curve.symmetric

    def tail(x: float) -> float:
        return 0.5 * math.erfc(x / math.sqrt(2.0))

    for threshold in np.linspace(-3.0, 4.0, 50):
        absent = tail(threshold / sigma)
        present = (1.0 - p) * absent + p * tail((threshold - 1.0) / sigma)
        assert present <= curve.true_positive_rate(absent)
        assert curve.true_positive_rate(absent) == pytest.approx(present, abs=5e-3)
        # The test for absence says so below the threshold.
        bound = curve.swapped.true_positive_rate(1.0 - present)
        assert 1.0 - absent <= bound
        assert bound == pytest.approx(1.0 - absent, abs=5e-3)


def test_the_meaning_of_an_unsampled_run_is_that_of_its_gaussian() -> None:
    certificate = pyaccount.certify("examples/full-batch.yaml")
    meaning = certificate.meaning
    mu = mp.sqrt(20) / 6
    exact = float(2 * mp.ncdf(mu / 2) - 1)
    assert exact <= meaning.advantage <= exact * 1.01
    assert meaning.balanced_accuracy == pytest.approx(0.5 + 0.5 * meaning.advantage, rel=1e-15)
    for rate in meaning.rates:
        alpha = mp.mpf(rate.false_positive_rate)
        power = float(1 - mp.ncdf(mp.sqrt(2) * mp.erfinv(1 - 2 * alpha) - mu))
        assert power <= rate.presence <= power * 1.25
        assert rate.absence == rate.presence
    gaussian = meaning.gaussian
    assert gaussian.mu_lower <= float(mu) <= (gaussian.mu_at_points or 0.0)
    assert gaussian.mu_at_points == pytest.approx(gaussian.mu_lower, rel=1e-3)
    assert gaussian.mu_within_range == pytest.approx(float(mu), rel=0.1)
    assert (gaussian.first_epsilon, gaussian.last_epsilon) == (0.0, 4.7)
    assert meaning.failure_probability == 0.0


def test_a_pure_guarantee_lends_no_epsilon_below_its_own_to_a_delta_of_zero() -> None:
    laplace = doc(
        "name=one-count adjacency=add-remove epsilon=3.0 delta=solve iterations=1 sampler=none max_participations=1",
        noise={"kind": "laplace", "multiplier": 0.5},
    )
    certificate = pyaccount.certify(laplace)
    data = certificate.data
    for direction in ("remove", "add"):
        for epsilon, delta in upper_points(data, direction):  # type: ignore[arg-type]
            assert delta >= max(0.0, -math.expm1((epsilon - 2.0) / 2.0)) * (1.0 - 1e-12)
    for epsilon, delta in lower_points(data):
        assert delta <= max(0.0, -math.expm1((epsilon - 2.0) / 2.0)) * (1.0 + 1e-12)

"""Profiles of scalar mechanisms against enumeration in high precision, hulls in fractions, and suprema over outcomes."""

import math
from fractions import Fraction
from itertools import product

import mpmath as mp
import numpy as np
import pytest
import scipy.stats
from snapshots import Snapshot

from pyaccount._core import Inspection, RoundProfile, answer_all

EPSILONS = [-4.0, -1.3, -0.2, -1e-3, 0.0, 2e-3, 0.31, 1.0, 1.7, 5.0]


def pair_delta(pairs: list[tuple[mp.mpf, mp.mpf]], epsilon: float) -> mp.mpf:
    """Return Σ (p − e^ε q)₊."""
    alpha = mp.exp(mp.mpf(epsilon))
    return mp.fsum(max(p - alpha * q, mp.mpf(0)) for p, q in pairs)


def check(profile: RoundProfile, epsilon: float, exact: mp.mpf, precision: float = 1e-12) -> None:
    """Compare a value and its error with the exact one, and the bounds with both."""
    delta, error, _, _ = Inspection.profile(profile, epsilon)
    assert abs(mp.mpf(delta) - exact) <= error, (epsilon, delta, exact, error)
    assert error <= precision * max(delta, 1e-6), (epsilon, delta, error)
    lower, upper = profile.delta(epsilon)
    assert lower <= exact <= upper


def kairouz(epsilon: float, delta: float) -> list[tuple[mp.mpf, mp.mpf]]:
    """Return the pair of Kairouz, Oh & Viswanath."""
    e, d = mp.exp(mp.mpf(epsilon)), mp.mpf(delta)
    high, low = (1 - d) * e / (1 + e), (1 - d) / (1 + e)
    return [(d, mp.mpf(0)), (high, low), (low, high), (mp.mpf(0), d)]


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.0), (0.3, 1e-5), (1e-6, 1e-9), (4.0, 0.2), (0.0, 0.1)])
def test_one_guarantee_is_the_pair_of_kairouz_oh_and_viswanath(epsilon: float, delta: float) -> None:
    profile = RoundProfile.guarantees([(epsilon, delta)])
    with mp.workdps(40):
        for at in [*EPSILONS, 0.5 * epsilon, -0.9 * epsilon]:
            check(profile, at, pair_delta(kairouz(epsilon, delta), at))


def test_ten_guarantees_compose_as_all_outcomes() -> None:
    profile = RoundProfile.guarantees([(0.4, 1e-4)])
    with mp.workdps(30):
        outcomes = kairouz(0.4, 1e-4)
        rows = [(mp.fprod(p for p, _ in many), mp.fprod(q for _, q in many)) for many in product(outcomes, repeat=5)]
        for epsilon in (0.0, 0.5, 1.1):
            exact = pair_delta(rows, epsilon)
            (interval,) = answer_all([([(profile, 5)], epsilon, None, 1e-6)])
            assert interval.lower <= exact <= interval.upper <= float(exact) * (1 + 1e-4)


def test_a_table_is_its_lower_hull_in_alpha() -> None:
    """The hull by its definition: the least of all chords, in fractions of α that are exact."""
    alphas = [Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(3), Fraction(5), Fraction(8)]
    deltas = [
        Fraction(9, 10),
        Fraction(7, 10),
        Fraction(1, 2),
        Fraction(2, 5),
        Fraction(1, 10),
        Fraction(1, 8),
        Fraction(1, 50),
    ]
    table = [(Fraction(0), Fraction(1)), *zip(alphas, deltas, strict=True)]
    profile = RoundProfile.tabulated([(math.log(a), float(d)) for a, d in table[1:]])
    for k in range(1, 80):
        at = Fraction(k, 9)
        chords = [
            d1 + (d2 - d1) * (at - a1) / (a2 - a1) for a1, d1 in table for a2, d2 in table if a1 <= at <= a2 and a1 < a2
        ]
        levels = [d for a, d in table if a <= at]
        assert profile.delta(math.log(at))[1] == pytest.approx(float(min(chords + levels)), rel=1e-13)


@pytest.mark.parametrize("reverse", [False, True])
def test_finite_pairs_with_stated_errors(reverse: bool) -> None:
    p, q = [0.5, 0.3, 0.15, 0.05], [0.1, 0.3, 0.2, 0.4]
    moved = [x * (1 + sign * 1e-6) for x, sign in zip(p, (1, -1, 1, -1), strict=True)]
    exact, near = (
        RoundProfile.finite(p, q, reverse=reverse),
        RoundProfile.finite(moved, q, reverse=reverse, relative_error=1e-6),
    )
    for epsilon in EPSILONS:
        pairs = [(mp.mpf(a), mp.mpf(b)) for a, b in (zip(q, p, strict=True) if reverse else zip(p, q, strict=True))]
        truth = pair_delta(pairs, epsilon)
        check(exact, epsilon, truth, 1e-9)
        lower, upper = near.delta(epsilon)
        assert lower <= truth <= upper <= lower + 1e-5


@pytest.mark.parametrize("r", [1e-6, 0.2, 1.0, 9.0, 700.0])
def test_the_exponential_mechanism_is_the_supremum_of_two_point_losses(r: float) -> None:
    profile = RoundProfile.exponential(r)
    with mp.workdps(40):
        for share in (-1.2, -0.99, -0.4, 0.0, 0.3, 0.8, 0.999, 1.1):
            epsilon = share * r
            e, top = mp.mpf(epsilon), mp.mpf(r)

            def two(t: mp.mpf, e: mp.mpf = e, top: mp.mpf = top) -> mp.mpf:
                mass = (mp.exp(top) - mp.exp(t)) / (mp.exp(top) - 1)
                rows = [(mass, mass * mp.exp(-t)), (1 - mass, (1 - mass) * mp.exp(top - t))]
                return mp.fsum(max(a - mp.exp(e) * b, mp.mpf(0)) for a, b in rows)

            best = max(two(top * k / 100) for k in range(101))
            lower, upper = profile.delta(epsilon)
            assert best <= upper
            # Where ln of the best t is known, it attains the bound.
            assert lower <= max(best, two(min(max((top + e) / 2, mp.mpf(0)), top)))


@pytest.mark.parametrize(("shift", "scale"), [(1, 0.3), (1, 2.0), (4, 1.5), (9, 5.0)])
def test_discrete_laplace_noise(shift: int, scale: float) -> None:
    profile = RoundProfile.discrete_laplace(shift, scale)
    with mp.workdps(40):
        ratio = mp.exp(-1 / mp.mpf(scale))
        law = {x: (1 - ratio) / (1 + ratio) * ratio ** abs(x) for x in range(-500, 501)}
        pairs = [(law[x], law[x - shift]) for x in range(-400, 401)]
        for epsilon in EPSILONS:
            check(profile, epsilon, pair_delta(pairs, epsilon))


@pytest.mark.parametrize(("shift", "sigma"), [(1, 0.05), (1, 0.7), (1, 4.0), (3, 2.5), (20, 15.0), (50, 3.0)])
def test_discrete_gaussian_noise(shift: int, sigma: float) -> None:
    profile = RoundProfile.discrete_gaussian(shift, sigma)
    with mp.workdps(60):
        reach = math.ceil(30 * sigma) + 2
        law = {
            x: mp.exp(-(mp.mpf(x) ** 2) / (2 * mp.mpf(sigma) ** 2)) for x in range(-reach - shift, reach + shift + 1)
        }
        total = mp.fsum(law.values())
        pairs = [(law[x - shift] / total, law[x] / total) for x in range(-reach, reach + shift + 1)]
        unit = shift / sigma
        for z in (-5.0, -1.0, 0.0, 0.6, 2.0, 4.0):
            epsilon = 0.5 * unit**2 + z * unit
            exact = pair_delta(pairs, epsilon)
            delta, error, _, _ = Inspection.profile(profile, epsilon)
            assert abs(mp.mpf(delta) - exact) <= error + mp.mpf(10) ** -150
            # Where ε is the loss of an outcome, its rounding costs that outcome's mass, times the loss.
            assert error <= 1e-9 * max(delta, 1e-2)


def check_moved(profile: RoundProfile, law: list[mp.mpf], shift: int, least: float) -> None:
    """Compare a profile with the sum over all outcomes of a symmetric law, given at 0, 1, …, that is moved."""
    reach = len(law) - 1
    at = {x: law[abs(x)] for x in range(-reach, reach + 1)}
    pairs = [(at[x - shift], at[x]) for x in range(shift - reach, reach + 1)]
    losses = [float(mp.log(p / q)) for p, q in pairs[reach - shift : reach + 1 : max(1, shift // 3)]]
    for epsilon in (-6.0, -0.3, 0.0, 0.02, 0.4, 1.0, 3.3, 9.0, 25.0, *losses):
        exact = pair_delta(pairs, epsilon)
        delta, error, _, _ = Inspection.profile(profile, epsilon)
        assert abs(mp.mpf(delta) - exact) <= error + mp.mpf(10) ** -200
        assert error <= 1e-9 * max(delta, least)


@pytest.mark.parametrize("shift", [1, 2, 9])
@pytest.mark.parametrize("variance", [1e-9, 1e-6, 0.03, 1.0, 7.7, 300.0])
def test_skellam_noise(shift: int, variance: float) -> None:
    with mp.workdps(60):
        reach = math.ceil(40 * math.sqrt(variance)) + 60
        law = [mp.exp(-mp.mpf(variance)) * mp.besseli(k, variance) for k in range(reach + 1)]
        check_moved(RoundProfile.skellam(shift, variance), law, shift, 1e-2)


def test_skellam_noise_of_a_million_is_that_of_scipy() -> None:
    x = np.arange(-10_000, 10_001)
    law = scipy.stats.skellam.pmf(x, 5e5, 5e5)
    for shift in (1, 500):
        profile = RoundProfile.skellam(shift, 1e6)
        for epsilon in (0.0, 0.001 * shift, 0.004 * shift):
            delta = math.fsum(np.maximum(law[:-shift] - math.exp(epsilon) * law[shift:], 0.0))
            least, most = profile.delta(epsilon)
            assert least * (1.0 - 1e-8) <= delta <= most * (1.0 + 1e-8)
            assert most - least <= 1e-7 * most


@pytest.mark.nightly(but=["0.1-2-1", "0.1-10-2", "0.3-9-9", "0.5-4-1", "1.0-10-2", "1.6-3-9", "2.2-2-1"])
@pytest.mark.parametrize("shift", [1, 2, 9])
@pytest.mark.parametrize(("sigma", "parties"), [(0.1, 2), (0.1, 10), (0.3, 9), (0.5, 4), (1.0, 10), (1.6, 3), (2.2, 2)])
def test_noise_of_several_parties(shift: int, sigma: float, parties: int) -> None:
    with mp.workdps(60):
        reach = math.ceil(45 * sigma * math.sqrt(parties)) + 14
        one = [mp.exp(-(mp.mpf(k) ** 2) / (2 * mp.mpf(sigma) ** 2)) for k in range(reach + 1)]
        law = one
        for _ in range(parties - 1):
            law = [
                mp.fsum(law[abs(j)] * one[abs(k - j)] for j in range(k - reach, reach + 1)) for k in range(reach + 1)
            ]
        total = 2 * mp.fsum(law) - law[0]
        check_moved(RoundProfile.parties(shift, sigma, parties), [weight / total for weight in law], shift, 1e-2)


@pytest.mark.parametrize("probability", [0.6, 0.1, 1e-4, 1e-9])
@pytest.mark.parametrize("reverse", [False, True])
def test_sampling_mixes_the_laws(probability: float, reverse: bool) -> None:
    p, q = [0.5, 0.25, 0.125, 0.125], [0.125, 0.25, 0.125, 0.5]
    with mp.workdps(50):
        w = mp.mpf(probability)
        if reverse:
            rows = [(mp.mpf(a), (1 - w) * mp.mpf(a) + w * mp.mpf(b)) for a, b in zip(p, q, strict=True)]
        else:
            rows = [((1 - w) * mp.mpf(b) + w * mp.mpf(a), mp.mpf(b)) for a, b in zip(p, q, strict=True)]
        profile = RoundProfile.subsampled(RoundProfile.finite(p, q, reverse=False), probability, reverse=reverse)
        for epsilon in [*EPSILONS, 0.3 * probability, -0.3 * probability, 2 * probability, -2 * probability]:
            exact = pair_delta(rows, epsilon)
            delta, error, _, _ = Inspection.profile(profile, epsilon)
            assert abs(mp.mpf(delta) - exact) <= error
            assert error <= 1e-13 * max(delta, probability)


def test_two_clients_that_are_sampled_with_all_their_rounds() -> None:
    """A client is drawn with probability 1/4 and then answers twice; there are three such rounds: all outcomes."""
    keep, w = mp.mpf(7) / 10, mp.mpf(1) / 4
    one = [(keep, 1 - keep), (1 - keep, keep)]
    inner = [(a * c, b * d) for (a, b), (c, d) in product(one, repeat=2)]
    drawn = [((1 - w) * b + w * a, b) for a, b in inner]
    rows = [(mp.fprod(a for a, _ in many), mp.fprod(b for _, b in many)) for many in product(drawn, repeat=3)]
    answer = RoundProfile.finite([0.7, 0.3], [0.3, 0.7], reverse=False)
    for below in (True, False):
        client = RoundProfile.composed([(answer, 2)], below=below)
        sampled = RoundProfile.subsampled(client, 0.25, reverse=False)
        for epsilon in (0.0, 0.3, 0.9):
            exact = pair_delta(rows, epsilon)
            (interval,) = answer_all([([(sampled, 3)], epsilon, None, 1e-6)])
            if below:
                assert float(exact) * (1 - 1e-3) <= interval.lower <= exact
            else:
                assert exact <= interval.upper <= float(exact) * (1 + 1e-3)


def test_renyi_bounds_are_above_what_they_are_the_divergences_of() -> None:
    """Randomised response at every order, and its exact profile; the Gaussian mechanism and its zCDP."""
    keep = mp.mpf(8) / 10
    orders = [1.1, 1.5, 2.0, 3.0, 8.0, 40.0]
    bounds = [
        float(mp.log(keep**a * (1 - keep) ** (1 - a) + (1 - keep) ** a * keep ** (1 - a)) / (a - 1)) for a in orders
    ]
    profile = RoundProfile.renyi(orders, [bound * (1 + 1e-12) for bound in bounds])
    pairs = [(keep, 1 - keep), (1 - keep, keep)]
    gaussian, zcdp = RoundProfile.gaussian(0.3, 1.0), RoundProfile.zcdp(0.045)
    for epsilon in EPSILONS:
        assert profile.delta(epsilon)[1] >= pair_delta(pairs, epsilon)
        assert zcdp.delta(epsilon)[1] >= gaussian.delta(epsilon)[0]
        if epsilon > 0:
            each = (
                math.exp((a - 1) * (bound - epsilon) + (a - 1) * math.log(a - 1) - a * math.log(a))
                for a, bound in zip(orders, bounds, strict=True)
            )
            best = min(1.0, *each)
            assert profile.delta(epsilon)[1] <= best * (1 + (2e-6 if best > 1e-30 else 2e-3))


def test_what_is_outside_of_a_domain_is_refused(snapshot: Snapshot) -> None:
    laplace = RoundProfile.laplace(1.0, 1.0)
    for wrong in (
        lambda: RoundProfile.guarantees([]),
        lambda: RoundProfile.guarantees([(-0.1, 0.1)]),
        lambda: RoundProfile.guarantees([(0.1, math.nan)]),
        lambda: RoundProfile.tabulated([(-1.0, 0.1)]),
        lambda: RoundProfile.finite([0.5, 0.5], [1.0], reverse=False),
        lambda: RoundProfile.exponential(0.0),
        lambda: RoundProfile.discrete_laplace(0, 1.0),
        lambda: RoundProfile.discrete_gaussian(1, 1e-3),
        lambda: RoundProfile.subsampled(laplace, 0.0, reverse=False),
        lambda: RoundProfile.renyi([2.0], [-1.0]),
        lambda: RoundProfile.zcdp(math.inf),
        lambda: RoundProfile.composed([], below=True),
        lambda: laplace.delta(math.inf),
    ):
        snapshot.raised(wrong)


@pytest.mark.parametrize(
    ("law", "sigma"),
    [
        ([(0.9, 0.0), (0.1, 1.0)], 0.8),
        ([(0.5, 0.0), (0.2, 0.3), (0.3, 2.5)], 1.0),
        ([(1.0, 1.7)], 2.0),
        ([(0.25, 0.5), (0.5, 1.0), (0.25, 4.0)], 3.0),
        ([(1e-9, 8.0), (1.0 - 1e-9, 0.0)], 0.5),
    ],
)
def test_a_mixture_of_gaussians_is_its_integral(law: list[tuple[float, float]], sigma: float) -> None:
    """Both directions by the half-line where the ratio crosses α, found by bisection in high precision.

    The relative error of the weights, 1e-14, is an absolute one of the loss, so it counts in full where δ is small.
    """
    probabilities, shifts = [p for p, _ in law], [s for _, s in law]
    with mp.workdps(40):
        total = mp.fsum(probabilities)
        terms = [(mp.mpf(p) / total, mp.mpf(s) / mp.mpf(sigma)) for p, s in law]
        for epsilon in (-3.0, -0.4, 0.0, 0.05, 0.7, 3.0):
            alpha = mp.exp(mp.mpf(epsilon))
            exact = {False: _above(terms, alpha), True: _below(terms, alpha)}
            for reverse, value in exact.items():
                check(RoundProfile.mixture(probabilities, shifts, sigma, reverse=reverse), epsilon, value, 2e-6)


def _crossing(terms: list[tuple[mp.mpf, mp.mpf]], level: mp.mpf) -> mp.mpf | None:
    """Return y where Σ p e^{sy − s²/2} = level; None if the ratio never falls to it."""
    least = mp.fsum(p for p, s in terms if s == 0)
    if level <= least:
        return None
    low, high = mp.mpf(-200), mp.mpf(200)
    for _ in range(160):
        middle = (low + high) / 2
        ratio = mp.fsum(p * mp.exp(s * middle - s * s / 2) for p, s in terms)
        low, high = (middle, high) if ratio < level else (low, middle)
    return low


def _above(terms: list[tuple[mp.mpf, mp.mpf]], alpha: mp.mpf) -> mp.mpf:
    """Return sup_A P(A) − αQ(A) for P = Σ p N(s, 1) and Q = N(0, 1)."""
    y = _crossing(terms, alpha)
    return 1 - alpha if y is None else mp.fsum(p * mp.ncdf(s - y) for p, s in terms) - alpha * mp.ncdf(-y)


def _below(terms: list[tuple[mp.mpf, mp.mpf]], alpha: mp.mpf) -> mp.mpf:
    """Return sup_A Q(A) − αP(A)."""
    y = _crossing(terms, 1 / alpha)
    return mp.mpf(0) if y is None else mp.ncdf(y) - alpha * mp.fsum(p * mp.ncdf(y - s) for p, s in terms)


@pytest.mark.parametrize(
    ("probabilities", "shifts", "sigma"),
    [
        ([0.5, 0.5], [1.0], 1.0),
        ([0.5, 0.5], [0.0, 0.0], 1.0),
        ([1.5], [1.0], 1.0),
        ([1.0], [-1.0], 1.0),
        ([1.0], [1.0], 0.0),
    ],
)
def test_mixtures_outside_of_their_domain(
    probabilities: list[float], shifts: list[float], sigma: float, snapshot: Snapshot
) -> None:
    snapshot.raised(RoundProfile.mixture, probabilities, shifts, sigma, reverse=False)

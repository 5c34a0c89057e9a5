"""Single rounds against high precision: every value is within the error that it states, and the error is small."""

import random
from itertools import combinations, pairwise

import mpmath as mp
import numpy as np
import oracle
import pytest
from log_sums import logsumexp
from scipy.optimize import brentq  # type: ignore[import-untyped]

from pyaccount._core import Inspection, RoundProfile

RNG = random.Random(20261121)
POISSON = [
    (RNG.choice([1, 1, 2, 3, 8]), 10 ** RNG.uniform(-4, -0.1), 10 ** RNG.uniform(-0.4, 1.0), RNG.random() < 0.4)
    for _ in range(16)
] + [(20, 0.02, 0.7, False)]
FIXED_SIZE = [
    (group, RNG.randrange(group + 5, 400), RNG.randrange(1, 5), 10 ** RNG.uniform(-0.3, 0.8))
    for group in (1, 1, 2, 3, 5, 8)
]


def check(profile: RoundProfile, epsilon: float, exact: mp.mpf, scale: float = 1.0) -> None:
    delta, error, _, _ = Inspection.profile(profile, epsilon)
    assert abs(mp.mpf(delta) - exact) <= error, (epsilon, delta, exact, error)
    # The error is relative to P(L > ε), of which δ is a part: far below one per mille of δ wherever δ matters.
    assert error <= 1e-9 * scale * max(delta, 1e-12), (epsilon, delta, error)


@pytest.mark.parametrize(("group", "p", "sigma", "two_sided"), POISSON)
def test_poisson_mixtures(group: int, p: float, sigma: float, two_sided: bool) -> None:
    with mp.workdps(30):
        weights = oracle.binomial(group, p)
        above = [(w, mp.mpf(j) / mp.mpf(sigma)) for j, w in enumerate(weights)]
        below = [(w, -c) for w, c in above] if two_sided else [(mp.mpf(1), mp.mpf(0))]
        remove = RoundProfile.poisson(group, p, sigma, two_sided=two_sided, reverse=False)
        add = RoundProfile.poisson(group, p, sigma, two_sided=two_sided, reverse=True)
        for epsilon in [-2.0, -0.3, -1e-3, 0.0, 1e-4, 0.05, 0.7, 3.0, 9.0]:
            check(remove, epsilon, oracle.mixture_delta(above, below, mp.mpf(epsilon)), 1e3)
            check(add, epsilon, oracle.mixture_delta(below, above, mp.mpf(epsilon), increasing=False), 1e3)


@pytest.mark.parametrize(("sampler", "p", "sigma"), [("poisson", 0.5, 900.0), ("with-replacement", 0.25, 500.0)])
def test_thousands_of_components(sampler: str, p: float, sigma: float) -> None:
    """2001 components, most of whose weights underflow."""
    trials = 2000
    with mp.workdps(oracle.DIGITS):
        odds = mp.mpf(p) / (1 - mp.mpf(p))
        weights = [(1 - mp.mpf(p)) ** trials]
        for j in range(trials):
            weights.append(weights[-1] * (trials - j) / (j + 1) * odds)
        logs = np.array([float(mp.log(w)) for w in weights])
        shifts = np.arange(trials + 1) / sigma
        if sampler == "poisson":
            profile = RoundProfile.poisson(trials, p, sigma, two_sided=False, reverse=False)
        else:
            profile = RoundProfile.copies(sampler, 1, 4, trials, 0, 1.0, sigma, reverse=False)
        for epsilon in (0.0, 2.0):
            # Near the best half-line δ changes with the square of the distance, so a threshold in doubles suffices.
            tau = brentq(lambda y, e=epsilon: logsumexp(logs + shifts * (y - shifts / 2)) - e, -40, 40, xtol=1e-13)
            above = mp.fsum(w * mp.ncdf(j / mp.mpf(sigma) - mp.mpf(tau)) for j, w in enumerate(weights))
            check(profile, epsilon, above - mp.exp(epsilon) * mp.ncdf(-mp.mpf(tau)), 1e4)


@pytest.mark.parametrize(("group", "others", "batch", "sigma"), FIXED_SIZE)
@pytest.mark.parametrize("shift", [1.0, 2.0])
def test_fixed_size_mixtures(group: int, others: int, batch: int, sigma: float, shift: float) -> None:
    with mp.workdps(oracle.DIGITS):
        weights = oracle.hypergeometric(group, others, batch)
        above = [(w, shift * j / mp.mpf(sigma)) for j, w in enumerate(weights) if w > 0]
        below = [(mp.mpf(1), mp.mpf(0))]
        profile = RoundProfile.copies("fixed-size", group, group + others, batch, 0, shift, sigma, reverse=False)
        for epsilon in [-0.5, 0.0, 0.01, 0.4, 2.0]:
            check(profile, epsilon, oracle.mixture_delta(above, below, mp.mpf(epsilon)), 1e3)


def joint_convexity(weights: list[mp.mpf], sigma: mp.mpf, alpha: mp.mpf) -> mp.mpf:
    """Return h(α′) as the mathematics page writes it, and its reflection."""
    if alpha < 1:
        return 1 - alpha + alpha * joint_convexity(weights, sigma, 1 / alpha)
    eta = 1 - weights[0]
    inner = 1 + (alpha - 1) / eta
    return mp.fsum(
        w * oracle.gaussian_delta(2 * j / sigma, mp.log(inner)) for j, w in enumerate(weights) if j >= 1 and w > 0
    )


@pytest.mark.parametrize(("group", "others", "batch", "sigma"), FIXED_SIZE)
def test_replaced_records(group: int, others: int, batch: int, sigma: float) -> None:
    with mp.workdps(oracle.DIGITS):
        weights = oracle.hypergeometric(group, others, batch)
        profile = RoundProfile.displaced(
            "replaced", "fixed-size", group, group + others, batch, 0, sigma, reverse=False
        )
        for epsilon in [-3.0, -0.2, 0.0, 0.01, 0.4, 2.0, 8.0]:
            bound = joint_convexity(weights, mp.mpf(sigma), mp.exp(mp.mpf(epsilon)))
            if min(group, batch) == 1:
                check(profile, epsilon, bound, 1e3)
            else:
                # This is one of several bounds, the best of which is used.
                delta, error, *_ = Inspection.profile(profile, epsilon)
                assert delta - error <= bound * (1 + mp.mpf(10) ** -12)


@pytest.mark.parametrize(("dataset", "batch", "sigma"), [(100, 1, 0.7), (100, 30, 1.3), (7, 7, 2.0), (10**6, 10, 1.0)])
def test_zeroed_record(dataset: int, batch: int, sigma: float) -> None:
    with mp.workdps(oracle.DIGITS):
        q, s = mp.mpf(batch) / dataset, mp.mpf(sigma)
        none, one, two = ([(1 - q, mp.mpf(0)), (q, c / s)] for c in (0, 1, 2))
        remove = RoundProfile.displaced("zeroed", "fixed-size", 1, dataset, batch, 0, sigma, reverse=False)
        add = RoundProfile.displaced("zeroed", "fixed-size", 1, dataset, batch, 0, sigma, reverse=True)
        for epsilon in [0.0, 0.003, 0.2, 1.5]:
            e = mp.mpf(epsilon)
            # Beyond 3/(2σ) the ratio of the opposed pair increases; ε ≥ 0 is only exceeded there.
            opposed = half_line(two, one, e, 3 / (2 * s))
            aligned = oracle.mixture_delta(one, none, e)
            check(remove, epsilon, opposed, 1e3)
            check(add, epsilon, aligned, 1e3)
            if epsilon > 0:
                reflect = 1 - mp.exp(-e)
                check(remove, -epsilon, reflect + mp.exp(-e) * aligned, 1e3)
                check(add, -epsilon, reflect + mp.exp(-e) * opposed, 1e3)


def half_line(p: oracle.Mixture, q: oracle.Mixture, epsilon: mp.mpf, start: mp.mpf) -> mp.mpf:
    """Return max over t ≥ start of P(y > t) − e^ε Q(y > t), by golden-section search without likelihood ratios."""

    def value(t: mp.mpf) -> mp.mpf:
        return mp.fsum(w * oracle.tail(t - c) for w, c in p) - mp.exp(epsilon) * mp.fsum(
            w * oracle.tail(t - c) for w, c in q
        )

    low, high, golden = start, start + 40, (mp.sqrt(5) - 1) / 2
    left, right = high - golden * (high - low), low + golden * (high - low)
    at_left, at_right = value(left), value(right)
    # Near the best threshold the value changes with the square of the distance, here 1e-23.
    for _ in range(115):
        if at_left > at_right:
            high, right, at_right = right, left, at_left
            left = high - golden * (high - low)
            at_left = value(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + golden * (high - low)
            at_right = value(right)
    return max(mp.mpf(0), value((low + high) / 2))


@pytest.mark.parametrize("sensitivity", [1e-3, 0.3, 1.0, 20.0, 64.0])
def test_gaussian(sensitivity: float) -> None:
    with mp.workdps(oracle.DIGITS):
        profile = RoundProfile.gaussian(sensitivity, 1.0)
        for share in [-3.0, -1.0, 0.0, 0.5, 1.0, 4.0, 20.0]:
            epsilon = sensitivity * (sensitivity / 2 + share)
            exact = oracle.gaussian_delta(mp.mpf(sensitivity), mp.mpf(epsilon))
            check(profile, epsilon, exact, 1e6)


def test_slope_is_the_derivative() -> None:
    profile = RoundProfile.poisson(3, 0.1, 0.8, two_sided=False, reverse=False)
    for epsilon in [-0.2, 0.1, 0.9, 4.0]:
        step = 1e-5
        difference = (
            Inspection.profile(profile, epsilon - step)[0] - Inspection.profile(profile, epsilon + step)[0]
        ) / (2 * step)
        assert Inspection.profile(profile, epsilon)[2] == pytest.approx(difference, rel=1e-6)


def test_loss_range_ends() -> None:
    p = 0.25
    remove = RoundProfile.poisson(1, p, 1.0, two_sided=False, reverse=False)
    add = RoundProfile.poisson(1, p, 1.0, two_sided=False, reverse=True)
    lowest = float(mp.log1p(-p))
    # Below the smallest loss every outcome counts; above the largest one none does.
    assert Inspection.profile(remove, lowest - 0.1)[0] == pytest.approx(1 - (1 - p) * mp.exp(-0.1), rel=1e-15)
    assert Inspection.profile(add, -lowest + 1e-6)[0] == 0.0
    assert 0.0 < Inspection.profile(add, -lowest - 1e-3)[0] < 1e-6


def test_fixed_size_bounds_hold_for_random_gradients() -> None:
    """Enumerate small fixed-size mechanisms: no gradients exceed the bound, but some exceed the commonly used pair."""
    rng = random.Random(7)
    beaten = 0
    for _ in range(40):
        size, batch, sigma = 4, rng.choice([1, 2, 3]), rng.choice([0.6, 1.0, 2.0])
        others = [rng.choice([-1.0, 1.0, rng.uniform(-1, 1)]) for _ in range(size - 1)]
        x, y = rng.choice([(1.0, -1.0), (-1.0, 1.0), (rng.uniform(-1, 1), rng.uniform(-1, 1))])
        first, second = batch_sums([*others, x], batch, sigma), batch_sums([*others, y], batch, sigma)
        bound = RoundProfile.displaced("replaced", "fixed-size", 1, size, batch, 0, sigma, reverse=False)
        published = RoundProfile.poisson(1, batch / size, sigma, two_sided=True, reverse=False)
        for epsilon in (0.0, 0.3, 1.0, 2.5):
            actual = hockey_stick(first, second, epsilon)
            assert actual <= Inspection.profile(bound, epsilon)[0] + 1e-12
            beaten += actual > Inspection.profile(published, epsilon)[0] + 1e-6
    assert beaten > 0


def batch_sums(gradients: list[float], batch: int, sigma: float) -> list[float]:
    return [sum(chosen) / sigma for chosen in combinations(gradients, batch)]


def hockey_stick(first: list[float], second: list[float], epsilon: float) -> float:
    """Return ∫(p − e^ε q)_+ of two uniform mixtures of unit Gaussians, by refined sign changes and normal tails."""
    import numpy as np
    from scipy.optimize import brentq
    from scipy.stats import norm

    def excess(y: float) -> float:
        return float(np.mean(norm.pdf(y, first)) - np.exp(epsilon) * np.mean(norm.pdf(y, second)))

    grid = np.linspace(-14.0, 14.0, 561)
    values = np.mean(norm.pdf(grid[:, None], first), axis=1)
    values -= np.exp(epsilon) * np.mean(norm.pdf(grid[:, None], second), axis=1)
    cuts = [
        brentq(excess, a, b, xtol=1e-14)
        for (a, b), (u, v) in zip(pairwise(grid), pairwise(values), strict=True)
        if u * v < 0
    ]
    edges = [-40.0, *cuts, 40.0]

    def mass(centers: list[float], a: float, b: float) -> float:
        return float(np.mean(norm.sf(a, centers) - norm.sf(b, centers)))

    return sum(max(0.0, mass(first, a, b) - float(np.exp(epsilon)) * mass(second, a, b)) for a, b in pairwise(edges))

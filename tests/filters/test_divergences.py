"""Rényi divergences against quadrature, enumeration at high precision, and another accountant."""

import math
from collections.abc import Callable, Sequence

import dp_accounting
import mpmath as mp
import numpy as np
import pytest
from dp_accounting.rdp import rdp_privacy_accountant
from filter_samples import entry, mechanism, poisson
from numpy.typing import NDArray
from snapshots import Snapshot

from pyaccount.filters.renyi import divergence, divergences_of
from pyaccount.plan.compiling import compile_document
from pyaccount.profiles import (
    CopiesProfile,
    DiscreteLaplaceProfile,
    ExponentialProfile,
    ExponentialRunsProfile,
    FiniteProfile,
    GuaranteesProfile,
    LaplaceProfile,
    PoissonProfile,
    ProfileKind,
    SometimesProfile,
    SubsampledProfile,
)

#: What integrals of profiles may be above the truth, relatively.
INTEGRATED = 2e-4
ORDERS = (1.1, 1.5, 2.0, 2.5, 8.0, 30.0)


def sampled(group: int, rate: float, noise: float, *, two_sided: bool = False, reverse: bool = False) -> ProfileKind:
    return PoissonProfile(group, rate, noise, two_sided=two_sided, reverse=reverse)


def finite(p: Sequence[float], q: Sequence[float], order: float) -> float:
    """D_a of finite laws, by its definition."""
    with mp.workdps(40):
        a = mp.mpf(order)
        terms = [mp.mpf(one) ** a * mp.mpf(other) ** (1 - a) for one, other in zip(p, q, strict=True)]
        return float(mp.log(mp.fsum(terms)) / (a - 1))


#: Logarithms of a density at many points.
Density = Callable[[NDArray[np.float64]], NDArray[np.float64]]
#: The points of quadratures: sums over evenly spaced ones are exact to all digits, as the densities are analytic.
STEP = 0.01
#: More than the rounding of such a sum, in units of a divergence of 1e-4; it is taken off.
ROUNDED = 2e-8
POINTS = np.arange(-90.0, 130.0, STEP)


def mixtures(above: Density, below: Density, order: float) -> float:
    """D_a of densities, by quadrature."""
    terms = order * above(POINTS) + (1.0 - order) * below(POINTS)
    most = float(terms.max())
    return (most + math.log(math.fsum(np.exp(terms - most)) * STEP)) / (order - 1.0) * (1.0 - ROUNDED)


def of_gaussians(weights: Sequence[float], shifts: Sequence[float], noise: float) -> Density:
    """The density Σ_j w_j N(s_j, σ²)."""

    def logarithm(x: NDArray[np.float64]) -> NDArray[np.float64]:
        terms = [
            math.log(w) - ((x - shift) / noise) ** 2 / 2.0 - math.log(noise * math.sqrt(2.0 * math.pi))
            for w, shift in zip(weights, shifts, strict=True)
        ]
        return np.asarray(np.logaddexp.reduce(terms, axis=0))

    return logarithm


def of_binomial(group: int, rate: float, noise: float, sign: int = 1) -> Density:
    """The density Σ_j Bin(j; k, q) N(±j, σ²)."""
    weights = [math.comb(group, j) * rate**j * (1.0 - rate) ** (group - j) for j in range(group + 1)]
    return of_gaussians(weights, [float(sign * j) for j in range(group + 1)], noise)


def assert_above(bound: float, truth: float, relative: float) -> None:
    assert truth <= bound <= truth * (1.0 + relative) + 1e-15


@pytest.mark.parametrize("order", ORDERS)
def test_laplace(order: float) -> None:
    for theta in (1e-3, 0.5, 3.0, 40.0):
        with mp.workdps(40):
            a = mp.mpf(order)
            truth = mp.quad(
                lambda x, a=a, t=theta: mp.exp(-abs(x)) / 2 * mp.exp((a - 1) * (abs(x - t) - abs(x))),
                [-120, -20, 0, theta, theta + 20, theta + 120],
            )
            known = divergence(LaplaceProfile(theta, 1.0), order)
            assert known is not None
            assert_above(float(known), float(mp.log(truth) / (a - 1)), 1e-8)


@pytest.mark.parametrize("order", ORDERS)
def test_discrete_laplace(order: float) -> None:
    for steps, scale in ((1, 0.5), (2, 1.5), (7, 20.0)):
        with mp.workdps(40):
            u = mp.exp(-1 / mp.mpf(scale))
            law = {x: u ** abs(x) for x in range(-2500, 2501)}
            total, a = mp.fsum(law.values()), mp.mpf(order)
            truth = mp.fsum(
                p / total * mp.exp((a - 1) * (abs(x - steps) - abs(x)) / mp.mpf(scale)) for x, p in law.items()
            )
            known = divergence(DiscreteLaplaceProfile(steps, scale), order)
            assert known is not None
            assert_above(float(known), float(mp.log(truth) / (a - 1)), 1e-9)


@pytest.mark.parametrize("order", ORDERS)
def test_pure_and_finite_pairs(order: float) -> None:
    for epsilon in (1e-3, 0.7, 5.0):
        with mp.workdps(40):
            likely = 1 / (1 + mp.exp(-mp.mpf(epsilon)))
            truth = finite((likely, 1 - likely), (1 - likely, likely), order)
        (known,) = divergences_of(mechanism(kind="stated", epsilon=epsilon), (order,))
        assert_above(known, truth, 1e-12)
    p, q = (0.5, 0.3, 0.2), (0.2, 0.3, 0.5)
    for above, below, reverse in ((p, q, False), (q, p, True)):
        pair = FiniteProfile(p, q, reverse=reverse)
        known_pair = divergence(pair, order)
        assert known_pair is not None
        assert_above(float(known_pair), finite(above, below, order), 1e-10)
    assert divergence(FiniteProfile((1.0, 0.0), (0.0, 1.0), reverse=False), order) is None


@pytest.mark.parametrize("order", ORDERS)
def test_bounded_range_is_the_largest_of_all_two_point_losses(order: float) -> None:
    for r in (0.05, 1.0, 6.0):
        worst = 0.0
        for k in range(2001):
            t = r * k / 2000.0
            p = (math.exp(r) - math.exp(t)) / math.expm1(r)
            value = p * math.exp((order - 1.0) * t) + (1.0 - p) * math.exp((order - 1.0) * (t - r))
            worst = max(worst, math.log(value) / (order - 1.0))
        known = divergence(ExponentialProfile(r), order)
        assert known is not None
        assert_above(float(known), worst * (1.0 - 1e-12), 1e-4)
        assert float(known) <= order * r * r / 8.0 * (1.0 + 1e-12)
        several = divergence(ExponentialRunsProfile(r, 5), order)
        assert several is not None
        assert float(several) == pytest.approx(5.0 * float(known), rel=1e-12)


@pytest.mark.parametrize(("rate", "noise"), [(0.01, 1.0), (0.1, 0.7), (0.5, 2.0)])
def test_poisson_sampling_of_one_record(rate: float, noise: float) -> None:
    """Both directions have the bound of the larger one, for whole orders exactly; other orders are integrated."""
    with_record, without = of_binomial(1, rate, noise), of_binomial(0, rate, noise)
    for order in (1.5, 2.0, 2.5, 8.0):
        remove, add = mixtures(with_record, without, order), mixtures(without, with_record, order)
        assert add < remove
        for reverse in (False, True):
            known = divergence(sampled(1, rate, noise, reverse=reverse), order)
            assert known is not None
            whole = order == round(order)
            truth = remove if whole or not reverse else add
            assert_above(float(known), truth, 1e-7 if whole else max(INTEGRATED, remove / add - 1.0 + INTEGRATED))


def test_the_other_accountant_agrees() -> None:
    """dp_accounting computes whole orders by the same sum, and independently of this package."""
    orders = [2, 3, 4, 8, 16, 32, 64, 128, 256]
    for rate, noise in ((1e-4, 0.6), (0.01, 1.0), (0.2, 5.0)):
        accountant = rdp_privacy_accountant.RdpAccountant(orders)
        accountant.compose(dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(noise)), 1000)
        ours = divergences_of(poisson(noise, rate, 1000), [float(order) for order in orders])
        for mine, theirs in zip(ours, accountant._rdp, strict=True):
            assert mine == pytest.approx(theirs, rel=1e-6)


@pytest.mark.parametrize("order", [2.0, 2.5, 6.0])
def test_groups_and_replaced_records(order: float) -> None:
    group, rate, noise = 3, 0.1, 2.0
    with_group, without = of_binomial(group, rate, noise), of_binomial(0, rate, noise)
    for reverse, pair in ((False, (with_group, without)), (True, (without, with_group))):
        known = divergence(sampled(group, rate, noise, reverse=reverse), order)
        assert known is not None
        assert_above(float(known), mixtures(*pair, order), INTEGRATED)
    mirrored = of_binomial(1, rate, noise, -1)
    known = divergence(sampled(1, rate, noise, two_sided=True), order)
    assert known is not None
    assert_above(float(known), mixtures(of_binomial(1, rate, noise), mirrored, order), INTEGRATED)


@pytest.mark.parametrize("order", [1.5, 2.0, 6.5])
@pytest.mark.parametrize("shifts", [(0.0, 1.0, 2.5), (0.5, 1.0, 2.5)])
def test_random_contributions(order: float, shifts: tuple[float, ...]) -> None:
    """Σ_j p_j N(s_j, σ²) against N(0, σ²), with and without a share of runs in which the record contributes nothing."""
    weights = (0.7, 0.25, 0.05)
    document = mechanism(
        kind="mixture-of-gaussians", sensitivities=list(shifts), probabilities=list(weights), sigma=2.0
    )

    density, alone = of_gaussians(weights, shifts, 2.0), of_gaussians((1.0,), (0.0,), 2.0)
    truth = max(mixtures(density, alone, order), mixtures(alone, density, order))
    (known,) = divergences_of(document, (order,))
    assert_above(known, truth, INTEGRATED)


@pytest.mark.parametrize("order", [1.5, 2.0, 5.5, 20.0])
def test_sampling_of_any_pair(order: float) -> None:
    likely = 1.0 / (1.0 + math.exp(-1.0))
    p, q, rate = (likely, 1.0 - likely), (1.0 - likely, likely), 0.1
    mixed = tuple(rate * one + (1.0 - rate) * other for one, other in zip(p, q, strict=True))
    inner = GuaranteesProfile(((1.0, 0.0),))
    for reverse, (above, below) in ((False, (mixed, q)), (True, (q, mixed))):
        known = divergence(SubsampledProfile(inner, rate, reverse=reverse), order)
        assert known is not None
        assert_above(float(known), finite(above, below, order), INTEGRATED)
    sometimes = divergence(SometimesProfile(inner, rate), order)
    assert sometimes is not None
    truth = finite((rate * p[0], rate * p[1], 1.0 - rate), (rate * q[0], rate * q[1], 1.0 - rate), order)
    assert_above(float(sometimes), truth, 1e-9)


def test_other_samplers_are_integrated_from_their_profiles() -> None:
    """Draws with replacement under add-remove have Σ_j Bin(j; m, 1/N) N(2j, …) against N(0): by quadrature."""
    document = entry(
        training={"iterations": 1, "dataset_size": 50, "expected_batch_size": 3},
        sampler={"kind": "with-replacement"},
        noise={"multiplier": 4.0},
    )
    bounds = compile_document(document).at().bounds()
    (rounds,) = bounds["remove"].upper
    assert isinstance(rounds.profile, CopiesProfile)
    shift = rounds.profile.shift
    weights = [math.comb(3, j) * 0.02**j * 0.98 ** (3 - j) for j in range(4)]
    drawn, alone = of_gaussians(weights, [shift * j for j in range(4)], 4.0), of_gaussians((1.0,), (0.0,), 4.0)
    truth = max(mixtures(drawn, alone, 4.0), mixtures(alone, drawn, 4.0))
    (known,) = divergences_of(document, (4.0,))
    assert_above(known, truth, 1e-3)


def test_stated_tables_are_interpolated_by_chords() -> None:
    table = mechanism(kind="stated", renyi=[{"order": 2, "epsilon": 0.1}, {"order": 4, "epsilon": 0.3}])
    for order, bound in ((1.5, 0.1), (2.0, 0.1), (3.0, (0.1 + 0.9) / 2.0 / 2.0), (4.0, 0.3)):
        (known,) = divergences_of(table, (order,))
        assert known == pytest.approx(bound, rel=1e-14)
        assert known >= min(bound, 0.3)
    assert divergences_of(mechanism(kind="stated", rho=0.25), (3.0,)) == (0.75,)
    assert divergences_of(mechanism(kind="stated", mu=0.5), (4.0,)) == (0.5,)


def test_a_group_that_is_always_drawn_is_gaussian() -> None:
    for reverse in (False, True):
        found = divergence(sampled(3, 1.0, 2.0, reverse=reverse), 4.0)
        assert found is not None
        assert float(found) == pytest.approx(4 * 9 / (2 * 4), rel=INTEGRATED)
        assert float(found) >= 4 * 9 / (2 * 4) * (1 - 1e-15)


def test_nothing_overflows() -> None:
    for part in (sampled(1, 0.5, 0.05), sampled(1, 1e-9, 0.05), LaplaceProfile(400.0, 1.0), ExponentialProfile(900.0)):
        known = divergence(part, 64.0)
        assert known is not None
        assert 0.0 < float(known) < math.inf
    assert divergence(sampled(1, 0.1, 1.0), 1e6) is None
    assert divergence(sampled(1, 0.1, 1.0), 1024.0) is not None
    assert divergence(GuaranteesProfile(((1.0, 1e-6),)), 2.0) is None


@pytest.mark.parametrize("order", [1.0, 0.5, math.nan, math.inf])
def test_orders_are_above_1(order: float, snapshot: Snapshot) -> None:
    snapshot.raised(lambda: sampled(1, 0.1, 1.0).build().divergence(order))


def test_sums_over_integers_are_short_for_any_parameters() -> None:
    """Discrete Laplace noise with 2^52 steps, samples of long compositions, and large groups."""
    steps = divergence(DiscreteLaplaceProfile(2**52, 1e17), 8.0)
    assert steps is not None
    assert float(steps) == pytest.approx(float(divergence(LaplaceProfile(2.0**52, 1e17), 8.0) or 0), rel=1e-6)
    large = divergence(sampled(200, 0.01, 20.0), 200.0)
    assert large is not None
    # The whole group is Gaussian, with 200/20 as its shift.
    assert 0.0 < float(large) <= 200.0 * 100.0 / 2.0 * (1.0 + 1e-9)

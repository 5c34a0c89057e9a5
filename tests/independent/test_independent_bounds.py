"""The bounds of the independent checker, compared with closed forms, enumerations and quadratures."""

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.stats import norm

from pyaccount.independent import combinators, draws, lattice, laws, search
from pyaccount.independent.draws import discrete, truncated
from pyaccount.independent.enclosures import up
from pyaccount.independent.lattice import NotCheckableError


@pytest.fixture(autouse=True)
def precision() -> Iterator[None]:
    with mpmath.workprec(120):
        yield


def density(y: np.ndarray, mean: float, sigma: float = 1.0) -> np.ndarray:
    return np.exp(-((y - mean) ** 2) / (2 * sigma**2)) / (sigma * math.sqrt(2 * math.pi))


def integral(gain: np.ndarray, y: np.ndarray) -> float:
    """The trapezoidal rule, whose error is that of the kinks: about the square of the step."""
    return float(np.sum(gain) * (y[1] - y[0]))


def gaussian(epsilon: float, s: float) -> float:
    """δ of a Gaussian mechanism of sensitivity s."""
    middle = mpmath.mpf(epsilon) / s
    return float(mpmath.ncdf(s / 2 - middle) - mpmath.exp(epsilon) * mpmath.ncdf(-s / 2 - middle))


def bounds(
    parts: list[tuple[laws.Round, int]], epsilon: float, claimed: float, seconds: float = 4.0
) -> search.ProvenBounds:
    return search.prove(parts, Fraction(epsilon), Fraction(claimed), seconds)


def shift(sigma: float) -> Fraction:
    return 1 / Fraction(sigma) ** 2


def spacing_of(h: float) -> int:
    return round(h * 2**lattice.SPACING)


def value_at(part: laws.Round, epsilon: float) -> float:
    """Return the upper bound of a round's profile at a lattice point near ε, with that point."""
    grid = lattice.LossGrid(spacing_of(epsilon), 30, 200)
    return part.value(grid, 1, 0) / 2**200


def test_several_gaussians_on_a_lattice_are_one() -> None:
    # With probability 1 it is a mixture for the checker, and not one Gaussian.
    parts: list[tuple[laws.Round, int]] = [(laws.MixtureRound({1: Fraction(1)}, shift(6.0)), 9)]
    exact = gaussian(1.0, 0.5)
    found = bounds(parts, 1.0, exact)
    assert exact <= found.delta <= exact * 1.001
    below = bounds(parts, 1.0, exact * 0.99)
    assert below.lower is not None
    assert exact * 0.99 < below.lower <= exact <= below.delta


def test_gaussians_far_out_in_the_tail() -> None:
    # Eleven standard deviations.
    epsilon = 20.0
    exact = gaussian(epsilon, 0.5 * math.sqrt(10))
    parts: list[tuple[laws.Round, int]] = [(laws.MixtureRound({1: Fraction(1)}, shift(2.0)), 10)]
    found = bounds(parts, epsilon, exact, 20.0)
    assert exact <= found.delta <= exact * 1.001
    assert found.epsilon is not None
    assert epsilon <= found.epsilon <= epsilon + 0.001


def test_a_round_that_hides_little_has_its_bound() -> None:
    found = bounds([(laws.MixtureRound({1: Fraction(1, 2)}, shift(0.05)), 1)], 3.0, 0.501)
    assert 0.499 <= found.delta <= 0.501


@pytest.mark.parametrize("tilt", [0, 512, 3000])
@pytest.mark.parametrize("spare", [0, 10**18, 10**19])
def test_what_is_left_out_of_tilted_laws_is_added(tilt: int, spare: int) -> None:
    """Three losses of four values, one of them infinite: a sum over all outcomes."""
    h, masses, infinite = 0.125, {-3: 0.125, 2: 0.5, 5: 0.25, 9: 0.0625}, 0.0625
    law = lattice.Law(-3, [int(masses.get(k, 0) * 10**22) for k in range(-3, 10)], int(infinite * 10**22))
    grid = lattice.LossGrid(spacing_of(h), 22, 140)
    one = lattice.tilted(grid, law, tilt, 1 << 130, 20)._replace(certain=int(infinite * 2**140))
    whole = lattice.power(grid._replace(digits=20), one, 3, spare)
    for epsilon in (0.0, 0.4, 1.0, 2.5):
        exact = 1 - (1 - infinite) ** 3
        for several in itertools.product(masses, repeat=3):
            exact += math.prod(masses[k] for k in several) * max(0.0, 1 - math.exp(epsilon - h * sum(several)))
        found = lattice.delta(grid._replace(digits=20), whole, up(Fraction(epsilon), 140)) / 2**140
        assert found >= exact * (1 - 1e-14)
        if not spare:
            # Three infinite losses together are counted several times.
            assert found <= exact + 3 * infinite**2 + 1e-12
        elif tilt:
            assert len(whole.masses) < 37


def test_one_gaussian_in_closed_form() -> None:
    for epsilon, sigma in ((0.5, 2.0), (8.0, 0.7), (300.0, 0.05)):
        exact = gaussian(epsilon, 1 / sigma)
        found = bounds([(laws.GaussianRound(shift(sigma)), 1)], epsilon, exact * 0.9)
        assert found.lower is not None
        assert float(found.delta) == pytest.approx(exact, rel=1e-12)
        assert found.lower <= found.delta


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_one_round_of_poisson_sampling_for_a_group(epsilon: float) -> None:
    sigma, p, group = 0.8, Fraction(1, 10), 3
    law, lost = draws.drawn(group, p, Fraction(1, 10**30))
    part = laws.MixtureRound(law, shift(sigma), None, lost)
    weights = [math.comb(group, j) * 0.1**j * 0.9 ** (group - j) for j in range(group + 1)]

    y = np.linspace(-12, 15, 2_000_001)
    mixture = sum(w * density(y, j, sigma) for j, w in enumerate(weights))
    exact = integral(np.maximum(0.0, mixture - math.exp(epsilon) * density(y, 0.0, sigma)), y)
    assert value_at(part, epsilon) == pytest.approx(exact, rel=1e-5)


def test_a_replaced_record_under_poisson_sampling() -> None:
    p = Fraction(1, 5)
    part = laws.MixtureRound({1: p}, shift(1.0), {-1: p})

    y = np.linspace(-12, 12, 2_000_001)
    here, there = (0.8 * density(y, 0.0) + 0.2 * density(y, s) for s in (1.0, -1.0))
    exact = integral(np.maximum(0.0, here - math.exp(0.3) * there), y)
    assert value_at(part, 0.3) == pytest.approx(exact, rel=1e-5)


@pytest.mark.parametrize("count", [1, 4])
def test_randomized_response_is_an_enumeration(count: int) -> None:
    p, q = Fraction(7, 10), Fraction(3, 20)
    outcomes = [(p, q), (q, p), (1 - p - q, 1 - p - q)]
    growth = Fraction(3, 2)
    exact = Fraction(0)
    for several in itertools.product(outcomes, repeat=count):
        gain = math.prod(a for a, _ in several) - growth * math.prod(b for _, b in several)
        exact += max(gain, Fraction(0))
    found = bounds([(laws.FiniteRound(outcomes), count)], math.log(1.5), float(exact) * 1.001)
    assert float(exact) * (1 - 1e-12) <= found.delta <= float(exact) * 1.001


def test_laplace_noise() -> None:
    part = laws.LaplaceRound(Fraction(1, 2))
    assert value_at(part, 0.2) == pytest.approx(1 - math.exp(-0.15), rel=1e-12)
    assert value_at(part, 0.6) < 1e-50
    # Two numbers: the profile of one, at what the loss of the other leaves. A number that moves from 0 to ½.
    y = np.linspace(-40, 40, 4_000_001)
    left = 0.3 - (np.abs(y - 0.5) - np.abs(y))
    inner = np.where(left < -0.5, 1 - np.exp(left), np.maximum(0.0, 1 - np.exp((left - 0.5) / 2)))
    exact = integral(np.exp(-np.abs(y)) / 2 * inner, y)
    found = bounds([(part, 2)], 0.3, exact * 1.0005)
    assert exact * (1 - 1e-6) <= found.delta <= exact * 1.0005


def test_fixed_size_batches_have_their_formula() -> None:
    law = draws.hypergeometric(1000, 10, 1)
    part = laws.Displaced(law, Fraction(0), Fraction(1), zeroed=False, common=False)
    alpha = 1 + (math.exp(0.7) - 1) / 0.01
    assert value_at(part, 0.7) == pytest.approx(0.01 * gaussian(math.log(alpha), 2.0), rel=1e-9)


def test_stated_guarantees_are_met_exactly() -> None:
    part = laws.Guarantees([(Fraction(1), Fraction(1, 1000))])
    assert value_at(part, 1.0) == pytest.approx(0.001, rel=1e-9)
    assert value_at(part, 0.5) == pytest.approx(0.001 + 0.999 * (math.e - math.exp(0.5)) / (1 + math.e), rel=1e-9)


def test_divergences_are_converted_as_published() -> None:
    part = laws.Renyi(Fraction(1, 20), Fraction(0))
    least = min(
        math.exp((a - 1) * (a * 0.05 - 1.0) + (a - 1) * math.log(a - 1) - a * math.log(a))
        for a in (1 + 0.001 * k for k in range(1, 40_000))
    )
    assert value_at(part, 1.0) == pytest.approx(least, rel=1e-6)


@pytest.mark.parametrize("gaussian_noise", [True, False])
def test_discrete_noise_is_a_sum(gaussian_noise: bool) -> None:
    part, width = discrete(Fraction(3), 2, laplace=not gaussian_noise), 3
    weight = {x: math.exp(-x * x / 18 if gaussian_noise else -abs(x) / width) for x in range(-200, 201)}
    total = sum(weight.values())
    exact = sum(max(0.0, weight[x] - math.exp(0.4) * weight[x + 2]) for x in range(-200, 199)) / total
    assert value_at(part, 0.4) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize(("width", "shift"), [("0.4", 1), ("2.5", 7), ("40", 3)])
def test_losses_of_discrete_laplace_noise_are_few(width: str, shift: int) -> None:
    part, r = discrete(Fraction(width), shift, laplace=True), mpmath.exp(-1 / mpmath.mpf(width))
    assert len(part.outcomes) == shift + 1
    for loss in (0.0, round(0.3 * shift / float(width), 2), round(0.95 * shift / float(width), 2)):
        terms = (r ** abs(x) - mpmath.exp(loss) * r ** abs(x - shift) for x in range(-2000, 2001))
        exact = (1 - r) / (1 + r) * mpmath.fsum(max(term, mpmath.mpf(0)) for term in terms)
        assert value_at(part, loss) == pytest.approx(float(exact), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(("laplace", "width", "shift"), [
    (False, 1e5, 1), (True, 1, 10**9), (True, 1e-6, 1), (True, 1e24, 1), (False, 1e-6, 1),
])  # fmt: skip
def test_discrete_noise_of_too_many_values_is_refused(laplace: bool, width: float, shift: int) -> None:
    with pytest.raises(NotCheckableError, match="discrete"):
        discrete(Fraction(width), shift, laplace=laplace)


def test_an_allocation_of_two_rounds_is_a_quadrature() -> None:
    sigma, alpha = 1.3, math.exp(0.25)
    s = 1 / sigma

    y = np.linspace(-11, 11, 40_001)
    left = 2 * alpha - np.exp(s * y - s * s / 2)
    middle = np.log(np.maximum(left, 1e-300)) / s
    call = np.where(left <= 0, 1 - left, norm.cdf(s / 2 - middle) - left * norm.cdf(-s / 2 - middle))
    exact = integral(density(y, 0.0) * call / 2, y)
    part = laws.Allocation([(Fraction(s) ** 2, 2)], Fraction(1, 10**9))
    grid = lattice.LossGrid(spacing_of(0.01), 25, 120)
    found = part.value(grid, 25, 0) / 2**120
    assert exact * (1 - 1e-9) <= found <= exact * 1.001


def test_a_sampled_gaussian_run_is_a_mixture() -> None:
    q = Fraction(1, 20)
    part = combinators.SampledRound([(laws.GaussianRound(shift(1.5)), 1)], Fraction(1, 10**9), q)
    grid = lattice.LossGrid(spacing_of(0.01), 25, 160)
    mixture = laws.MixtureRound({1: q}, shift(1.5))
    for side, k in itertools.product((0, 1), (0, 3, 5, 40)):
        exact = mixture.value(grid, k, side)
        assert exact - 2**160 // 10**12 <= part.value(grid, k, side) <= exact + 2**160 // 5000


def test_masses_that_are_larger_make_a_larger_profile() -> None:
    grid = lattice.LossGrid(spacing_of(0.1), 20, 128)
    law = lattice.Law(-2, [10**19, 2 * 10**19, 3 * 10**19, 4 * 10**19], 0)
    both = lattice.product(grid, law, law, 0)
    exact = [0.01, 0.04, 0.1, 0.2, 0.25, 0.24, 0.16]
    assert [mass / 10**20 for mass in both.masses] == pytest.approx(exact, rel=1e-12)
    assert all(mass / 10**20 >= wanted - 1e-16 for mass, wanted in zip(both.masses, exact, strict=True))
    # Little mass at both ends counts as infinite: 0.01 at the lower one, and 1e-8 and 2·0.6999·1e-4 at the upper one.
    ends = lattice.Law(-2, [10**19, 2 * 10**19, 7 * 10**19 - 10**16, 10**16], 0)
    whole, cut = (lattice.product(grid, ends, ends, spare) for spare in (0, 2 * 10**18))
    at = up(Fraction(1, 5), 128)
    assert lattice.delta(grid, cut, at) >= lattice.delta(grid, whole, at)
    assert cut.infinite == pytest.approx((0.01 + 1e-8 + 2 * 0.6999e-4) * 10**20, rel=1e-9)
    assert (cut.low, len(cut.masses)) == (whole.low + 1, len(whole.masses) - 3)


def test_a_selection_is_the_supremum_over_two_point_losses() -> None:
    r, alpha = 0.5, math.exp(0.375)
    chances = [(t, (math.exp(r) - math.exp(t)) / math.expm1(r)) for t in np.linspace(0, r, 20_001)]
    exact = max(
        p * max(0.0, 1 - alpha * math.exp(-t)) + (1 - p) * max(0.0, 1 - alpha * math.exp(r - t)) for t, p in chances
    )
    grid = lattice.LossGrid(spacing_of(0.125), 25, 120)
    assert laws.Ranges(Fraction(1, 2)).value(grid, 3, 0) / 2**120 == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize(("limit", "records", "p"), [(3, 9, 0.3), (40, 400, 0.08), (7, 30, 0.2)])
def test_truncated_batches_are_a_mean_over_the_number_of_others(limit: int, records: int, p: float) -> None:
    part = truncated(Fraction(p), records, limit, shift(1.0))
    y = np.linspace(-12, 14, 40_001)
    exact = 0.0
    for r in range(records):
        weight = math.comb(records - 1, r) * p**r * (1 - p) ** (records - 1 - r)
        q = p if r < limit else p * limit / (r + 1)
        here = (1 - q) * density(y, 0.0) + q * density(y, 1.0 if r < limit else 2.0)
        there = density(y, 0.0) if r < limit else (1 - q) * density(y, 0.0) + q * density(y, -1.0)
        exact += weight * integral(np.maximum(0.0, here - math.exp(0.5) * there), y)
    assert exact * (1 - 1e-5) <= value_at(part, 0.5) <= exact * 1.03


@pytest.mark.parametrize(("side", "k"), [(1, 8), (0, 3), (0, 12)])
def test_groups_of_zeroed_records_have_the_best_of_several_bounds(side: int, k: int) -> None:
    law, grid = draws.hypergeometric(100, 10, 3), lattice.LossGrid(spacing_of(0.1), 25, 160)
    best, single = (
        laws.Displaced(law, Fraction(0), shift(2.0), zeroed=True, common=common) for common in (True, False)
    )
    assert best.value(grid, k, side) <= single.value(grid, k, side)
    if side == 0:
        # Records that are set to zero are records that are replaced.
        replaced = laws.Displaced(law, Fraction(0), shift(2.0), zeroed=False, common=True)
        assert replaced.attained is not None
        under_p, under_q = replaced.attained.masses(grid.loss(k), grid.bits)
        there = under_p - (grid.alpha(k) * under_q >> grid.bits)
        assert max(there - 2**60, best.value(grid, k, 0)) <= replaced.value(grid, k, 0)


@pytest.mark.parametrize("side", [0, 1])
def test_groups_of_zeroed_records_are_not_below_an_enumeration(side: int) -> None:
    # Two draws from three records, with replacement; the record adds `own` or nothing, and the others `other`.
    drawn = {1: 2 * 1 / 3 * 2 / 3, 2: 1 / 9}
    law = {j: Fraction(p) for j, p in drawn.items()}
    part = laws.Displaced(law, Fraction(0), shift(1.0), zeroed=True, common=True)
    y = np.linspace(-14, 14, 400_001)
    for own, other in itertools.product((-1.0, 1.0), (-1.0, 0.0, 1.0)):
        sums = [(1 - sum(drawn.values()), 2 * other, 2 * other)]
        sums += [(p, j * own + (2 - j) * other, (2 - j) * other) for j, p in drawn.items()]
        here = sum(p * density(y, a) for p, a, _ in sums)
        there = sum(p * density(y, b) for p, _, b in sums)
        if side:
            here, there = there, here
        exact = integral(np.maximum(0.0, here - math.exp(0.5) * there), y)
        grid = lattice.LossGrid(spacing_of(0.5), 30, 200)
        assert exact <= part.value(grid, 1, side) / 2**200 * (1 + 1e-6)


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("case", ["poisson", "replaced", "group", "truncated"])
def test_mixtures_are_quadratures_on_both_sides(case: str, side: int) -> None:
    s, weights, against = {
        "poisson": (1.1, {1: 0.1}, {}),
        "replaced": (0.7, {1: 0.2}, {-1: 0.2}),
        "group": (0.9, {1: 0.2, 2: 0.05, 3: 0.01}, {}),
        "truncated": (1.3, {2: 0.1}, {-1: 0.1}),
    }[case]
    part = laws.MixtureRound(
        {j: Fraction(w) for j, w in weights.items()}, Fraction(s) ** 2, {j: Fraction(w) for j, w in against.items()}
    )
    y = np.linspace(-14, 16, 2_000_001)
    here, there = (
        (1 - sum(side.values())) * density(y, 0.0) + sum(w * density(y, j * s) for j, w in side.items())
        for side in (weights, against)
    )
    if side:
        here, there = there, here
    grid = lattice.LossGrid(spacing_of(0.05), 30, 200)
    for k in (0, 1, 2, 9, 30):
        exact = integral(np.maximum(0.0, here - math.exp(0.05 * k) * there), y)
        assert part.value(grid, k, side) / 2**200 == pytest.approx(exact, rel=1e-6, abs=1e-9)

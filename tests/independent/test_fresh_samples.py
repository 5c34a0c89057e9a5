"""The fresh test of the checker: its samples have the mean δ, and false claims are proven as seldom as is stated."""

import math
import time
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom, norm

from pyaccount.independent.samples import fresh_test as samples
from pyaccount.independent.samples import means
from pyaccount.independent.samples.bets import FIRST, Bets
from pyaccount.independent.samples.bins import Bins
from pyaccount.independent.samples.fresh_test import Added, ClaimUnderTest, Removed, SampleSource
from pyaccount.independent.samples.normals import source
from pyaccount.independent.samples.process import Process
from pyaccount.independent.samples.spaced import SpacedRun

ONE = Fraction(1)
EPSILON = Fraction(3, 4)
#: One round in which a record takes part with probability 0.3.
ROUND = SpacedRun(1, 1, Fraction(3, 10), False, (ONE,), Fraction(4, 5))
#: Two rounds, for which a quadrature has two dimensions.
TWO: dict[str, Process] = {
    "warm": SpacedRun(2, 2, Fraction(1, 5), True, (Fraction(9, 10), Fraction(1, 2)), Fraction(3, 5)),
    "cold": SpacedRun(2, 1, Fraction(1, 5), False, (ONE,), Fraction(3, 5)),
    "bins": Bins(2, 2, (ONE, Fraction(1, 2)), Fraction(4, 5)),
}


def exact(epsilon: float) -> tuple[float, float]:
    """Return δ of the one round, removed and added (section 1)."""
    p, sigma, alpha = 0.3, 0.8, math.exp(epsilon)

    def hockey(a: float) -> float:
        t = sigma * math.log((a - 1 + p) / p) + 1 / (2 * sigma)
        return p * float(norm.sf(t - 1 / sigma)) - (a - 1 + p) * float(norm.sf(t))

    # δ_add(α) = 1 − α + α·δ_remove(1/α), where 1/α may be below 1 − p.
    inverse = 1 / alpha
    return hockey(alpha), 1 - alpha + alpha * (hockey(inverse) if inverse > 1 - p else 1 - inverse)


def density(name: str, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Return the likelihood ratio of two rounds."""

    def term(a: float, b: float) -> np.ndarray:
        return np.exp(a * y + b * z - (a * a + b * b) / 2)

    if name == "warm":
        # It waits for one round with probability p/(1 + p). It takes part in one of the two rounds, or in none.
        a, b, p = 1.5, 0.5 / 0.6, 0.2
        first, second = p / (1 + p), (1 - p) * p / (1 + p) + p * p / (1 + p)
        return 1 - first - second + first * term(a, b) + second * term(0, a)
    if name == "cold":
        return (0.8 + 0.2 * term(1 / 0.6, 0)) * (0.8 + 0.2 * term(0, 1 / 0.6))
    return (term(1.25, 0.625) + term(0, 1.25)) / 2


def quadrature(name: str, epsilon: float) -> tuple[float, float]:
    """Return δ of two rounds, removed and added, by a sum over a grid."""
    grid = np.arange(-9.0, 12.0, 0.02)
    y, z = np.meshgrid(grid, grid)
    f, alpha = density(name, y, z), math.exp(epsilon)
    gains = np.maximum(f - alpha, 0), np.maximum(1 - alpha * f, 0)
    removed, added = (float(np.sum(norm.pdf(y) * norm.pdf(z) * gain)) * 0.02**2 for gain in gains)
    return removed, added


def mean(drawn: SampleSource, count: int, seed: int) -> tuple[float, float]:
    """Return the mean of samples and its standard error; no sample is above the bound."""
    draw, bits = drawn.sampler(source(seed)), 80
    values = [draw(bits) for _ in range(count)]
    known = np.array([float(value) / 2**bits for value in values if value is not None])
    assert len(known) == count
    assert float(np.max(known)) <= float(drawn.weight_bound) * (1 + 1e-6)
    return float(np.mean(known)), float(np.std(known)) / math.sqrt(count)


@pytest.mark.parametrize("name", TWO)
def test_the_mean_of_samples_is_delta(name: str) -> None:
    removed, added = quadrature(name, float(EPSILON))
    setting = TWO[name]
    for m in (2, 3):
        found, error = mean(Removed(setting, setting.tuples(m), EPSILON), 4000, 2)
        assert abs(found - removed) <= 4 * error + 1e-5, m
    bound = setting.hoelder(-ONE, None, EPSILON)
    assert bound is not None
    for tau, weight_bound in ((Fraction(0), ONE), (ONE, Fraction(math.exp(float(bound)) * (1 + 1e-9)))):
        found, error = mean(Added(setting, EPSILON, tau, weight_bound), 4000, 3)
        assert error > 0 or added == 0
        assert abs(found - added) <= 4 * error + 1e-5, tau


def test_the_closed_form_of_one_round() -> None:
    removed, added = exact(0.2)
    epsilon = Fraction(1, 5)
    found, error = mean(Removed(ROUND, ROUND.tuples(2), epsilon), 6000, 5)
    assert abs(found - removed) <= 4 * error
    found, error = mean(Added(ROUND, epsilon, Fraction(0), ONE), 6000, 6)
    assert abs(found - added) <= 4 * error


def test_false_claims_are_proven_as_seldom_as_is_stated() -> None:
    """A claim that is one per cent too small, with q = 0.2: 200 tests of up to 600 samples each."""
    delta, q, repetitions = exact(float(EPSILON))[0], 0.2, 200
    drawn = Removed(ROUND, ROUND.tuples(2), EPSILON)
    draw = drawn.sampler(source(17))

    def accepted(claimed: float, tests: int) -> int:
        won = 0
        for _ in range(tests):
            bets = Bets(Fraction(claimed), drawn.weight_bound, Fraction(1, 5))
            for _ in range(600):
                value = draw(bets.bits)
                bets.add(bets.weight_bound if value is None else value)
                if bets.won():
                    won += 1
                    break
        return won

    assert accepted(0.99 * delta, repetitions) <= binom.ppf(0.9999, repetitions, q)
    # A true claim with as much room is often proven by the same test.
    assert accepted(1.2 * delta, 20) >= 15


def test_the_wealth_is_at_most_the_exact_product() -> None:
    claimed, weight_bound = Fraction(1, 100), Fraction(1, 10)
    bets = Bets(claimed, weight_bound, Fraction(1, 1000))
    unit, wealth = Fraction(1, 1 << bets.bits), ONE
    values = [0, 5, 120, 30] * FIRST
    for value in values:
        fraction = Fraction(bets._fraction, 1 << 20)
        assert 0 <= fraction * (weight_bound - claimed) < 1
        here = value * (bets.weight_bound // 1000)
        wealth *= 1 + fraction * (claimed - here * unit)
        bets.add(here)
    assert bets._fraction == 0 or wealth != 1
    held = Fraction(bets._wealth, 1 << 256)
    assert wealth * (1 - Fraction(1, 10**9)) <= held <= wealth
    # A sample above the bound counts as the bound, and does not make the wealth negative.
    bets.add(10 * bets.weight_bound)
    assert bets._wealth >= 0


def test_nothing_is_bet_before_samples_were_seen() -> None:
    bets = Bets(Fraction(1, 100), Fraction(1, 10), Fraction(1, 1000))
    for _ in range(FIRST - 1):
        bets.add(0)
    assert (bets.log_wealth(), bets._fraction) == (0.0, 0)
    bets.add(0)
    assert bets._fraction > 0


def question(epsilon: float, delta: float, seconds: float = 20.0, seed: int = 1) -> ClaimUnderTest:
    return ClaimUnderTest(Fraction(epsilon), Fraction(delta), source(seed), seconds, failure=Fraction(1, 10**6))


def test_true_claims_are_proven_and_false_ones_are_not() -> None:
    removed, added = exact(0.5)
    assert added < removed
    found = samples.fresh(ROUND, question(0.5, 1.1 * removed), {})
    assert [(each.direction, each.proven) for each in found] == [("add", True), ("remove", True)]
    found = samples.fresh(ROUND, question(0.5, 0.97 * removed, seconds=1.0), {})
    assert (found[-1].direction, found[-1].proven) == ("remove", False)
    # If the direction add is not proven, the other one is not tested.
    (only,) = samples.fresh(ROUND, question(0.1, 0.9 * exact(0.1)[1], seconds=1.0), {})
    assert (only.direction, only.proven) == ("add", False)


def test_a_time_limit_is_kept() -> None:
    began = time.process_time()
    long = SpacedRun(400, 4, Fraction(1, 50), True, (ONE,), Fraction(1, 2))
    found = samples.fresh(long, question(1.0, 1e-9, seconds=1.0), {})
    assert not found[-1].proven
    # Whatever the machine does, a limit that is ignored would take hours.
    assert time.process_time() - began < 60


def test_bounds_that_need_no_samples() -> None:
    never = ROUND.never()
    assert never is not None
    found = samples.added(ROUND, question(float(never) + 1e-9, 1e-9))
    assert (found.proven, found.samples) == (True, 0)  # type: ignore[union-attr]
    found = samples.added(ROUND, question(float(never) - 1e-9, 1e-9))
    assert isinstance(found, Added)
    # A bound on samples below δ is a proof too.
    drawn = Removed(ROUND, ROUND.tuples(2), EPSILON)
    found = samples.bet("remove", drawn, question(float(EPSILON), float(drawn.weight_bound) * 1.001), 0.0)
    assert (found.proven, found.samples) == (True, 0)


def looked_at(name: str, times: int) -> tuple[means.Shifted, float, float]:
    """Return outcomes of two rounds, and by a sum over a grid E D and the bound that it gives: of δ_add, or of E V²."""
    setting, exponent = TWO[name], 2.0
    shifted = means.Shifted(setting, 1.5, source(4))
    assert shifted.centre is not None
    d, step = np.array(shifted.d) / 2**40, 0.02
    y, z = np.meshgrid(np.arange(-9.0, 12.0, step) - d[0], np.arange(-9.0, 12.0, step) - d[1])
    f = density(name, y, z)
    along, across = np.gradient(np.log(f), step)[::-1]
    tangent = [float(g) / 2**40 for g in shifted.centre.gradient]
    linear = np.log(f) - tangent[0] * (y + d[0]) - tangent[1] * (z + d[1])
    statistic = (
        -exponent * linear + ((exponent * along - times * d[0]) ** 2 + (exponent * across - times * d[1]) ** 2) / 2
    )
    law = norm.pdf(y + d[0]) * norm.pdf(z + d[1])
    assert float(np.max(statistic[law > 1e-12])) <= float(shifted.most(128, times))
    return shifted, float(np.sum(law * statistic)) * step**2, exponent


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("name", TWO)
def test_means_that_are_tested_bound_added_records(name: str, times: int) -> None:
    shifted, exact_mean, exponent = looked_at(name, times)
    looks = [look for look in (shifted.look() for _ in range(2000)) if look is not None]
    values = [shifted.value(look, 128, times) / 2**80 for look in looks]
    margin = float(shifted.margin(128, times))
    assert 0 < margin < 1e-6
    error = float(np.std(values)) / math.sqrt(len(values))
    assert abs(float(np.mean(values)) - exact_mean) <= 4 * error + 2e-3
    # What the mean bounds is above what a sum over a grid gives.
    plan = means.MeanPlan(1.5, 128, times, exact_mean, None, 0.0)
    bound = math.exp(means.bounded(plan, EPSILON, shifted.squared))
    y, z = np.meshgrid(np.arange(-12.0, 12.0, 0.02), np.arange(-12.0, 12.0, 0.02))
    gain = np.maximum(1 - math.exp(EPSILON) * density(name, y, z), 0) ** times
    tilted = np.exp((shifted.d[0] * y + shifted.d[1] * z) / 2**40 + float(shifted.squared) / 2) ** (times - 1)
    assert float(np.sum(norm.pdf(y) * norm.pdf(z) * gain * tilted)) * 0.02**2 <= bound * (1 + 1e-3)
    assert exponent == 128 / 64


@pytest.mark.parametrize("name", TWO)
def test_tilted_samples_have_the_mean_delta(name: str) -> None:
    shifted, delta = means.Shifted(TWO[name], 1.5, source(9)), quadrature(name, float(EPSILON))[1]
    values = np.array([float(shifted.sample(EPSILON, 80) or 0) / 2**80 for _ in range(6000)])
    assert abs(float(np.mean(values)) - delta) <= 4 * float(np.std(values)) / math.sqrt(len(values)) + 1e-6


def test_a_tested_mean_proves_true_claims_and_no_false_ones() -> None:
    setting = SpacedRun(12, 2, Fraction(1, 5), True, (Fraction(9, 10), Fraction(1, 2)), Fraction(2))
    shifted = means.Shifted(setting, 1.5, source(9))
    values = np.array([float(shifted.sample(Fraction(3, 10), 80) or 0) / 2**80 for _ in range(4000)])
    delta, error = float(np.mean(values)), float(np.std(values)) / math.sqrt(len(values))
    found = samples.by_means(setting, question(0.3, 1.6 * delta), time.process_time() + 20)
    assert found.proven
    assert found.samples > 0
    found = samples.by_means(setting, question(0.3, 0.9 * (delta - 4 * error)), time.process_time() + 1)
    assert not found.proven

"""Rare participation with little noise: a round loses nearly nothing or dozens of nats, and no tilt fits both."""

import math
from dataclasses import dataclass

import mpmath
import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom

from pyaccount import _core
from pyaccount.profiles import PoissonProfile


@dataclass(frozen=True)
class Rounds:
    """Rounds in which each of a group's records takes part with this probability; the group is removed."""

    count: int
    group_size: int
    probability: float
    noise_multiplier: float

    def weights(self) -> np.ndarray:
        return binom.pmf(np.arange(self.group_size + 1), self.group_size, self.probability)

    def loss(self, outcome: np.ndarray) -> np.ndarray:
        """Return ln P/Q at an outcome, which increases with it."""
        records, variance = np.arange(self.group_size + 1), self.noise_multiplier**2
        exponents = (np.multiply.outer(outcome, records) - 0.5 * records**2) / variance
        # Relative to the first weight, (1 − p)^k, and without cancellation if the rest is small.
        rest = np.exp(exponents[..., 1:] - exponents.max(axis=-1, keepdims=True)) @ self.weights()[1:]
        largest = exponents.max(axis=-1)
        with np.errstate(over="ignore"):
            small = np.log1p(rest * np.exp(np.minimum(largest, 50.0)) / self.weights()[0])
        whole = np.where(largest > 50.0, largest + np.log(rest / self.weights()[0]), small)
        return self.least() + whole

    def least(self) -> float:
        return self.group_size * math.log1p(-self.probability)

    def outcome(self, loss: np.ndarray) -> np.ndarray:
        """Return the outcome with this loss, by bisection, then by secants once the loss is nearly linear."""
        low, high = np.full(loss.shape, -50.0), np.full(loss.shape, 50.0)
        for _ in range(24):
            middle = 0.5 * (low + high)
            above = self.loss(middle) > loss
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        below, beyond = self.loss(low) - loss, self.loss(high) - loss
        for _ in range(2):
            middle = low - below * (high - low) / (beyond - below)
            value = self.loss(middle) - loss
            low, below = np.where(value > 0.0, (low, below), (middle, value))
            high, beyond = np.where(value > 0.0, (middle, value), (high, beyond))
        return low - below * (high - low) / (beyond - below)

    def above(self, outcome: np.ndarray) -> np.ndarray:
        """Return the probability under P of a larger outcome."""
        records = np.arange(self.group_size + 1)
        return ndtr((records - outcome[:, None]) / self.noise_multiplier) @ self.weights()


#: A quiet round loses at most this much more than the least it can. The loss of a loud one is rounded to a lattice,
#: whose end is the loss of an outcome at which three records of the group are drawn at once.
QUIET, STEP, LENGTH = 1e-7, 0.004, 1 << 18
#: More loud rounds, or a loss beyond the lattice, have less than this probability in every case.
LOUD, MORE = 30, 1e-9


def deltas(rounds: Rounds, epsilon: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return bounds on δ: losses of quiet rounds are taken as the least or the most, the rest is rounded to steps."""
    tail = np.append(rounds.above(rounds.outcome(rounds.least() + QUIET + STEP * np.arange(LENGTH // 4))), 0.0)
    mass = np.zeros(LENGTH)
    mass[0], mass[1 : len(tail)] = 1.0 - tail[0], tail[:-1] - tail[1:]
    all_rounds = np.maximum(np.fft.irfft(np.fft.rfft(mass) ** rounds.count, LENGTH), 0.0)
    steps = STEP * np.arange(LENGTH)
    found = []
    for least in (rounds.least(), rounds.least() + QUIET):
        # The losses of loud rounds were rounded up, by at most one step.
        rounded = 0.0 if least > rounds.least() else LOUD * STEP
        losses = rounds.count * least + steps - rounded
        gain = -np.expm1(np.minimum(epsilon[:, None] - losses, 0.0))
        found.append(gain @ all_rounds)
    return found[0] - MORE, found[1] + MORE


CASES = [
    Rounds(2000, 1, 1e-5, 0.125),
    Rounds(2000, 1, 4e-5, 0.125),
    Rounds(2000, 4, 1e-5, 0.125),
    Rounds(1024, 3, 3e-5, 0.125),
]


@pytest.mark.parametrize("rounds", CASES, ids=str)
def test_the_interval_holds_the_truth_and_is_as_narrow_as_asked_for(rounds: Rounds) -> None:
    profile = _core.RoundProfile.poisson(
        rounds.group_size, rounds.probability, rounds.noise_multiplier, two_sided=False, reverse=False
    )
    delta = 1e-5
    found = _core.answer_all([([(profile, rounds.count)], None, delta, 0.02)], threads=2)[0]
    assert 0.98 * found.upper <= found.lower <= found.upper
    least, most = deltas(rounds, np.array([found.lower, found.upper]))
    assert most[0] >= delta
    assert least[1] <= delta


@pytest.mark.parametrize("probability", [1e-5, 4e-5])
def test_a_group_that_is_added_loses_no_more_than_all_rounds_can(probability: float) -> None:
    profile = _core.RoundProfile.poisson(1, probability, 0.125, two_sided=False, reverse=True)
    found = _core.answer_all([([(profile, 2000)], None, 1e-5, 0.02)], threads=2)[0]
    most = -2000 * math.log1p(-probability)
    assert 0.98 * most <= found.lower <= found.upper <= most


# ---- Extreme mechanisms: the largest losses, the smallest tails, and rounds that lose nearly the same


def epsilon_of(
    profile: _core.RoundProfile, delta: float, count: int = 1, tolerance: float = 1e-3
) -> _core.ProvenInterval:
    return _core.answer_all([([(profile, count)], None, delta, tolerance)], threads=2)[0]


def delta_of(profile: _core.RoundProfile, epsilon: float, count: int = 1) -> _core.ProvenInterval:
    return _core.answer_all([([(profile, count)], epsilon, None, 1e-2)], threads=2)[0]


@pytest.mark.parametrize("delta", [1e-5, 1e-200])
@pytest.mark.parametrize("shift", [1e-3, 1.0, 59.0, 61.0, 1e4, 1e8, 3e10, 1e16])
def test_a_gaussian_mechanism_has_a_closed_form_at_any_size(shift: float, delta: float) -> None:
    found = epsilon_of(_core.RoundProfile.gaussian(shift, 1.0), delta)
    assert found.within_tolerance
    with mpmath.workdps(60):
        c = mpmath.mpf(shift)

        def exact(epsilon: float) -> mpmath.mpf:
            t, x = mpmath.mpf(epsilon) / c - c / 2, mpmath.mpf(epsilon) / c + c / 2
            # e^ε Φ(−x) = φ(t) M(x), and for large x the Mills ratio is between 1/x and 1/x − 1/x³.
            second = mpmath.exp(epsilon) * mpmath.ncdf(-x) if x < 1e6 else mpmath.npdf(t) / x
            return mpmath.ncdf(-t) - second

        assert exact(found.upper) <= delta * (1 + 1e-9)
        assert exact(found.lower) >= delta * (1 - 1e-9)
        assert found.upper <= found.lower * (1 + 1e-6)


@pytest.mark.parametrize(("count", "noise_multiplier"), [(10**6, 0.5), (1000, 0.25), (10, 1.0), (1, 0.1)])
def test_rounds_without_a_rare_record_lose_no_more_than_its_probability(count: int, noise_multiplier: float) -> None:
    probability = 1e-9
    profile = _core.RoundProfile.poisson(1, probability, noise_multiplier, two_sided=False, reverse=True)
    most = -count * math.log1p(-probability)
    assert delta_of(profile, 1.01 * most, count).upper <= 1e-100
    for delta in (1e-16, 1e-30):
        assert epsilon_of(profile, delta, count).upper <= 1.01 * most


@pytest.mark.parametrize("epsilon", [20.0, 50.0, 300.0])
def test_what_sums_tell_of_secret_participation_is_known_in_the_tail(epsilon: float) -> None:
    # One round, in which two records are drawn with probability 0.51 each.
    shift, p = 1.0 / 0.6, mpmath.mpf(0.51)
    profile = _core.RoundProfile.summed_outputs([[shift]], 2, 0.51, 2, reverse=False, warm=False)
    delta, error, _, _ = _core.Inspection.profile(profile, epsilon)
    with mpmath.workdps(60):
        weights = [(1 - p) ** 2, 2 * p * (1 - p), p**2]

        def tail(y: mpmath.mpf) -> mpmath.mpf:
            return sum(w * mpmath.ncdf(j * shift - y) for j, w in enumerate(weights))

        def loss(y: mpmath.mpf) -> mpmath.mpf:
            return mpmath.log(sum(w * mpmath.exp(j * shift * y - (j * shift) ** 2 / 2) for j, w in enumerate(weights)))

        y = mpmath.findroot(lambda y: loss(y) - epsilon, epsilon / (2 * shift) + shift)
        exact = tail(y) - mpmath.exp(epsilon) * mpmath.ncdf(-y)
        assert abs(delta - exact) <= error
        assert error <= 1e-9 * exact + 1e-290


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("noise_multiplier", [1e-2, 0.3, 30.0])
@pytest.mark.parametrize("probability", [1e-12, 0.5])
@pytest.mark.parametrize("count", [1, 7])
def test_no_answer_is_infinite_or_not_a_number(
    probability: float, noise_multiplier: float, reverse: bool, count: int
) -> None:
    profile = _core.RoundProfile.poisson(1, probability, noise_multiplier, two_sided=False, reverse=reverse)
    answers = [epsilon_of(profile, delta, count, 1e-2) for delta in (1e-6, 1e-20)]
    answers.append(delta_of(profile, 1.0, count))
    for answer in answers:
        assert 0.0 <= answer.lower <= answer.upper < math.inf
        assert all(math.isfinite(value) for value in answer.budget.values())


@pytest.mark.parametrize("delta", [0.31105, 0.311, 0.3105])
def test_epsilon_just_below_delta_at_zero_takes_no_fine_lattice(delta: float) -> None:
    """Where ε is near zero it need not be known to a fraction of itself: only about as well as δ is."""
    profile = PoissonProfile(1, 0.02, 1.0, two_sided=False, reverse=False).build()
    found = epsilon_of(profile, delta, count=1000, tolerance=1e-4)
    assert found.within_tolerance
    assert delta_of(profile, found.upper, 1000).lower <= delta <= delta_of(profile, found.lower, 1000).upper
    # On a lattice that resolves this ε it was more than 2³⁰ cells, and no interval of this width came out.
    assert found.work < 1 << 23

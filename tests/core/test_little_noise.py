"""Rare participation with little noise: a round loses nearly nothing or dozens of nats, and no tilt fits both."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom

from pyaccount import _core


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

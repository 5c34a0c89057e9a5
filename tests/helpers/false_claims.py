"""Tests false claims about small mechanisms with known δ as the package does, and counts how often they are accepted."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, cast
from unittest.mock import patch

import numpy as np
from exact_mixtures import Mixture, hockey_stick, nothing
from made import sampled
from sampled_tools import Law, allocation_law, bin_law, lower_toeplitz, phase_law, renewal_law, users_law
from scipy.stats import binom

from pyaccount import _core
from pyaccount.directions import Direction
from pyaccount.execute.options import RunOptions
from pyaccount.execute.sampling import tests_of_claims
from pyaccount.execute.sampling.added_mean import SquareClaim, mean_claim
from pyaccount.execute.sampling.betting_choice import Betting, Claim
from pyaccount.execute.sampling.fixed_sequence import Grid, GridSearch, Once, fixed_sequence_test
from pyaccount.execute.sampling.jobs import SHARD, BetTable, Component, LogSobolev, Proposal, Replicas
from pyaccount.execute.sampling.proposals import PLAIN, plain_proposal, powered
from pyaccount.execute.sampling.shards import Sampler, Stream
from pyaccount.execute.sampling.tests_of_claims import Test
from pyaccount.plan.sampled import SampledMechanism, added_bound
from pyaccount.profiles.base import Recipe

#: The probability with which a false claim may be accepted.
Q = 0.05
#: The tested claims, as shares of δ. With each are the standard deviation of what a shard adds to ln of the wealth, and the
#: largest number of shards of a test: by then nearly every test that will ever accept has done so. A clearly false claim can
#: only be accepted with large bets; for a nearly true one, small bets overshoot less.
SMALL_BETS = (1.0, 8)
FACTORS = {0.9: (2.5, 4), 1.0 - 1e-6: SMALL_BETS}
#: The number of shards with which the spread of samples is measured and clipped samples are bounded.
MEASURED = 64
#: The number of units of a shard that come from plain sampling if samples are clipped.
UNITS = 1


@dataclass(frozen=True, slots=True)
class Setting:
    """A mechanism, the proposal of its samples and their bound, and its exact δ(ε)."""

    mechanism: SampledMechanism
    direction: Direction
    proposal: Proposal
    epsilon: float
    delta: float
    weight_bound: float
    clipped: float = 0.0
    #: The claim about the second moment of clipped samples that is tested.
    square: SquareClaim | None = None
    #: The standard deviation of a sample of D in that test.
    square_spread: float = 0.0
    #: The other direction, whose claims are true at each value of a grid, if the first is tested only once for the grid.
    other: Setting | None = None


def small(n: int, b: int, p: float, coefficients: list[float], *, warm: bool) -> tuple[SampledMechanism, Mixture]:
    """Return b-min-sep sampling with these coefficients in units of σ, and the exact distribution of its outcomes."""
    mechanism = SampledMechanism(sampled("renewal", coefficients, n, b, p, warm), ("remove", "add"), n, 100.0, p)
    return mechanism, Mixture.of(renewal_law(n, b, p, warm=warm), lower_toeplitz(np.array(coefficients), n))


def _sampler(seed: int) -> Sampler:
    return Sampler(RunOptions(seed=seed, threads=1))


def _powered(made: tuple[SampledMechanism, Mixture], epsilon: float, replicas: Replicas) -> Setting:
    mechanism, truth = made
    proposal = powered(mechanism, replicas)
    bound = _sampler(1).limits(mechanism, "remove", proposal, epsilon).weight_bound
    delta = hockey_stick(truth, nothing(truth.means.shape[1]), epsilon)
    return Setting(mechanism, "remove", proposal, epsilon, delta, bound)


def by_rounds() -> Setting:
    """Return a power, round by round."""
    return _powered(small(4, 2, 0.3, [1.2, 0.6], warm=True), 2.0, Replicas(3))


def by_blocks() -> Setting:
    """Return a power by blocks of two rounds."""
    return _powered(small(4, 4, 0.15, [0.7, 0.0, 0.8], warm=False), 1.0, Replicas(4, 2))


def by_short_blocks() -> Setting:
    """Return a power by blocks of one round, two of which a replica may take part in."""
    return _powered(small(4, 2, 0.1, [1.2, 0.6], warm=True), 1.5, Replicas(3, 1))


def few_busy() -> Setting:
    """Return a power with few busy replicas, which leave out a fifth of δ; three tenths are subtracted from the claim."""
    return _powered(small(1, 1, 0.3, [0.5], warm=False), 0.1, Replicas(5, most_busy=3))


def with_a_floor(share: float = 0.2) -> Setting:
    """Return a power for a replaced record; a share of δ may lie below the floor, and is subtracted from the claim."""
    mechanism, truth = small(4, 2, 0.3, [1.2, 0.6], warm=True)
    mechanism, epsilon = replace(mechanism, directions=("replace",)), 2.0
    delta = hockey_stick(truth, truth.mirrored, epsilon)
    floors = [k / 32.0 for k in range(64)]
    floor = max(one for one in floors if _sampler(1).below_floor(mechanism, epsilon, one) < share * delta)
    proposal = replace(powered(mechanism, Replicas(3)), floor=floor)
    bound = _sampler(1).limits(mechanism, "replace", proposal, epsilon).weight_bound
    return Setting(mechanism, "replace", proposal, epsilon, delta, bound)


def _of(recipe: Recipe[Any], law: Law, columns: list[float]) -> tuple[SampledMechanism, Mixture]:
    """Return the mechanism of another sampler, given the law of its participations and the first column in units of σ."""
    rounds = len(next(iter(law)))
    mechanism = SampledMechanism(recipe, ("remove", "add"), rounds, 100.0, recipe.core.plain_parameter)
    return mechanism, Mixture.of(law, lower_toeplitz(np.array(columns), rounds))


def of_users() -> Setting:
    """Return a power of users with two records each."""
    columns = [1.0, 0.6]
    made = _of(sampled("users", columns, 4, 2, 0.1, 2, True), users_law(4, 2, 0.1, 2, warm=True), columns)
    return _powered(made, 2.0, Replicas(3))


def of_phases() -> Setting:
    """Return a power of cyclic Poisson sampling from a random part."""
    columns = [1.0, 0.6]
    made = _of(sampled("phases", columns, 4, 2, 0.4), phase_law(4, 2, 0.4), columns)
    return _powered(made, 2.0, Replicas(3))


def of_bins() -> Setting:
    """Return a power of balls in bins whose modes overlap."""
    columns, law = [0.8, 0.5], bin_law(4, 2)
    modes = lower_toeplitz(np.array(columns), 4) @ np.array(list(law), dtype=float).T
    return _powered(_of(sampled("bins", (modes.T @ modes).ravel(), 4), law, columns), 1.0, Replicas(3))


def of_allocations() -> Setting:
    """Return a power of random allocation."""
    return _powered(_of(sampled("allocation", 4, 2, 1.0), allocation_law(4, 2), [1.0]), 2.0, Replicas(2))


def clipped(factor: float = 40.0) -> Setting:
    """Return samples of an added record, clipped at `factor`·δ; at 40 their mean loses no more than the bets allow."""
    mechanism, truth = small(4, 2, 0.3, [0.12, 0.06], warm=True)
    epsilon = 0.05
    square = added_bound(mechanism.core, epsilon, "square")
    assert square is not None
    components = (replace(PLAIN, units=UNITS), Component(_core.SHARD_UNITS - UNITS, (), -square[1]))
    delta = hockey_stick(nothing(4), truth, epsilon)
    bound = factor * delta
    lost = square[0] * (1.0 + 1e-12) * _core.SHARD_UNITS / (_core.SHARD_UNITS - UNITS) / (4.0 * bound)
    proposal = replace(plain_proposal(mechanism, "add"), components=components)
    return Setting(mechanism, "add", proposal, epsilon, delta, bound, lost)


def clipped_short() -> Setting:
    """Return samples whose mean loses much by clipping; a bound on the loss is subtracted from the claim."""
    return clipped(1.2)


def _second_moment(coefficients: list[float], share: float, size: float, clip: float) -> Setting:
    """Return samples clipped at `clip`·δ, with a claim about their second moment: `size` times a bound by samples of D."""
    mechanism, truth = small(4, 2, 0.3, coefficients, warm=True)
    epsilon, shape = 0.05, LogSobolev(size, size, 2)
    found = _core.AddedMean.of(mechanism.core, size)
    assert found is not None
    looked = [(shape.exponent, math.inf, [])]
    sums = _sampler(7).added_mean(found, looked, Stream("pilot", 8 * MEASURED, 1), moment=shape.moment)
    means = np.array([value for ((_, value, _),) in sums]) / SHARD
    own = math.sqrt(sum(square for ((_, _, square),) in sums) / len(sums) / SHARD - float(means.mean()) ** 2)
    log_factor, _, _ = found.limits(shape.exponent, shape.moment, epsilon)
    mean, spread = float(means.mean()), float(means.std(ddof=1)) / math.sqrt(len(means))
    square = share * math.exp(log_factor + mean - 4.0 * spread)
    claim = mean_claim(mechanism, shape, epsilon, square)
    assert claim is not None
    components = (replace(PLAIN, units=UNITS), Component(_core.SHARD_UNITS - UNITS, (), -size))
    proposal = replace(plain_proposal(mechanism, "add"), components=components)
    delta = hockey_stick(nothing(4), truth, epsilon)
    lost = square * (1.0 + 1e-12) * _core.SHARD_UNITS / (_core.SHARD_UNITS - UNITS) / (4.0 * clip * delta)
    chosen = SquareClaim(claim, square, mean)
    return Setting(mechanism, "add", proposal, epsilon, delta, clip * delta, lost, chosen, own)


def after_second_moment() -> Setting:
    """Return clipped samples of a false claim, whose second moment is below the tested value."""
    return _second_moment([0.12, 0.06], 2.5, 12.0, 80.0)


def false_second_moment() -> Setting:
    """Return a false claim about the second moment, with clipped samples of a claim that is clearly true."""
    setting = _second_moment([1.2, 0.6], 1.0, 0.5, 40.0)
    return replace(setting, delta=3.0 * setting.delta)


def tested_once() -> Setting:
    """Return a removed record that is tested once, with samples of a power, and an added one with a smaller δ at every value."""
    made = small(4, 2, 0.3, [1.2, 0.6], warm=True)
    one = _powered(made, 0.5, Replicas(2))
    added = hockey_stick(nothing(4), made[1], one.epsilon)
    return replace(one, other=Setting(made[0], "add", plain_proposal(made[0], "add"), one.epsilon, added, 1.0))


#: The ways of sampling, none of which may accept a false claim more often than with probability `Q`.
SETTINGS: dict[str, Callable[[], Setting]] = {
    "power, round by round": cache(by_rounds),
    "power, blocks of 2": cache(by_blocks),
    "power, blocks of 1": cache(by_short_blocks),
    "power, few busy replicas": cache(few_busy),
    "power, users": cache(of_users),
    "power, random parts": cache(of_phases),
    "power, bins": cache(of_bins),
    "power, allocations": cache(of_allocations),
    "power with a floor": cache(with_a_floor),
    "clipped": cache(clipped),
    "clipped where much is lost": cache(clipped_short),
    "clipped after a second moment": cache(after_second_moment),
    "a false second moment": cache(false_second_moment),
    "tested once": cache(tested_once),
}


def most(runs: int) -> int:
    """Return the number of acceptances that is exceeded with a probability of at most 1e-4."""
    return int(binom.ppf(1.0 - 1e-4, runs, Q))


def betting(setting: Setting, sampler: Sampler, spread: float, shards: int) -> Betting:
    """Return a bet whose ln of the wealth spreads by `spread` with each shard."""
    sums = sampler.run(
        setting.mechanism,
        setting.direction,
        setting.proposal,
        [BetTable(setting.epsilon, setting.weight_bound if setting.clipped else math.inf)],
        sampler.stream("pilot", MEASURED),
    )
    count = MEASURED * SHARD
    mean, second = sum(one.value for (one,) in sums) / count, sum(one.square for (one,) in sums) / count
    fraction = spread / math.sqrt(SHARD * (second - mean * mean))
    expected = shards * SHARD / tests_of_claims.PATIENCE
    return Betting(
        setting.proposal,
        setting.weight_bound,
        (fraction, 0.5 * fraction),
        expected,
        clipped=setting.clipped,
        square=setting.square,
        square_samples=expected,
    )


def accepted(setting: Setting, factor: float, runs: int, seed: int) -> int:
    """Return how many of `runs` tests of the claim δ(ε) < `factor`·δ accept it, each with samples of its own.

    A claim about a second moment is multiplied by `factor` too.
    """
    sampler = _sampler(seed)
    if setting.square is not None:
        claimed = replace(setting.square, square=factor * setting.square.square)
        setting = replace(setting, square=claimed, clipped=factor * setting.clipped)
    claim = Claim(setting.mechanism, 1.0, setting.epsilon, factor * setting.delta, math.log(1.0 / Q))
    spread, shards = FACTORS.get(factor, SMALL_BETS)
    bet = betting(setting, sampler, spread, shards)
    fraction = tests_of_claims.MEAN_FRACTION
    if setting.square is not None:
        # The largest allowed bet always loses. A bet of the usual size shows better how often a claim is accepted by luck.
        wanted = spread / (math.sqrt(SHARD) * setting.square_spread) * setting.square.mean.room
        fraction = min(fraction, wanted)
    # Tests of the package have a larger minimum of shards, which would take longer here and hardly change the result.
    with (
        patch.object(tests_of_claims, "LEAST_SHARDS", shards),
        patch.object(tests_of_claims, "MEAN_FRACTION", fraction),
    ):
        if setting.other is None:
            return sum(tests_of_claims._bet(sampler, claim, setting.direction, bet).accepted for _ in range(runs))
        return sum(_in_sequence(sampler, claim, bet, setting) for _ in range(runs))


def _in_sequence(sampler: Sampler, claim: Claim, bet: Betting, setting: Setting) -> bool:
    """Return whether a grid of three values has a result although the claim of the direction tested once is false at each."""
    other = setting.other
    assert other is not None
    # This claim is true.
    easy = Betting(other.proposal, 1.0, (0.9, 0.3), bet.expected_samples)

    def test(value: float, budget: float | None, directions: tuple[Direction, ...] | None = None) -> tuple[Test, ...]:
        (side,) = cast("tuple[Direction]", directions)
        return (tests_of_claims._bet(sampler, claim, side, bet if side == setting.direction else easy),)

    def unasked(_: float) -> Any:
        raise AssertionError("asked by no test here")

    search = GridSearch(1.0, math.inf, [Grid((0.2, 0.1), (0.05,))], unasked, 1.0)
    once = Once(0.05, (setting.direction,), (other.direction,))
    return fixed_sequence_test(search, test, lambda _: once).value is not None

"""Tests of a claim (ε, δ₀): by betting, or by the mean of a number of plain samples fixed beforehand.

In either way a false claim is accepted with probability at most q over the samples, in each direction. Both directions
must accept, so a mechanism that violates one of them is accepted with probability at most q in all. If it is run only
when accepted, it is (ε, δ₀ + q(1 − δ₀))-differentially private (Wang et al. 2023, Theorem 9; Dong & Ganesh 2026,
Theorem A.1). So q can be included in δ, or stated beside the guarantee. If a search may start a second time after a first
rejection, each start has its share of q.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import NamedTuple

from pyaccount import _core
from pyaccount.directions import Direction
from pyaccount.document.document import Document
from pyaccount.execute.sampling.added_mean import MeanClaim, mean_claim
from pyaccount.execute.sampling.betting_choice import MEAN_FRACTION, Betting, Claim, choose_betting
from pyaccount.execute.sampling.estimates import Estimate
from pyaccount.execute.sampling.jobs import SHARD, Bet, BetTable, LogSobolev, Proposal, edges_around
from pyaccount.execute.sampling.proposals import plain_proposal
from pyaccount.execute.sampling.shards import SampleLimits, Sampler, Stream
from pyaccount.execute.sampling.wealth import (
    LOWER_DISTANCES,
    LOWER_SHARES,
    LowerBets,
    Wealth,
    lower_bets,
    places_below,
    share_of,
)
from pyaccount.plan.common import given, number

#: A test is given up after this many times the samples it was expected to take.
PATIENCE = 5.0
#: How far, relatively, estimates must be below the claim at an optional value.
COMFORTABLE = 0.03
#: The least number of shards of a test, so that a poor forecast does not end it early.
LEAST_SHARDS = 64
#: The tests of one direction that a search usually takes: bets for lower ends are made for the last of so many.
TYPICAL = 3


@dataclass(frozen=True, slots=True)
class SquareTest:
    """The test, run before samples are drawn, that their second moment is at most `bound`: by a mean of D."""

    proposal: LogSobolev
    bound: float
    weight_bound: float
    betting_fractions: tuple[float, ...]
    samples: int
    log_wealth: float
    accepted: bool

    @property
    def size(self) -> float:
        """The factor of d."""
        return self.proposal.size

    @property
    def exponent(self) -> float:
        """λ of D."""
        return self.proposal.exponent


@dataclass(frozen=True, slots=True)
class Test:
    """One test in one direction, with its result."""

    direction: Direction
    noise_multiplier: float
    epsilon: float
    threshold: float
    proposal: Proposal
    limits: SampleLimits
    betting_fractions: tuple[float, ...]
    samples: int
    log_wealth: float
    log_target: float
    mean: float
    #: None if no sample had a loss above ε.
    standard_error: float | None
    accepted: bool
    #: The test of the second moment, with the same target, if the test needs one.
    second_moment: SquareTest | None = None
    #: Bets on the same samples for lower ends of the claim, if it is accepted; and a histogram of the losses.
    below: LowerBets | None = None
    losses: _core.LossHistogram | None = None

    @property
    def weight_bound(self) -> float:
        """The largest value that one sample can contribute."""
        return self.limits.weight_bound

    @property
    def drawn(self) -> bool:
        """Whether samples of δ were drawn for it, so that its proposal can be reused for this direction."""
        return bool(self.betting_fractions) and self.proposal.log_sobolev is None

    @property
    def worth(self) -> float:
        """How many samples that do not vary one of its samples is worth: (E V)²/E V², estimated from its own."""
        if self.standard_error is None:
            return 0.0
        square = self.mean * self.mean
        return square / (square + self.samples * self.standard_error**2)


def run_betting_tests(
    sampler: Sampler, claim: Claim, estimates: dict[Direction, Estimate], budget: float | None = None
) -> tuple[Test, ...]:
    """Test a claim in every direction that has an estimate, the likeliest to fail first; stop at the first rejection.

    With a budget, nothing is tested if the tests are expected to take more samples than that, or if the claim is so
    close to the estimate that a retest may fail by chance. Raises `LimitError`.
    """
    order = sorted(estimates, key=lambda direction: -estimates[direction].value)
    bettings = {side: choose_betting(sampler, claim, side, estimates[side]) for side in order}
    if budget is not None:
        near = any(found.value > (1.0 - COMFORTABLE) * claim.delta for found in estimates.values())
        dear = sum(0.0 if one is None else one.expected_plain_samples for one in bettings.values()) > budget
        if near or dear:
            return ()
    tests: list[Test] = []
    for direction, betting in bettings.items():
        if betting is None:
            # The pilot considers the claim false. Refusing it untested can only lose a certificate, never grant one.
            proposal = plain_proposal(claim.mechanism, direction)
            limits = sampler.limits(claim.mechanism, direction, proposal, claim.epsilon)
            refused, estimate = (
                _without_samples(claim, direction, proposal, limits, accepted=False),
                estimates[direction],
            )
            error = estimate.standard_error if estimate.known else None
            tests.append(replace(refused, mean=estimate.value, standard_error=error))
        else:
            tests.append(_bet(sampler, claim, direction, betting))
        if not tests[-1].accepted:
            break
    return tuple(tests)


def _without_samples(
    claim: Claim, direction: Direction, proposal: Proposal, limits: SampleLimits, *, accepted: bool
) -> Test:
    """Return the test of a claim that is decided without samples."""
    return Test(
        direction=direction,
        noise_multiplier=claim.noise_multiplier,
        epsilon=claim.epsilon,
        threshold=claim.delta,
        proposal=proposal,
        limits=limits,
        betting_fractions=(),
        samples=0,
        log_wealth=claim.log_target if accepted else 0.0,
        log_target=claim.log_target,
        mean=0.0,
        standard_error=None,
        accepted=accepted,
    )


def _bet(sampler: Sampler, claim: Claim, direction: Direction, betting: Betting) -> Test:
    """Bet until the wealth reaches its target, or until the test has taken `PATIENCE` times its expected samples."""
    if betting.proposal.log_sobolev is not None:
        return _bet_on_mean(sampler, claim, direction, betting)
    if betting.square is not None:
        return _bet_on_square(sampler, claim, direction, betting)
    candidate, proposal = sampler.fresh(), betting.proposal
    limits = sampler.limits(claim.mechanism, direction, proposal, claim.epsilon)
    if betting.proven:
        limits = replace(limits, weight_bound=betting.weight_bound)
        holds = betting.weight_bound <= claim.delta - limits.added
        return _without_samples(claim, direction, proposal, limits, accepted=holds)
    if betting.clipped > 0.0:
        limits = replace(limits, weight_bound=betting.weight_bound, clipped=betting.clipped)
    # The claim about the generator's mean that implies the one about δ: less everything that δ may have beyond that mean.
    threshold = max(claim.delta - limits.generator - limits.added - limits.clipped - limits.left_out, 0.0)
    room = limits.weight_bound - threshold
    if room <= 0.0:
        # V, and so its mean, is at most the weight bound; clipping takes no more from the mean than was subtracted.
        return _without_samples(claim, direction, proposal, limits, accepted=True)
    if not betting.fractions:
        # The weight bound was just below the threshold before the generator's share was subtracted: no bet was planned.
        return _without_samples(claim, direction, proposal, limits, accepted=False)
    fractions = tuple(min(fraction, 0.999 / room) for fraction in betting.fractions)
    table = BetTable(claim.epsilon, limits.weight_bound, tuple(Bet(threshold, fraction) for fraction in fractions))
    below = _bets_below(sampler, claim, direction, betting)
    # A histogram of the losses is of use if it says more than one of plain samples, and is one of δ: samples with a floor lack a
    # part of δ, for which there is a bound only at the ε of the test.
    single = not proposal.components and proposal.floor is None
    counted = claim.stated is not None and single and proposal != plain_proposal(claim.mechanism, direction)
    edges = edges_around(claim.epsilon) if counted else None
    return _watched(sampler, claim, _Planned(direction, betting, limits, table, candidate, below, edges))


def _bets_below(sampler: Sampler, claim: Claim, direction: Direction, betting: Betting) -> LowerBets | None:
    """Return bets for lower ends on the samples of a test; None if these are of a pair that need not be attained."""
    mechanism, delta = claim.mechanism, claim.stated
    if delta is None or not betting.squares or mechanism.lower is not None:
        return None
    places = places_below(claim.epsilon, LOWER_DISTANCES)
    limits = [sampler.limits(mechanism, direction, betting.proposal, one, upper=False) for one in places]
    lost = [one.generator + one.below for one in limits]
    # Each of several tests may be the one whose lower ends are stated, so that each gets a share of the probability.
    log_target = claim.log_target - math.log(share_of(TYPICAL) / len(mechanism.directions))
    expected = (max(betting.expected_samples, SHARD), log_target)
    return lower_bets(places, betting.squares, lost, delta, shares=LOWER_SHARES, expected=expected)


class _Planned(NamedTuple):
    """A planned test: the direction, the bets with their samples, and what is proven about these."""

    direction: Direction
    betting: Betting
    limits: SampleLimits
    table: BetTable
    candidate: int
    #: Further bets on the samples, and the bins of a histogram.
    below: LowerBets | None = None
    edges: tuple[float, float] | None = None


def _watched(sampler: Sampler, claim: Claim, planned: _Planned) -> Test:
    """Run a test until the wealth reaches its target or the patience ends, and return it."""
    direction, betting, limits, table, candidate, below, edges = planned
    tables = [table] if below is None else [table, *below.tables]
    losses: _core.LossHistogram | None = None
    wealth = Wealth(len(table.bets))
    most = max(LEAST_SHARDS, math.ceil(min(PATIENCE * betting.expected_samples, 1e15) / SHARD))
    shards, value, square = 0, 0.0, 0.0
    stream = Stream("verification", most, candidate)
    with closing(sampler.waves(claim.mechanism, direction, betting.proposal, tables, stream, edges)) as waves:
        for wave in waves:
            if wave.histogram is not None:
                losses = wave.histogram if losses is None else losses.merged(wave.histogram)
            for shard, *further in wave.sums:
                # What was drawn beyond the end of the test serves the lower ends.
                if below is not None:
                    below.add(further)
                if wealth.reached(claim.log_target):
                    continue
                shards += 1
                value, square = value + shard.value, square + shard.square
                wealth.add(shard.log_wealth)
            sampler.progress(max(wealth.now, 0.0) / claim.log_target)
            if wealth.reached(claim.log_target):
                break
    samples = shards * SHARD
    mean = value / samples
    accepted = wealth.reached(claim.log_target)
    return replace(
        _without_samples(claim, direction, betting.proposal, limits, accepted=accepted),
        betting_fractions=tuple(bet.fraction for bet in table.bets),
        samples=samples,
        log_wealth=wealth.highest,
        mean=mean,
        standard_error=_error(mean, square, samples),
        below=below,
        losses=losses,
    )


def _bet_on_mean(sampler: Sampler, claim: Claim, direction: Direction, betting: Betting) -> Test:
    """Bet on the mean of D, which with a factor bounds δ; the test's `mean` is an estimate of that bound."""
    candidate, proposal = sampler.fresh(), betting.proposal.log_sobolev
    assert direction == "add"
    limits = sampler.limits(claim.mechanism, direction, replace(betting.proposal, log_sobolev=None), claim.epsilon)
    found = mean_claim(claim.mechanism, given(proposal), claim.epsilon, claim.delta - limits.added)
    if found is None:
        return _without_samples(claim, direction, betting.proposal, limits, accepted=False)
    limits = replace(limits, weight_bound=max(found.most, 0.0), generator=claim.delta * math.expm1(found.error))
    room = found.most - found.threshold
    if room <= 0.0:
        return _without_samples(claim, direction, betting.proposal, limits, accepted=True)
    bets = tuple(Bet(found.threshold, min(fraction, 0.999 / room)) for fraction in betting.fractions)
    table = BetTable(claim.epsilon, found.most, bets)
    test = _watched(sampler, claim, _Planned(direction, betting, limits, table, candidate))
    # The mean of D may be large if the test was planned badly.
    bound = math.exp(min(found.log_factor + test.mean, 0.0))
    error = None if test.standard_error is None else bound * test.standard_error
    return replace(test, mean=bound, standard_error=error)


def _bet_on_square(sampler: Sampler, claim: Claim, direction: Direction, betting: Betting) -> Test:
    """Bet that the second moment of samples is at most what clipping them needs, and then on the clipped samples.

    Both tests are at the claim's q: if the claim is false, so is one of the two premises, and its test accepts with
    probability at most q.
    """
    chosen = betting.square
    assert chosen is not None
    assert direction == "add"
    proposal = replace(plain_proposal(claim.mechanism, direction), log_sobolev=chosen.mean.proposal)
    found = mean_claim(claim.mechanism, chosen.mean.proposal, claim.epsilon, chosen.square)
    limits = sampler.limits(claim.mechanism, direction, betting.proposal, claim.epsilon)
    if found is None:
        return _without_samples(claim, direction, betting.proposal, limits, accepted=False)
    first = _square_test(sampler, claim, replace(betting, proposal=proposal), found)
    if not first.accepted:
        refused = _without_samples(claim, direction, betting.proposal, limits, accepted=False)
        return replace(refused, second_moment=first)
    return replace(_bet(sampler, claim, direction, replace(betting, square=None)), second_moment=first)


def _square_test(sampler: Sampler, claim: Claim, betting: Betting, found: MeanClaim) -> SquareTest:
    """Test the second moment; nothing is drawn if its bound holds whatever is drawn."""
    chosen = betting.square
    assert chosen is not None
    if found.room <= 0.0:
        return SquareTest(chosen.mean.proposal, chosen.square, found.most, (), 0, claim.log_target, accepted=True)
    fraction = MEAN_FRACTION / found.room
    table = BetTable(claim.epsilon, found.most, (Bet(found.threshold, fraction),))
    planned = replace(betting, expected_samples=betting.square_samples)
    limits = SampleLimits(found.most, 0.0, 0.0)
    test = _watched(sampler, claim, _Planned("add", planned, limits, table, sampler.fresh()))
    return SquareTest(
        chosen.mean.proposal,
        chosen.square,
        found.most,
        (fraction,),
        test.samples,
        test.log_wealth,
        accepted=test.accepted,
    )


def _error(mean: float, square: float, samples: int) -> float | None:
    """Return the standard error of a mean; None if no loss was seen, since the mean is then not known for certain."""
    return None if square <= 0.0 else math.sqrt(max(square / samples - mean * mean, 0.0) / samples)


@dataclass(frozen=True, slots=True)
class FixedSample:
    """The fixed-sample test (Dong & Ganesh 2026, Appendix A): accept if s = `samples` plain ones have a mean ≤ `bar`.

    If δ(ε) > `delta`, that has probability at most q = exp(−s·KL(bar‖delta)) (Chernoff's bound for means of [0, 1]).
    """

    samples: int
    bar: float
    delta: float
    failure_probability: float


def plan_fixed_sample(target: float) -> FixedSample:
    """Return a plan with nearly the fewest samples s for which min over δ of δ + q(δ)(1 − δ) is at most the target.

    As in the paper, the bar is half of the target. s is rounded up to whole shards.
    """
    bar = 0.5 * target

    def overall(samples: int) -> tuple[float, float, float]:
        best = (math.inf, target, 1.0)
        # δ + q(1 − δ) is unimodal in δ. A fine grid is as good as a minimiser, since any δ is valid.
        for k in range(1, 400):
            delta = bar + (target - bar) * k / 400.0
            q = math.exp(-samples * divergence(bar, delta))
            best = min(best, (delta + q * (1.0 - delta), delta, q))
        return best

    low, high = 1, 2
    while overall(high)[0] > target:
        low, high = high, high * 2
    while high - low > max(1, high // 4096):
        middle = (low + high) // 2
        low, high = (low, middle) if overall(middle)[0] <= target else (middle, high)
    samples = -(-high // SHARD) * SHARD
    _, delta, q = overall(samples)
    return FixedSample(samples, bar, delta, q)


def divergence(p: float, q: float) -> float:
    """Return KL(p‖q) of two Bernoulli laws."""
    first = p * math.log(p / q) if p > 0.0 else 0.0
    return first + (1.0 - p) * (math.log1p(-p) - math.log1p(-q))


def run_fixed_sample_tests(
    sampler: Sampler, claim: Claim, plan: FixedSample, directions: Sequence[Direction]
) -> tuple[Test, ...]:
    """Run the fixed-sample test in each of these directions; stop at the first rejection. Raises `LimitError`."""
    tests: list[Test] = []
    mechanism, epsilon = claim.mechanism, claim.epsilon
    for direction in directions:
        proposal, candidate = plain_proposal(mechanism, direction), sampler.fresh()
        limits = sampler.limits(mechanism, direction, proposal, epsilon)
        shards, value, square = 0, 0.0, 0.0
        total = plan.samples // SHARD
        stream = Stream("verification", total, candidate)
        table = BetTable(epsilon, 1.0)
        for sums, _ in sampler.waves(mechanism, direction, proposal, [table], stream):
            shards += len(sums)
            value, square = value + sum(s[0].value for s in sums), square + sum(s[0].square for s in sums)
            sampler.progress(shards / total)
        mean = value / plan.samples
        # Rounding moves the loss and so V, which is at most 1 and changes by at most as much as the loss. A sum of
        # non-negative numbers has a relative error of less than a unit of rounding for each.
        off = limits.generator + limits.added + 8.0 * limits.rounding + mean * plan.samples * sys.float_info.epsilon
        accepted = mean + off <= plan.bar
        judged = replace(claim, delta=plan.bar, log_target=-math.log(plan.failure_probability))
        test = _without_samples(judged, direction, proposal, limits, accepted=accepted)
        error = _error(mean, square, plan.samples)
        tests.append(replace(test, samples=plan.samples, log_wealth=0.0, mean=mean, standard_error=error))
        if not accepted:
            break
    return tuple(tests)


#: The probability of accepting a false claim, as a share of δ.
FAILURE_SHARE = 0.01
#: How often a search may start; each start has its own q.
STARTS = 2


@dataclass(frozen=True, slots=True)
class Acceptance:
    """The claim δ₀ to be tested, and the wealth e^`log_target` that a test must reach; its q is e^−`log_target`."""

    delta: float
    log_target: float
    #: The δ that is stated if the test accepts.
    stated: float
    #: The number of tests that may end the search: the probability that any errs is at most that of one, times this.
    starts: int
    #: If set, the mean of a number of samples fixed beforehand is tested instead of betting.
    fixed: FixedSample | None = None

    @property
    def probability(self) -> float:
        """The probability of accepting a false claim in one test."""
        return math.exp(-self.log_target)


def folded(delta: float, starts: int) -> Acceptance:
    """Return the test of a claim δ₀ whose acceptance gives `delta`, with the error probability included in it."""
    q = FAILURE_SHARE * delta
    return Acceptance((delta - q) / (1.0 - q), math.log(starts / q), delta, starts)


def stated_separately(delta: float, probability: float) -> Acceptance:
    """Return the test of a claim with `delta` itself; the error probability is stated beside it."""
    return Acceptance(delta, math.log(STARTS / probability), delta, STARTS)


def _by_a_fixed_sample(delta: float) -> Acceptance:
    """Return the test of `delta` by the mean of a fixed number of plain samples. Its q is part of that plan."""
    plan = plan_fixed_sample(delta)
    return Acceptance(plan.bar, -math.log(plan.failure_probability), delta, 1, plan)


def of_claim(document: Document, starts: int) -> Acceptance:
    """Return the test of the document's claim, by the kind of verification that the document asks for."""
    delta = number(document.privacy.delta)
    return _by_a_fixed_sample(delta) if document.accounting.verification == "fixed-sample" else folded(delta, starts)

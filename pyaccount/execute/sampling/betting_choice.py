"""Where to sample for a test, and with which betting fractions: the choice with the least expected cost.

Plain sampling, proposals with scaled means, and mixtures of the best of these with what the estimate's samples came from: a
proposal alone may bound its samples well and vary much, which is what tests close to the truth pay for.

Nothing here enters a guarantee: a test is as valid with a poor choice. It rests on estimates, and on a few samples of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyaccount.execute.sampling.jobs import SHARD, Bet, BetTable, Proposal
from pyaccount.execute.sampling.proposals import between, mixed, plain, proposed, scaled
from pyaccount.execute.sampling.shards import Sampler

if TYPE_CHECKING:
    from pyaccount.directions import Direction
    from pyaccount.execute.sampling.estimates import Estimate
    from pyaccount.plan.sampled import SampledMechanism

#: How far means are scaled for a test.
EXCESSES = tuple(0.1 * 1.25**k for k in range(19))
#: Where between the sampler's own parameter and the one that balances the components' weights a test may sample.
BALANCES = (0.0, 0.35, 0.6, 0.8, 1.0)
#: The same where the record is added: there fewer participations bound small likelihood ratios better.
BALANCES_ADDED = (-2.0, -1.4, -1.0, -0.6, -0.3, 0.0, 0.35)
#: Betting fractions that are tried, as shares of the largest allowed one.
SHARES = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.96)
#: Proposals that are measured, of those with the least weight bounds, and shards of each.
MEASURED, TRIAL = 6, 8
#: Tests that are expected to take more samples than this look for a mixture; one must take so much less, for its samples
#: take somewhat longer. Shares of its samples, in units, that come from the proposal which bounds them.
MIXED_FROM, MIXED_WORTH = 1e6, 0.75
ANCHORS = (112, 96, 64, 32)
#: What a further scaled law adds to the time of a sample, as a share of it.
FURTHER = 0.3
#: The core takes no bets on samples whose log densities may be off by more.
MOST_ROUNDING = 1e-6
#: A claim nearer to the estimate than this, relatively, is given up: the samples that could tell grow with the square of
#: its inverse, and estimates are hardly better than that. It can only lose a certificate.
CLOSEST = 0.01
#: Effective samples below which a measured variance says nothing.
LEAST_EFFECTIVE = 12.0


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim to be tested: δ(`epsilon`) < `delta` for this mechanism, at wealth e^`log_target`."""

    mechanism: SampledMechanism
    noise_multiplier: float
    epsilon: float
    delta: float
    log_target: float


@dataclass(frozen=True, slots=True)
class Betting:
    """How a claim δ(ε) < threshold will be tested: where to sample, the betting fractions, and the samples expected."""

    proposal: Proposal
    weight_bound: float
    fractions: tuple[float, ...]
    expected_samples: float


def choose_betting(sampler: Sampler, claim: Claim, direction: Direction, estimate: Estimate) -> Betting | None:
    """The proposal and fractions with the least expected cost to reach wealth e^`log_target`; None if the claim looks false.

    Plain sampling and proposals with scaled means are compared: farther out the samples vary less, but what one of them may
    contribute is bounded less well, which limits the betting fractions.
    """
    # What is added whatever is drawn is no matter of betting.
    claim = replace(claim, delta=claim.delta - sampler.added(claim.mechanism, direction, claim.epsilon))
    estimate = replace(estimate, value=estimate.sampled, added=0.0)
    mechanism, threshold, log_target = claim.mechanism, claim.delta, claim.log_target
    gap = threshold - estimate.value
    if gap <= CLOSEST * threshold:
        return None
    found = [_plain_betting(claim, direction, estimate.value)]
    options = []
    for excess in EXCESSES:
        likely = scaled(mechanism, direction, excess, 1.0)
        balanced = mechanism.core.balanced_parameters(likely.mean_scale)
        # Between the sampler's own parameter and the one that balances the components' weights lies the least weight bound.
        for share in BALANCES_ADDED if direction == "add" else BALANCES:
            pairs = zip(likely.parameters, balanced, strict=True)
            proposal = proposed([between(own, other, share) for own, other in pairs], likely.mean_scale)
            limits = sampler.limits(mechanism, direction, proposal, claim.epsilon)
            if math.isfinite(limits.weight_bound) and (limits.weight_bound, proposal) not in options:
                if limits.weight_bound + limits.generator < threshold:
                    # Whatever is drawn, δ(ε) is at most that: there is nothing to sample.
                    return Betting(proposal, limits.weight_bound, (), 0.0)
                options.append((limits.weight_bound, proposal))
    options.sort(key=lambda option: option[0])
    for weight_bound, proposal in [option for option in options if option[0] > threshold][:MEASURED]:
        # No betting fraction can do better than the largest one with samples that do not vary.
        fastest = math.log1p(gap / max(weight_bound - threshold, 1e-300))
        if fastest <= 0.0 or log_target / fastest >= min(b.expected_samples for b in found):
            break
        found.append(_measured_betting(sampler, claim, direction, estimate, weight_bound, proposal))
    single = min(found, key=lambda betting: betting.expected_samples)
    mixed = _mixed_betting(sampler, claim, direction, estimate, single)
    return single if mixed is None else mixed


def _mixed_betting(
    sampler: Sampler, claim: Claim, direction: Direction, estimate: Estimate, single: Betting
) -> Betting | None:
    """The best mixture of a proposal with further laws; None where none takes clearly fewer samples than the proposal alone."""
    best, most = None, MIXED_WORTH * single.expected_samples
    if single.expected_samples < MIXED_FROM:
        return None
    # Where the likelihood ratio is only enclosed, so are the densities of scaled laws: plain sampling's is known.
    anchor = plain(claim.mechanism, direction) if claim.mechanism.enclosed else single.proposal
    for share in ANCHORS:
        components = mixed(claim.mechanism, direction, anchor, estimate.components, share)
        if components is None:
            continue
        proposal = replace(anchor, components=components)
        limits = sampler.limits(claim.mechanism, direction, proposal, claim.epsilon)
        # What is bet against is the claim less the generator's share, which counts where the two are close.
        stated = replace(claim, delta=claim.delta - limits.generator)
        gap, room = stated.delta - estimate.value, limits.weight_bound - stated.delta
        # A further law takes a recursion of its own.
        dear = 1.0 + FURTHER * max(0, sum(bool(one.parameters) for one in components) - 1)
        if not limits.rounding < MOST_ROUNDING or gap <= 0.0 or room <= 0.0:
            continue
        if dear * claim.log_target / math.log1p(gap / room) >= most:
            # Not even samples that do not vary would do; with smaller shares of the anchor the bound is weaker still.
            break
        betting = _measured_betting(sampler, stated, direction, estimate, limits.weight_bound, proposal)
        if dear * betting.expected_samples < most:
            best, most = betting, dear * betting.expected_samples
    return best


def _plain_betting(claim: Claim, direction: Direction, mean: float) -> Betting:
    """Plain samples, without looking at any."""
    return _blind_betting(claim, plain(claim.mechanism, direction), 1.0, mean)


def _blind_betting(claim: Claim, proposal: Proposal, weight_bound: float, mean: float) -> Betting:
    """A bet on samples in [0, w] of which only the mean is known, as if each were 0 or the weight bound w.

    No law on [0, w] with this mean gives less growth: ln is concave.
    """
    largest, share_of_bound = 1.0 / (weight_bound - claim.delta), mean / weight_bound
    growth = {
        share: (1.0 - share_of_bound) * math.log1p(share * largest * claim.delta)
        + share_of_bound * math.log1p(share * largest * (claim.delta - weight_bound))
        for share in SHARES
    }
    best = max(growth, key=lambda share: growth[share])
    expected = claim.log_target / growth[best] if growth[best] > 0.0 else math.inf
    return Betting(proposal, weight_bound, (best * largest, 0.5 * best * largest), expected)


def _measured_betting(  # noqa: PLR0913, PLR0917 - a claim, and where to sample
    sampler: Sampler, claim: Claim, direction: Direction, estimate: Estimate, weight_bound: float, proposal: Proposal
) -> Betting:
    threshold = claim.delta
    largest = 1.0 / (weight_bound - threshold)
    table = BetTable(claim.epsilon, weight_bound, tuple(Bet(threshold, share * largest) for share in SHARES))
    sums = sampler.run(
        claim.mechanism, direction, proposal, [table], purpose="pilot", candidate=sampler.fresh(), count=TRIAL
    )
    count = TRIAL * SHARD
    measured_mean, second = sum(s[0].value for s in sums) / count, sum(s[0].square for s in sums) / count
    effective = 0.0 if second <= 0.0 else count * measured_mean * measured_mean / second
    error = math.sqrt(max(second - measured_mean * measured_mean, 0.0) / count)
    # Where the likelihood ratio is only enclosed, bounded samples mean more than the estimate: only what is seen of them counts.
    enclosed = claim.mechanism.lower is not None
    if enclosed and (effective < 4.0 * LEAST_EFFECTIVE or measured_mean + 4.0 * error > threshold):
        return Betting(proposal, weight_bound, (), math.inf)
    mean = measured_mean if enclosed else estimate.value
    blind = _blind_betting(claim, proposal, weight_bound, mean)
    if effective < LEAST_EFFECTIVE:
        return blind
    growth = {}
    for k, share in enumerate(SHARES):
        rate = sum(s[0].log_wealth[k] for s in sums) / count
        # The mean is known better than this sample knows it.
        growth[share] = rate + share * largest * (measured_mean - mean)
    best = max(growth, key=lambda share: growth[share])
    if growth[best] <= 0.0:
        return blind
    measured = Betting(proposal, weight_bound, (best * largest, 0.5 * best * largest), claim.log_target / growth[best])
    return min(measured, blind, key=lambda betting: betting.expected_samples)

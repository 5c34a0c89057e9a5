"""The pilot: estimates by importance sampling, and the choice of where to sample for a test.

Estimates only. They say where a ladder starts, what a test will cost and how its stakes are set; a test is as valid
with poor ones. Weights are exact likelihood ratios with the participation patterns summed out (see the core's
`proposal`), a refinement of Dong & Ganesh's (2026) conditional weights.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyaccount import _core
from pyaccount.execute.sampling.shards import SHARD, Proposal, Sampler, Table, Wager

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyaccount.directions import SampledDirection
    from pyaccount.plan.sampled import SampledMechanism

#: Shards for each proposal that is tried, and for the estimate with the one chosen.
TRIAL, ESTIMATE = 2, 16
#: Effective samples below which an estimate says nothing.
LEAST_EFFECTIVE = 12.0
#: Proposals that are tried before the search settles for what it has.
MOST_TRIALS = 40
#: The excesses of the coarse grid.
COARSE = (0.4, 0.8, 1.4, 2.4, 4.0)
#: Means are stretched no farther than this: losses would be dominated by rounding before long.
MOST_EXCESS = 12.0
#: Where between plain sampling and the pilot's best a test may sample.
EXCESS_SHARES = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.15)
#: Stakes that are tried, as shares of the largest allowed one.
SHARES = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.96)


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimate of δ(ε) in one direction. Not a bound."""

    value: float
    standard_error: float
    square: float
    samples: int
    proposal: Proposal
    #: The part of `value` that the others' curve adds whatever is drawn; `square` is without it.
    floor: float = 0.0

    @property
    def sampled(self) -> float:
        """The mean of the samples."""
        return self.value - self.floor

    @property
    def effective(self) -> float:
        """The number of samples that would be as good if all weighed the same."""
        return 0.0 if self.square <= 0.0 else self.samples * self.sampled * self.sampled / self.square


def excess_of(direction: SampledDirection, proposal: Proposal) -> float:
    """How far a proposal's means are stretched beyond plain sampling."""
    return -proposal.stretch if direction == "add" else proposal.stretch - 1.0


def stretched(mechanism: SampledMechanism, direction: SampledDirection, excess: float, odds: float) -> Proposal:
    """The proposal with this excess and the odds of taking part multiplied by `odds`."""
    stretch = -excess if direction == "add" else 1.0 + excess
    return proposed([_likelier(p, odds) for p in mechanism.plain_parameters], stretch)


def proposed(parameters: Sequence[float], stretch: float) -> Proposal:
    """The proposal with one parameter for each mechanism."""
    first, *others = parameters
    return Proposal(first, stretch, tuple(others))


def _likelier(p: float, odds: float) -> float:
    """The probability with the odds multiplied; the exponent 0 of bins, which are all equally likely, stays."""
    if p <= 0.0:
        return 0.0
    likely = odds * p / (1.0 - p + odds * p)
    # A proposal that always joins would leave out patterns, unless the sampler itself always joins.
    return likely if p >= 1.0 else max(p, min(likely, _core.MOST_LIKELY))


def _has_odds(mechanism: SampledMechanism) -> bool:
    """Whether taking part is a matter of odds for any of the mechanisms."""
    return any(p > 0.0 for p in mechanism.plain_parameters)


def plain(mechanism: SampledMechanism, direction: SampledDirection) -> Proposal:
    """Plain sampling."""
    return proposed(mechanism.plain_parameters, 0.0 if direction == "add" else 1.0)


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim to be tested: δ(`epsilon`) < `delta` for this mechanism, at capital e^`log_target`."""

    mechanism: SampledMechanism
    noise_multiplier: float
    epsilon: float
    delta: float
    log_target: float


class Pilot:
    """Estimates of δ(ε) for mechanisms that differ little from call to call: each search starts where the last one ended."""

    def __init__(self, sampler: Sampler) -> None:
        self.sampler = sampler
        self._last: dict[SampledDirection, tuple[float, float]] = {}

    def measure(
        self, mechanism: SampledMechanism, direction: SampledDirection, epsilon: float, proposal: Proposal, shards: int
    ) -> Estimate:
        """The sample mean with this proposal."""
        sums, _ = self.sampler.run(
            mechanism,
            direction,
            proposal,
            [Table(epsilon, math.inf)],
            purpose="pilot",
            candidate=self.sampler.fresh(),
            count=shards,
        )
        value, square = sum(s[0].value for s in sums), sum(s[0].square for s in sums)
        return _estimate(value, square, shards * SHARD, proposal, mechanism.floor(direction))

    def estimate(
        self,
        mechanism: SampledMechanism,
        direction: SampledDirection,
        epsilon: float,
        *,
        shards: int = ESTIMATE,
        negligible: float = 0.0,
    ) -> Estimate:
        """δ(ε) with the best proposal that a short search finds; less is searched for a value that seems below `negligible`."""
        for first in (TRIAL, 8 * TRIAL):
            excess, odds = self._search(mechanism, direction, epsilon, first, negligible)
            self._last[direction] = (excess, odds)
            proposal = stretched(mechanism, direction, excess, odds)
            estimate = self.measure(mechanism, direction, epsilon, proposal, shards)
            if estimate.sampled <= negligible or estimate.effective >= LEAST_EFFECTIVE:
                break
            # A few heavy samples made the proposal look good: once more, with more of them.
            del self._last[direction]
        return estimate

    def _search(
        self, mechanism: SampledMechanism, direction: SampledDirection, epsilon: float, first: int, negligible: float
    ) -> tuple[float, float]:
        """Climb the effective number of samples over (excess, odds), from where the last search ended or from a coarse grid."""
        tried: dict[tuple[float, float], Estimate] = {}
        shards = first

        def score(at: tuple[float, float]) -> float:
            if at not in tried:
                proposal = stretched(mechanism, direction, *at)
                tried[at] = self.measure(mechanism, direction, epsilon, proposal, shards)
            return tried[at].effective / shards

        if direction in self._last:
            point = self._last[direction]
            known = score(point) * shards >= LEAST_EFFECTIVE
        else:
            known, point = False, (1.0, 1.0)
        if not known:
            # Small likelihood ratios come from many rounds that each say a little: there, join often.
            odds = (
                (1.0,) if not _has_odds(mechanism) else (1.0, 3.0, 9.0, 60.0) if direction == "add" else (1.0, 3.0, 9.0)
            )
            for shards in (first, 8 * first):
                tried.clear()
                point = max(((excess, one) for excess in COARSE for one in odds), key=score)
                if score(point) * shards >= LEAST_EFFECTIVE:
                    break
                if 0.0 < negligible >= max(estimate.value for estimate in tried.values()):
                    # As far as the pilot can tell, no loss above ε is worth looking for.
                    return point
            if score(point) <= 0.0:
                # No loss above ε was seen anywhere.
                return point
        # Enough samples that scores differ by more than their noise.
        wanted = math.ceil(2.0 * LEAST_EFFECTIVE / max(score(point), 1e-9))
        shards = min(max(TRIAL, wanted), 16 * TRIAL)
        step = 1.4
        while step > 1.15 and len(tried) < MOST_TRIALS:
            moves = [(point[0] * step, point[1]), (point[0] / step, point[1])]
            if _has_odds(mechanism):
                moves += [(point[0], point[1] * step**1.5), (point[0], point[1] / step**1.5)]
            best = max(moves, key=score)
            # A gain within the noise of the trial is none.
            if score(best) > 1.15 * score(point) and best[0] < MOST_EXCESS:
                point = best
            else:
                step = math.sqrt(step)
        return point


def _estimate(value: float, square: float, samples: int, proposal: Proposal, floor: float = 0.0) -> Estimate:
    mean, second = value / samples, square / samples
    error = math.sqrt(max(second - mean * mean, 0.0) / samples)
    return Estimate(mean + floor, error, second, samples, proposal, floor)


@dataclass(frozen=True, slots=True)
class Betting:
    """How a claim δ(ε) < threshold will be tested: where to sample, the stakes, and how many samples that is expected to take."""

    proposal: Proposal
    cap: float
    stakes: tuple[float, ...]
    expected_samples: float


def choose_betting(pilot: Pilot, claim: Claim, direction: SampledDirection, estimate: Estimate) -> Betting | None:
    """The proposal and stakes with the least expected cost to reach capital e^`log_target`; None if the claim looks false.

    Proposals between plain sampling and the pilot's best are compared: farther out the samples vary less, but what one
    of them may contribute is bounded less well, which limits the stakes.
    """
    # What the others' curve adds whatever is drawn is no matter of betting.
    claim = replace(claim, delta=claim.delta - claim.mechanism.floor(direction))
    estimate = replace(estimate, value=estimate.sampled, floor=0.0)
    mechanism, threshold, log_target = claim.mechanism, claim.delta, claim.log_target
    gap = threshold - estimate.value
    if gap <= 0.0:
        return None
    found = [_plain_betting(claim, direction, estimate.value)]
    best_excess = excess_of(direction, estimate.proposal)
    options = []
    for excess in sorted({*(share * best_excess for share in EXCESS_SHARES), *COARSE}):
        likely = stretched(mechanism, direction, excess, 1.0)
        balanced = mechanism.core.balanced_parameters(likely.stretch)
        # Between the sampler's own parameter and the one that balances the components' weights lies the least cap.
        for share in (0.0, 0.35, 0.6, 0.8, 1.0):
            pairs = zip(likely.parameters, balanced, strict=True)
            proposal = proposed([_between(own, other, share) for own, other in pairs], likely.stretch)
            limits = pilot.sampler.limits(mechanism, direction, proposal, claim.epsilon)
            if math.isfinite(limits.cap) and (limits.cap, proposal) not in options:
                if limits.cap + limits.generator < threshold:
                    # Whatever is drawn, δ(ε) is at most that: there is nothing to sample.
                    return Betting(proposal, limits.cap, (), 0.0)
                options.append((limits.cap, proposal))
    options.sort(key=lambda option: option[0])
    for cap, proposal in [option for option in options if option[0] > threshold][:6]:
        # No stake can do better than the largest one with samples that do not vary.
        fastest = math.log1p(gap / max(cap - threshold, 1e-300))
        if fastest <= 0.0 or log_target / fastest >= min(b.expected_samples for b in found):
            break
        found.append(_measured_betting(pilot, claim, direction, estimate, cap, proposal))
    return min(found, key=lambda betting: betting.expected_samples)


def _plain_betting(claim: Claim, direction: SampledDirection, mean: float) -> Betting:
    """Plain samples, without looking at any."""
    return _blind_betting(claim, plain(claim.mechanism, direction), 1.0, mean)


def _between(plain_parameter: float, balanced: float, share: float) -> float:
    """A parameter between two: of probabilities on the scale of log odds, of exponents linearly."""
    if plain_parameter <= 0.0 or balanced >= 1.0 or plain_parameter >= 1.0:
        return plain_parameter + share * (balanced - plain_parameter)
    low, high = (math.log(p / (1.0 - p)) for p in (plain_parameter, balanced))
    return 1.0 / (1.0 + math.exp(-(low + share * (high - low))))


def _blind_betting(claim: Claim, proposal: Proposal, cap: float, mean: float) -> Betting:
    """A bet on samples in [0, cap] of which only the mean is known, as if each were 0 or the cap.

    No law on [0, cap] with this mean gives less growth: ln is concave.
    """
    largest, share_of_cap = 1.0 / (cap - claim.delta), mean / cap
    growth = {
        share: (1.0 - share_of_cap) * math.log1p(share * largest * claim.delta)
        + share_of_cap * math.log1p(share * largest * (claim.delta - cap))
        for share in SHARES
    }
    best = max(growth, key=lambda share: growth[share])
    expected = claim.log_target / growth[best] if growth[best] > 0.0 else math.inf
    return Betting(proposal, cap, (best * largest, 0.5 * best * largest), expected)


def _measured_betting(  # noqa: PLR0913, PLR0917 - a claim, and where to sample
    pilot: Pilot, claim: Claim, direction: SampledDirection, estimate: Estimate, cap: float, proposal: Proposal
) -> Betting:
    threshold = claim.delta
    largest = 1.0 / (cap - threshold)
    table = Table(claim.epsilon, cap, tuple(Wager(threshold, share * largest) for share in SHARES))
    shards = 8
    sums, _ = pilot.sampler.run(
        claim.mechanism, direction, proposal, [table], purpose="pilot", candidate=pilot.sampler.fresh(), count=shards
    )
    count = shards * SHARD
    seen = _estimate(sum(s[0].value for s in sums), sum(s[0].square for s in sums), count, proposal)
    # Where the likelihood ratio is only enclosed, bounded samples mean more than the estimate: only what is seen of them counts.
    enclosed = claim.mechanism.lower is not None
    if enclosed and (seen.effective < 4.0 * LEAST_EFFECTIVE or seen.value + 4.0 * seen.standard_error > threshold):
        return Betting(proposal, cap, (), math.inf)
    mean = seen.value if enclosed else estimate.value
    blind = _blind_betting(claim, proposal, cap, mean)
    if seen.effective < LEAST_EFFECTIVE:
        return blind
    growth = {}
    for k, share in enumerate(SHARES):
        rate = sum(s[0].log_capital[k] for s in sums) / count
        # The mean is known better than this sample knows it.
        growth[share] = rate + share * largest * (seen.value - mean)
    best = max(growth, key=lambda share: growth[share])
    if growth[best] <= 0.0:
        return blind
    measured = Betting(proposal, cap, (best * largest, 0.5 * best * largest), claim.log_target / growth[best])
    return min(measured, blind, key=lambda betting: betting.expected_samples)

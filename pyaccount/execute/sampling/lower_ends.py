"""Find lower bounds on ε at δ and on δ at ε beside a result: bets against smaller values, with their own samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

from pyaccount import _core
from pyaccount.directions import Direction
from pyaccount.errors import NumericsError
from pyaccount.execute.sampling.betting_choice import BLOCKS, MOST_ROUNDING, slower
from pyaccount.execute.sampling.estimates import Estimate
from pyaccount.execute.sampling.jobs import SHARD, BetTable, Proposal, Replicas, edges_around
from pyaccount.execute.sampling.proposals import plain_proposal, powered
from pyaccount.execute.sampling.session import Session
from pyaccount.execute.sampling.shards import Sampler
from pyaccount.execute.sampling.tests_of_claims import Test
from pyaccount.execute.sampling.wealth import (
    FAR_DISTANCES,
    FAR_SHARES,
    LOWER_DISTANCES,
    LOWER_SHARES,
    lower_bets,
    places_below,
)
from pyaccount.plan.sampled import SampledMechanism

#: The divisor of the shards for a power of the likelihood ratio, which varies little.
FEWER = 3
#: The largest share of δ by which the generator's error of a mixture may lower the lower ends.
MOST_LOST = 1e-2
#: How many samples of a mixture take as long as one of a power whose price is not known.
LIGHTER = 10.0
#: The most states, in all rounds together, of a small chain.
SMALL_WORK = 2e8
#: The shards of a first look, which chooses the bets; and the factor by which more samples are drawn than it says.
FIRST, MARGIN = 8, 1.3
#: Nanoseconds of sampling that may always be spent; and the largest distance, in tolerances, for which more is drawn.
MOMENT, AWAY = 3e9, 4.0
#: The largest number of shards.
MOST = 512


@dataclass(frozen=True, slots=True)
class Sought:
    """The lower bounds sought for a result (ε, δ) in one direction, each with probability at least 1 − q, and how."""

    direction: Direction
    epsilon: float
    delta: float
    failure_probability: float
    #: An estimate of δ(ε), the last test that drew samples, and the proposal that was tested, or that of a proof.
    estimate: Estimate
    test: Test | None
    tested: Proposal | None
    #: The shards for most proposals. More are drawn if a lower bound at the tolerance's distance needs them, but at
    #: most as many as the test had, or as take only a moment.
    shards: int
    #: Whether values far below ε and δ are tried too, since bounds by moments may be far above the truth.
    far: bool


class LowerEnds(NamedTuple):
    """Lower bounds on ε at δ and on δ at ε, and the losses of the samples, if they are all from one proposal."""

    ends: tuple[float, float]
    proposal: Proposal
    losses: _core.LossHistogram | None


def lower_ends(session: Session, mechanism: SampledMechanism, sought: Sought) -> LowerEnds:
    """Return lower bounds from samples of their own, each valid with probability at least 1 − q. Raises `LimitError`."""
    sampler, direction, far = session.sampler, sought.direction, sought.far
    proposal = _lighter(session, mechanism, sought)
    attained = mechanism.lower or mechanism
    distances, shares = (FAR_DISTANCES, FAR_SHARES) if far else (LOWER_DISTANCES, LOWER_SHARES)
    places = places_below(sought.epsilon, distances)
    looks = _looks(sampler, attained, direction, proposal, places)
    limits = [sampler.limits(attained, direction, proposal, place, upper=False) for place in places]
    # How far δ of the run may be below the mean that is drawn.
    lost = [one.generator + one.below for one in limits]
    log_target, needed = math.log(1.0 / sought.failure_probability), []
    for (mean, square), less in zip(looks[1:], lost[1:], strict=True):
        gap = mean - sought.delta - less
        needed.append(2.0 * log_target * square / gap**2 if gap > 0.0 else math.inf)
    quick = round(MOMENT / (attained.cost * _times(attained, proposal)) / SHARD)
    most = min(max(sought.test.samples // SHARD if sought.test else 0, quick), MOST)
    enough = min(_enough(distances, needed, session.plan.tolerance), most)
    count = max(fewer_shards(proposal, sought.shards), enough)
    squares, expected = [square for _, square in looks], (float(count * SHARD), log_target)
    bets = lower_bets(places, squares, lost, sought.delta, shares=shares, expected=expected)
    # Samples of the attained pair alone bound nothing from above, and those with a floor lack a part of δ.
    single = mechanism.lower is None and not proposal.components and proposal.floor is None
    edges, losses = edges_around(sought.epsilon) if single else None, None
    stream = sampler.stream("confidence", count)
    for wave in sampler.waves(attained, direction, proposal, bets.tables, stream, edges):
        for shard in wave.sums:
            bets.add(shard)
        if wave.histogram is not None:
            losses = wave.histogram if losses is None else losses.merged(wave.histogram)
    return LowerEnds(bets.ends(sought.failure_probability), proposal, losses)


def _looks(
    sampler: Sampler, mechanism: SampledMechanism, direction: Direction, proposal: Proposal, points: Sequence[float]
) -> list[tuple[float, float]]:
    """Return the first and second moments of some samples at each ε."""
    first = sampler.run(
        mechanism,
        direction,
        proposal,
        [BetTable(point, math.inf) for point in points],
        sampler.stream("pilot", FIRST),
    )
    count = FIRST * SHARD
    return [
        (sum(shard[k].value for shard in first) / count, sum(shard[k].square for shard in first) / count)
        for k in range(len(points))
    ]


def _enough(distances: Sequence[float], needed: Sequence[float], tolerance: float) -> int:
    """Return the shards with which a bet at the tolerance's distance is won, or else at the nearest possible distance.

    Returns 0 if that is far away: then another direction is the larger one, or the claim is above the truth.
    """
    pairs = zip(distances, needed, strict=True)
    near = [samples for distance, samples in pairs if tolerance <= distance <= AWAY * tolerance]
    possible = [samples for samples in near if math.isfinite(samples)]
    return math.ceil(MARGIN * possible[-1] / SHARD) if possible else 0


def fewer_shards(proposal: Proposal, shards: int) -> int:
    """Return the shards for a proposal: fewer than `shards` for a power of the likelihood ratio, as it varies little."""
    return max(shards // FEWER, 1) if proposal.replicas else shards


def _times(mechanism: SampledMechanism, proposal: Proposal) -> float:
    """Return how many samples of a mixture take as long as one of this proposal."""
    return 1.0 if proposal.replicas is None else slower(mechanism, proposal.replicas.order) or LIGHTER


def _lighter(session: Session, mechanism: SampledMechanism, sought: Sought) -> Proposal:
    """Return the proposal for lower ends: the one that was tested, or the estimate's, or the estimate's mixture.

    The mixture replaces a power of the likelihood ratio, plain samples, or no test. Bets against small values of δ need no
    bound on a sample. Samples of the mixture often vary as little as those of a power, and take less time; the test and
    the estimate show which are worth more. Their bound is that of plain ones, though, and with it the generator's error,
    which must be a small part of δ.
    """
    tested, estimate = sought.tested, sought.estimate
    proposal = tested or estimate.proposal
    # Plain samples, which replace a mixture that was tested, see next to nothing of a small δ.
    own = tested is not None and tested.replicas is None and tested != plain_proposal(mechanism, sought.direction)
    if own or mechanism.lower is not None:
        return proposal
    worth = sought.test.worth if sought.test is not None else 0.0
    if proposal.replicas and worth > _times(mechanism, proposal) * estimate.effective / estimate.samples:
        return proposal
    mixture = replace(estimate.proposal, components=estimate.components)
    limits = session.sampler.limits(mechanism, sought.direction, mixture, sought.epsilon)
    light = limits.generator <= MOST_LOST * sought.delta and limits.rounding < MOST_ROUNDING
    return mixture if light and estimate.components else proposal


def of_a_power(sampler: Sampler, mechanism: SampledMechanism, proof: tuple[int, float]) -> Proposal:
    """Return the largest power of the likelihood ratio, up to the proof's, whose chain is small: samples vary little.

    A chain may be small by blocks of rounds, the shortest that make it so, if replicas can be placed in them. `proof`
    has the order and the ε of the proof.
    """
    most, epsilon = proof
    for order in range(most, 2, -1):
        for block in (0, *reversed(BLOCKS)):
            proposal = powered(mechanism, Replicas(order, block))
            price = Replicas(order, block).price(mechanism)
            if price is None or price[1] > SMALL_WORK:
                continue
            with suppress(NumericsError):
                sampler.limits(mechanism, "remove", proposal, epsilon)
                return proposal
    return powered(mechanism, Replicas(2))

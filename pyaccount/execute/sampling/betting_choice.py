"""Choose where to sample for a test, and with which betting fractions: the choice with the least expected cost.

The options are plain sampling, proposals with scaled means, and mixtures of the best of these with the proposal of the
estimate: one proposal alone may bound its samples well and yet vary much, which makes near claims expensive to test.

No guarantee depends on the choice: a test is valid with a poor choice too. It uses estimates and a few own samples.

What each option buys, as the factor by which tests are expected to take more samples without it (`benchmarks/bets.py`, σ 1 to
10 % above the pilot's root): mixtures, 2.2 for truncated batches; a mean that bounds δ, 5 for b-min-sep 64 at (8, 1e-5), and 2 to
11 for other separations at ε from 2 to 4; a second moment that is tested, 24 for b-min-sep 64; one that is computed, 1.2 to 2.2
for b-min-sep 16 at (1, 1e-3), which is 11 to 19 % of all samples of that certificate. For balls in bins with overlapping columns,
and for b-min-sep 8 at (1, 1e-5), none of them makes a difference.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyaccount import _core
from pyaccount.directions import Direction
from pyaccount.errors import NumericsError
from pyaccount.execute.sampling.added_mean import DEARER, SquareClaim, choose_mean, choose_square
from pyaccount.execute.sampling.estimates import Estimate
from pyaccount.execute.sampling.jobs import SHARD, Bet, BetTable, Component, Proposal, Replicas
from pyaccount.execute.sampling.moments import CHEAP_WORK, FEW_PASSES, FEW_WORK, LEAST_BUSY, MOST_ORDER, enough_busy
from pyaccount.execute.sampling.proposals import (
    PLAIN,
    between_parameters,
    mixed,
    plain_proposal,
    powered,
    scaled,
    with_parameters,
)
from pyaccount.execute.sampling.shards import SampleLimits, Sampler
from pyaccount.execute.sampling.wealth import LOWER_DISTANCES, places_below
from pyaccount.plan.sampled import SampledMechanism, added_bound

#: How far beyond plain sampling means are scaled for a test.
EXCESSES = tuple(0.1 * 1.25**k for k in range(19))
#: Positions between the sampler's own parameter and the one that balances the components' weights, at which to sample.
BALANCES = (0.0, 0.35, 0.6, 0.8, 1.0)
#: The same for an added record, where fewer participations give better bounds on small likelihood ratios.
BALANCES_ADDED = (-2.0, -1.4, -1.0, -0.6, -0.3, 0.0, 0.35)
#: Betting fractions that are tried, as shares of the largest allowed one.
SHARES = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.96)
#: The number of proposals that are measured, those with the least weight bounds, and the shards of each.
MEASURED, TRIAL = 6, 8
#: The shards of samples of a power of the likelihood ratio and of clipped ones, and the factor by which these may be
#: slower than plain ones.
SPECIAL_TRIAL, SLOWER = 2, 3.0
#: The least power, and the most states of a chain that samples are drawn by (24 bytes for each, and tables of 256 MiB).
FIRST, MOST_SAMPLED = 2, 13_000_000
#: Rounds of the blocks by which replicas may be drawn, if they divide the separation; longer blocks; and the entry that
#: means few busy replicas instead of blocks.
BLOCKS, LONG_BLOCKS, FEW = (16, 12, 10, 8, 6, 5, 4, 3, 2), (64, 48, 32, 24, 20), -1
#: The share of the best expected time that a chain may take if it is computed only to compare it.
LOOKED = 0.4
#: Powers that are drawn with few busy replicas. What these leave out may be this share of the gap between the claim and
#: the estimate; the larger share is for claims that reuse the choice of an earlier one.
FEW_ORDERS, LEFT_OUT, FAR_LEFT_OUT = (6, 8, 10, 12, 14, 17, 20, 24, 28, 33, 39, 46, 54, 64), 0.02, 0.1
#: Nanoseconds for one state and round of a chain. The share of the first claim's relative distance to the estimate that
#: powers are chosen for, since nearer claims may follow.
CHAIN, NEARER = 5.0, 0.4
#: The share of the gap between the claim and the estimate that samples of a replaced record may lack below their floor, and
#: the halvings of ε that find the floor.
LACKED, FLOOR_HALVINGS = 0.2, 8
#: From this δ on, plain samples of a replaced record are few.
FEW_PLAIN = 1e-3
#: Where samples are clipped, as multiples of the claim; the units of plain sampling beside clipped samples, which bound
#: the generator's error; and the shares of the claim that this error may be, and below which it is small. A tested bound
#: on the second moment may be a thousand times the square of the claim.
CLIPS = (1.5, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0, 40.0, 80.0, 160.0, 320.0, 640.0, 1280.0)
PLAIN_SHARES, MOST_GENERATOR, SMALL_GENERATOR = (1, 16, 64), 0.25, 0.01
#: Powers and clipped samples that are expected to take longer than this many plain ones are compared with scaled means.
COMPARED_FROM = 1e6
#: Larger chains are looked at if all other samples take this many times as long as the first look allowed.
FURTHER_FROM = 4.0
#: Tests that are expected to take more samples than this look for a mixture, which must take at most this share of
#: them, since its samples take somewhat longer. The shares of its samples, in units, from the proposal that bounds
#: them.
MIXED_FROM, MIXED_WORTH = 1e6, 0.75
ANCHORS = (112, 96, 64, 32)
#: One mean is tried if plain samples would be more than this; its share of the largest bet.
MEAN_FROM, MEAN_FRACTION = 1e5, 0.98
#: The time that a further scaled law adds to a sample, as a share of it.
FURTHER = 0.3
#: The core refuses bets on samples whose log densities may have a larger error.
MOST_ROUNDING = 1e-6
#: A claim that is nearer to the estimate than this, relatively, is given up: the number of samples needed grows with
#: the square of its inverse, and estimates are hardly more precise. Giving up can only lose a certificate.
CLOSEST = 0.01
#: With fewer effective samples than this a measured variance is not used.
LEAST_EFFECTIVE = 12.0


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim to be tested: δ(`epsilon`) < `delta` for this mechanism, by a wealth of e^`log_target`."""

    mechanism: SampledMechanism
    noise_multiplier: float
    epsilon: float
    delta: float
    log_target: float
    #: The δ that is stated if the claim is accepted, for which lower ends of ε are sought; None if none are.
    stated: float | None = None


@dataclass(frozen=True, slots=True)
class Betting:
    """How a claim δ(ε) < threshold will be tested: the proposal, the betting fractions, and the expected samples."""

    proposal: Proposal
    weight_bound: float
    fractions: tuple[float, ...]
    expected_samples: float
    #: An upper bound on what clipping samples at `weight_bound` takes from their mean, by a bound on the second moment.
    clipped: float = 0.0
    #: Whether δ is at most `weight_bound` without any sample.
    proven: bool = False
    #: The claim that is tested first if the second moment is not known without samples, and the samples of that test.
    square: SquareClaim | None = None
    square_samples: float = 0.0
    #: How many plain samples take as long as one of a power, if that is known; otherwise `SLOWER` applies.
    slower: float | None = None
    #: Estimates of E V² at ε and at the smaller values where lower ends are sought, not clipped; empty if not measured.
    squares: tuple[float, ...] = ()

    @property
    def expected_plain_samples(self) -> float:
        """The number of plain samples that take as long as the test."""
        return (_times(self) if self.proposal.replicas else 1.0) * self.expected_samples + DEARER * self.square_samples


def choose_betting(sampler: Sampler, claim: Claim, direction: Direction, estimate: Estimate) -> Betting | None:
    """Return the proposal and fractions that are expected to test a claim at the least cost; None if it looks false.

    Plain sampling and proposals with scaled means are compared. With larger mean scales the samples vary less, but
    their weight bound is larger, which limits the betting fractions.
    """
    # A part of δ that is added whatever is drawn cannot be bet on.
    claim = replace(claim, delta=claim.delta - sampler.added(claim.mechanism, direction, claim.epsilon))
    estimate = replace(estimate, value=estimate.sampled, added=0.0)
    mechanism, threshold, log_target = claim.mechanism, claim.delta, claim.log_target
    gap = threshold - estimate.value
    if gap <= CLOSEST * threshold:
        return None
    known = mechanism.known(direction, claim.epsilon) if direction in mechanism.composed else None
    if known is not None and known < threshold:
        # The composed phases prove the claim without samples.
        return Betting(plain_proposal(mechanism, direction), known, (), 0.0, proven=True)
    found = [_blind_betting(claim, plain_proposal(mechanism, direction), (1.0, 0.0), estimate.value)]
    quick = COMPARED_FROM * mechanism.cost
    special = _special_betting(sampler, claim, direction, estimate, quick)
    lasts = math.inf if special is None else _times(special) * special.expected_samples
    if special is not None and lasts < found[0].expected_samples and lasts <= COMPARED_FROM:
        return special
    options = []
    for excess in EXCESSES:
        likely = scaled(mechanism, direction, excess, 1.0)
        balanced = mechanism.core.balanced_parameters(likely.mean_scale)
        # The least weight bound is between the sampler's own parameter and the one that balances the components.
        for share in BALANCES_ADDED if direction == "add" else BALANCES:
            pairs = zip(likely.parameters, balanced, strict=True)
            proposal = with_parameters(
                [between_parameters(own, other, share) for own, other in pairs], likely.mean_scale
            )
            limits = sampler.limits(mechanism, direction, proposal, claim.epsilon)
            if math.isfinite(limits.weight_bound) and (limits.weight_bound, proposal) not in options:
                if limits.weight_bound + limits.generator < threshold:
                    # δ(ε) is at most that, whatever is drawn, so that no sample is needed.
                    return Betting(proposal, limits.weight_bound, (), 0.0)
                options.append((limits.weight_bound, proposal))
    added = _added_bettings(sampler, claim, direction, estimate)
    least = min(added, key=_price, default=found[0])
    if _price(least) < min(found[0].expected_samples, lasts):
        return least
    options.sort(key=lambda option: option[0])
    for weight_bound, proposal in [option for option in options if option[0] > threshold][:MEASURED]:
        # No betting fraction does better than the largest one with samples that do not vary.
        fastest = math.log1p(gap / max(weight_bound - threshold, 1e-300))
        if fastest <= 0.0 or log_target / fastest >= min(b.expected_samples for b in found):
            break
        found.append(_measured_betting(sampler, claim, direction, estimate, proposal, [(weight_bound, 0.0)]))
    single = min(found, key=lambda betting: betting.expected_samples)
    mixed = _mixed_betting(sampler, claim, direction, estimate, single)
    best = single if mixed is None else mixed
    if direction != "add" and sampler.looked <= quick < best.expected_samples * mechanism.cost / FURTHER_FROM:
        # Larger chains are looked at only now, since they may take longer than all other samples.
        sampler.replicas = None
        special = _powered_betting(sampler, claim, direction, estimate, best.expected_samples * mechanism.cost)
        lasts = math.inf if special is None else _times(special) * special.expected_samples
    return best if special is None or best.expected_samples <= lasts else special


def _special_betting(
    sampler: Sampler, claim: Claim, direction: Direction, estimate: Estimate, most: float
) -> Betting | None:
    """Return the test by a power of the likelihood ratio (removed or replaced) or by clipped samples (added), or None."""
    if direction == "add":
        return _clipped_betting(sampler, claim, direction, estimate)
    return _powered_betting(sampler, claim, direction, estimate, most)


def _powered_betting(
    sampler: Sampler, claim: Claim, direction: Direction, estimate: Estimate, most: float
) -> Betting | None:
    """Return the test of a removed or a replaced record by samples of a power of the likelihood ratio; None if there is none.

    Samples of a replaced record have a floor, and are bounded as those of a removed record at that ε. Chains are not
    computed if they alone take a good part of `most`, in nanoseconds.
    """
    mechanism = claim.mechanism
    floor = _floor(sampler, claim, estimate) if direction == "replace" else None
    if Replicas(FIRST).price(mechanism) is None or (direction == "replace" and floor is None):
        return None
    lacked = 0.0 if floor is None else sampler.below_floor(mechanism, claim.epsilon, floor)
    gap = (claim.delta - lacked - estimate.value) / claim.delta
    bounded = claim if floor is None else replace(claim, epsilon=floor)
    known = sampler.replicas
    if known is None or known[0].price(mechanism) != known[1]:
        known = sampler.replicas = _sampled_replicas(sampler, bounded, NEARER * gap, most)
    limits = None if known is None else _power_limits(sampler, bounded, known[0])
    if limits is not None and limits.left_out > FAR_LEFT_OUT * gap * claim.delta:
        # The replicas chosen for another claim leave out too much for this one.
        known = sampler.replicas = _sampled_replicas(sampler, bounded, NEARER * gap, most)
        limits = None if known is None else _power_limits(sampler, bounded, known[0])
    if known is None or limits is None:
        # There is no chain, or none that is small enough, or its values leave the range of numbers.
        return None
    proposal = replace(powered(mechanism, known[0]), floor=floor)
    limits = sampler.limits(mechanism, direction, proposal, claim.epsilon)
    stated = replace(claim, delta=claim.delta - (limits.left_out + limits.generator + limits.clipped))
    if limits.weight_bound < stated.delta:
        return Betting(proposal, limits.weight_bound, (), 0.0)
    if not (limits.rounding < MOST_ROUNDING and limits.weight_bound > claim.delta and stated.delta > estimate.value):
        return None
    betting = _measured_betting(sampler, stated, direction, estimate, proposal, [(limits.weight_bound, 0.0)])
    return replace(betting, slower=_slower(mechanism, known[0].order))


def _floor(sampler: Sampler, claim: Claim, estimate: Estimate) -> float | None:
    """Return the floor of samples of a replaced record: the largest of some up to ε with little of δ below it, or None.

    A larger floor bounds samples better, and leaves more of δ to be proven without them.
    """
    if claim.mechanism.curves or claim.delta >= FEW_PLAIN or Replicas(FIRST).price(claim.mechanism) is None:
        return None
    most = LACKED * (claim.delta - estimate.value)
    low, high = 0.0, claim.epsilon
    for _ in range(FLOOR_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (
            (middle, high) if sampler.below_floor(claim.mechanism, claim.epsilon, middle) <= most else (low, middle)
        )
    return low if low > 0.0 else None


def _times(betting: Betting) -> float:
    """Return how many plain samples take as long as one sample of the test."""
    return SLOWER if betting.slower is None else betting.slower


def _power_limits(sampler: Sampler, claim: Claim, replicas: Replicas) -> SampleLimits | None:
    """Return what is proven about samples of a power of the likelihood ratio; None if its chain is out of range.

    What a first look found out about a claim is remembered for a further one.
    """
    about = (claim.mechanism, claim.epsilon)
    if sampler.powers[0] != about:
        sampler.powers = (about, {})
    known = sampler.powers[1]
    if replicas not in known:
        try:
            known[replicas] = sampler.limits(
                claim.mechanism, "remove", powered(claim.mechanism, replicas), claim.epsilon
            )
        except NumericsError:
            known[replicas] = None
    return known[replicas]


def _sampled_replicas(
    sampler: Sampler, claim: Claim, gap: float, most: float = math.inf
) -> tuple[Replicas, tuple[int, float]] | None:
    """Return the power of the likelihood ratio to sample from, and the price of its chain; None if all take too long.

    The power is chosen by the expected time of its chain and its samples. Chains of long blocks are small and are tried
    first, then those of few busy replicas. A chain is not computed if it alone would take a good part of the best time
    so far, or of `most`, in nanoseconds.
    """
    best: tuple[float, Replicas] | None = None
    sampler.looked = most
    for block in (*LONG_BLOCKS, *BLOCKS, FEW, 0):
        dearest = LOOKED * most
        found = (
            _few_busy(sampler, claim, gap, dearest)
            if block == FEW
            else _sampled_order(sampler, claim, gap, block, dearest)
        )
        if found is not None and (best is None or found[0] < best[0]):
            best, most = found, min(most, found[0])
    price = None if best is None else best[1].price(claim.mechanism)
    return None if best is None or price is None else (best[1], price)


def _taken(claim: Claim, gap: float, weight_bound: float, order: int) -> float:
    """Return the expected time, in nanoseconds, of the samples of a power with this weight bound."""
    samples = claim.log_target * (1.0 / gap + 0.5 / (gap * gap))
    return samples * max(weight_bound / claim.delta, 1.0) * _slower(claim.mechanism, order) * claim.mechanism.cost


def slower(mechanism: SampledMechanism, order: int) -> float | None:
    """Return how many plain samples take as long as one of a power; None if that is not known."""
    price = mechanism.core.tuple_price(order)
    return 1.0 + price / mechanism.cost if price > 0.0 else None


def _slower(mechanism: SampledMechanism, order: int) -> float:
    """Return how many plain samples take as long as one of a power, or a guess."""
    return slower(mechanism, order) or SLOWER


def _few_busy(sampler: Sampler, claim: Claim, gap: float, most: float) -> tuple[float, Replicas] | None:
    """Return the expected nanoseconds of the best power with few busy replicas, and its replicas; None if none fits.

    Larger powers need more busy replicas. Powers whose chains are small with all replicas busy are not considered here.
    """
    found: tuple[float, Replicas] | None = None
    busy, least_price = LEAST_BUSY, Replicas(FEW_ORDERS[0], most_busy=LEAST_BUSY).price(claim.mechanism)
    if least_price is None or least_price[1] > CHEAP_WORK:
        # With this many ages, no chain with enough busy replicas is small.
        return None
    for order in FEW_ORDERS:
        whole = Replicas(order).price(claim.mechanism)
        if whole is not None and whole[1] <= CHEAP_WORK:
            continue
        least = most if found is None else min(most, found[0])
        enough = _enough_busy(sampler, claim, LEFT_OUT * gap * claim.delta, Replicas(order, most_busy=busy), least)
        if enough is None:
            return found
        replicas, limits = enough
        total, busy = _taken(claim, gap, limits.weight_bound, order) + _few_price(claim, replicas), replicas.most_busy
        if found is not None and total >= found[0]:
            return found
        found = (total, replicas)
    return found


def _enough_busy(
    sampler: Sampler, claim: Claim, most_left_out: float, least: Replicas, most: float
) -> tuple[Replicas, SampleLimits] | None:
    """Return the fewest busy replicas that leave out little, and what is proven then; None if that takes too long."""
    limits: dict[int, SampleLimits | None] = {}

    def left_out(busy: int) -> float:
        replicas = replace(least, most_busy=busy)
        limits[busy] = None if _few_price(claim, replicas) >= most else _power_limits(sampler, claim, replicas)
        found = limits[busy]
        return math.inf if found is None else found.left_out

    busy = enough_busy(left_out, most_left_out, least.order - 1, least.most_busy)
    found = None if busy is None else limits[busy]
    return None if busy is None or found is None else (replace(least, most_busy=busy), found)


def _few_price(claim: Claim, replicas: Replicas) -> float:
    """Return the nanoseconds for a chain of few busy replicas and what it leaves out; infinite if it is not small."""
    price = replicas.price(claim.mechanism)
    return math.inf if price is None or price[1] > FEW_WORK else FEW_PASSES * price[1] * CHAIN


def _sampled_order(
    sampler: Sampler, claim: Claim, gap: float, block: int, most: float
) -> tuple[float, Replicas] | None:
    """Return the expected time in nanoseconds of the best order, and that order; skips chains that alone take `most`.

    ln of the weight bound is convex in m, and 0 at 1 (with blocks this is a guess), so the bound of the next order is
    predicted from the last ones. Chains grow with m; they are computed from the smallest on, as long as the next one
    pays. This ends too early if the first steps say little about later ones, as in runs of a few rounds; small chains
    are therefore computed as long as they improve.
    """
    mechanism, logs = claim.mechanism, [0.0]
    least = Replicas(FIRST, block).price(mechanism)
    if least is None or least[0] > MOST_SAMPLED or least[1] * CHAIN >= most:
        return None

    def taken(log: float, order: int) -> float:
        return _taken(claim, gap, math.exp(log), order)

    found: tuple[float, Replicas] | None = None
    for order in range(FIRST, MOST_ORDER + 1):
        replicas = Replicas(order, block)
        price, limits = replicas.price(mechanism), _power_limits(sampler, claim, replicas)
        if limits is None:
            return found
        bound = limits.weight_bound
        logs.append(math.log(bound) if bound > 0.0 else -math.inf)
        total = taken(logs[-1], order) + (0.0 if price is None else price[1] * CHAIN)
        if found is not None and total >= found[0]:
            return found
        found = (total, replicas)
        bend = logs[-1] - 2.0 * logs[-2] + logs[-3] if order > FIRST else 0.0
        further = 2.0 * logs[-1] - logs[-2] + bend
        larger = Replicas(order + 1, block).price(mechanism)
        if larger is not None and larger[1] <= CHEAP_WORK:
            continue
        if larger is None or larger[0] > MOST_SAMPLED or not math.isfinite(further) or further >= logs[-1]:
            return found
        if taken(logs[-1], order) - taken(further, order + 1) < larger[1] * CHAIN or larger[1] * CHAIN >= most:
            return found
    return found


def _clipped_betting(sampler: Sampler, claim: Claim, direction: Direction, estimate: Estimate) -> Betting | None:
    """Return the test of an added record by clipped samples of R tilted; None if their second moment is not bounded.

    If E V² ≤ v then E (V − c)₊ ≤ v/(4c), since V − c ≤ V²/(4c): the test is that the mean of min(V, c) is below the
    claim less v/(4c). With a share α of the tilted law in a mixture, v becomes v/α. See the core's `linear`; if that
    bounds δ itself, nothing is sampled.
    """
    mechanism, threshold = claim.mechanism, claim.delta
    if direction != "add" or mechanism.curves:
        return None
    proven = added_bound(mechanism.core, claim.epsilon, "delta")
    if proven is not None and proven[0] < threshold:
        return Betting(plain_proposal(mechanism, direction), proven[0], (), 0.0, proven=True)
    second = None if proven is None else added_bound(mechanism.core, claim.epsilon, "square")
    if second is None:
        return None
    return _shifted_betting(sampler, claim, direction, estimate, second)


def _shifted_betting(
    sampler: Sampler, claim: Claim, direction: Direction, estimate: Estimate, second: tuple[float, float]
) -> Betting | None:
    """Return the test by clipped samples of R tilted, or None. `second` has the bound on E V², and minus the tilt."""
    mechanism, threshold = claim.mechanism, claim.delta
    found: list[Betting] = []
    for units in PLAIN_SHARES:
        tilted = _core.SHARD_UNITS - units
        components = (replace(PLAIN, units=units), Component(tilted, (), -second[1]))
        proposal = replace(plain_proposal(mechanism, direction), components=components)
        limits = sampler.limits(mechanism, direction, proposal, claim.epsilon)
        if limits.rounding < MOST_ROUNDING and limits.generator < MOST_GENERATOR * threshold:
            stated = replace(claim, delta=threshold - limits.generator)
            square = second[0] * (1.0 + 1e-12) * _core.SHARD_UNITS / tilted
            bounds = [(factor * threshold, square / (4.0 * factor * threshold)) for factor in CLIPS]
            bounds = [(bound, lost) for bound, lost in bounds if estimate.value < stated.delta - lost < bound]
            if bounds:
                found.append(_measured_betting(sampler, stated, direction, estimate, proposal, bounds))
            # Larger shares of plain samples reduce the generator's error and are worse in all other respects.
            if limits.generator < SMALL_GENERATOR * threshold:
                break
    return min(found, key=lambda betting: betting.expected_samples, default=None)


def _added_bettings(sampler: Sampler, claim: Claim, direction: Direction, estimate: Estimate) -> list[Betting]:
    """Return tests of added records by one mean, which bounds δ, or the second moment of samples that are then clipped.

    The list is empty if few plain samples suffice, or if the bounds are too loose.
    """
    plain_samples = claim.log_target / max(claim.delta - estimate.value, 1e-300)
    if direction != "add" or plain_samples < MEAN_FROM:
        return []
    found = [_mean_betting(sampler, claim, direction), _square_betting(sampler, claim, direction, estimate)]
    return [betting for betting in found if betting is not None]


def _mean_betting(sampler: Sampler, claim: Claim, direction: Direction) -> Betting | None:
    """Return the test of a mean that bounds δ; None if the bound is too loose."""
    found = choose_mean(sampler, claim.mechanism, claim.epsilon, claim.delta)
    if found is None:
        return None
    chosen, mean = found
    proposal = replace(plain_proposal(claim.mechanism, direction), log_sobolev=chosen.proposal)
    if chosen.room <= 0.0:
        return Betting(proposal, chosen.most, (), 0.0)
    return Betting(proposal, chosen.most, (MEAN_FRACTION / chosen.room,), chosen.samples(mean, claim.log_target))


def _square_betting(sampler: Sampler, claim: Claim, direction: Direction, estimate: Estimate) -> Betting | None:
    """Return the test by clipped samples whose second moment is tested first; None if no bound on it suffices."""
    chosen = choose_square(sampler, claim.mechanism, claim.epsilon, claim.delta)
    if chosen is None:
        return None
    second = (chosen.square, chosen.mean.proposal.size)
    betting = _shifted_betting(sampler, claim, direction, estimate, second)
    if betting is None:
        return None
    samples = 0.0 if chosen.mean.room <= 0.0 else chosen.mean.samples(chosen.expected, claim.log_target)
    return replace(betting, square=chosen, square_samples=samples)


def _price(betting: Betting) -> float:
    """Return how many plain samples take as long as a test of added records.

    Samples of a mean count as slower ones here, but not in `expected_plain_samples`, by which the budget of tests is kept.
    """
    slower = betting.proposal.log_sobolev is not None
    return SLOWER * betting.expected_samples if slower else betting.expected_plain_samples


def _mixed_betting(
    sampler: Sampler, claim: Claim, direction: Direction, estimate: Estimate, single: Betting
) -> Betting | None:
    """Return the best mixture of a proposal with further laws; None if none takes clearly fewer samples."""
    best, most = None, MIXED_WORTH * single.expected_samples
    if single.expected_samples < MIXED_FROM:
        return None
    # If the likelihood ratio is only enclosed, so are densities of scaled laws; that of plain sampling is known.
    anchor = plain_proposal(claim.mechanism, direction) if claim.mechanism.enclosed else single.proposal
    for share in ANCHORS:
        components = mixed(claim.mechanism, direction, anchor, estimate.components, share)
        if components is None:
            continue
        proposal = replace(anchor, components=components)
        limits = sampler.limits(claim.mechanism, direction, proposal, claim.epsilon)
        # The bet is against the claim less the generator's share, which matters if the claim is close.
        stated = replace(claim, delta=claim.delta - limits.generator)
        gap, room = stated.delta - estimate.value, limits.weight_bound - stated.delta
        # Each further law takes a recursion of its own.
        dear = 1.0 + FURTHER * max(0, sum(bool(one.parameters) for one in components) - 1)
        if not limits.rounding < MOST_ROUNDING or gap <= 0.0 or room <= 0.0:
            continue
        if dear * claim.log_target / math.log1p(gap / room) >= most:
            # Not even samples that do not vary would be cheap enough; smaller shares of the anchor bound less well.
            break
        betting = _measured_betting(sampler, stated, direction, estimate, proposal, [(limits.weight_bound, 0.0)])
        if dear * betting.expected_samples < most:
            best, most = betting, dear * betting.expected_samples
    return best


def _blind_betting(claim: Claim, proposal: Proposal, bound: tuple[float, float], mean: float) -> Betting:
    """Return a bet on samples in [0, w] of which only the mean is known, as if each were 0 or the weight bound w.

    No law on [0, w] with this mean has a smaller growth of ln of the wealth, since ln is concave.
    """
    weight_bound, lost = bound
    threshold = claim.delta - lost
    largest, share_of_bound = 1.0 / (weight_bound - threshold), mean / weight_bound
    growth = {
        share: (1.0 - share_of_bound) * math.log1p(share * largest * threshold)
        + share_of_bound * math.log1p(share * largest * (threshold - weight_bound))
        for share in SHARES
    }
    best = max(growth, key=lambda share: growth[share])
    expected = claim.log_target / growth[best] if growth[best] > 0.0 else math.inf
    return Betting(proposal, weight_bound, (best * largest, 0.5 * best * largest), expected, clipped=lost)


def _measured_betting(  # noqa: PLR0913, PLR0917 - the claim and the choice of samples
    sampler: Sampler,
    claim: Claim,
    direction: Direction,
    estimate: Estimate,
    proposal: Proposal,
    bounds: Sequence[tuple[float, float]],
) -> Betting:
    """Return the best bet on samples of a proposal. `bounds` has weight bounds, each with its loss by clipping."""
    tables = []
    for bound, lost in bounds:
        threshold = claim.delta - lost
        largest = 1.0 / (bound - threshold)
        tables.append(BetTable(claim.epsilon, bound, tuple(Bet(threshold, share * largest) for share in SHARES)))
    tables += [BetTable(place, math.inf) for place in places_below(claim.epsilon, LOWER_DISTANCES)[1:]]
    trial = SPECIAL_TRIAL if proposal.replicas or bounds[0][1] else TRIAL
    sums = sampler.run(claim.mechanism, direction, proposal, tables, sampler.stream("pilot", trial))
    count = trial * SHARD
    measured_mean, second = sum(s[0].value for s in sums) / count, sum(s[0].square for s in sums) / count
    effective = 0.0 if second <= 0.0 else count * measured_mean * measured_mean / second
    error = math.sqrt(max(second - measured_mean * measured_mean, 0.0) / count)
    # If the likelihood ratio is only enclosed, bounded samples have a larger mean than the estimate: use theirs.
    enclosed = claim.mechanism.lower is not None
    if enclosed and (effective < 4.0 * LEAST_EFFECTIVE or measured_mean + 4.0 * error > claim.delta):
        return Betting(proposal, bounds[0][0], (), math.inf)
    mean = measured_mean if enclosed else estimate.value
    squares = tuple(sum(s[k].square for s in sums) / count for k in (0, *range(len(bounds), len(tables))))
    best = replace(_blind_betting(claim, proposal, bounds[0], mean), squares=squares)
    if effective < LEAST_EFFECTIVE:
        return best
    for index, ((bound, lost), table) in enumerate(zip(bounds, tables, strict=False)):
        for k, bet in enumerate(table.bets):
            # The estimate knows the mean better than these samples do.
            growth = sum(s[index].log_wealth[k] for s in sums) / count + bet.fraction * (measured_mean - mean)
            if growth > 0.0 and claim.log_target / growth < best.expected_samples:
                fractions = (bet.fraction, 0.5 * bet.fraction)
                expected = claim.log_target / growth
                best = Betting(proposal, bound, fractions, expected, clipped=lost, squares=squares)
    return best

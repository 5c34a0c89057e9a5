"""Estimate δ(ε) at any ε, by the balance heuristic over proposals that cover it. Estimates are never bounds.

Samples come from a mixture of proposals: the mechanism itself, the mechanism tilted along its mean participation, and
laws with scaled means (see the core's `tilt`, `balanced` and `proposal`). The proposals and their shares are found in
two steps:

* a *grid* of tilts gives the mean loss of each, and so the tilts whose losses lie around every ε that is asked about;
* a *scouting* run of these and of a library of scaled laws gives each proposal's share of the answer, which is the
  share of samples it gets (one step of the EM iteration of Cappé et al. 2008). Proposals that contribute almost
  nothing are dropped.

The estimate itself uses new samples from that mixture, so it is unbiased whatever the scouting saw. An eighth of its
samples are plain ones, so none weighs more than eight times what it does in plain sampling. A region that the other
proposals miss therefore increases the standard error, for δ large enough to be seen by plain samples.

For much smaller δ a mixture may miss much of what matters. Its samples at the edge of the region that it covers are
then few, with unbounded weights, so that both their mean and its standard error are too low. This shows in the largest
of them. If one sample has more than `MOST_PEAK` of the second moment (of tilts alone, which cover one line,
`LINE_PEAK`), or `MOST_SHARE` of the mean, an estimate that is stated is drawn from what a second scouting finds, with
laws whose means are scaled further. There is no estimate if one sample still has more than `MOST_PEAK` of the second
moment, or if fewer than `ENOUGH_EFFECTIVE` effective samples were seen. No sample reveals a region far from all
samples; tests check that standard errors are true down to 1e-18.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from pyaccount import _core
from pyaccount.directions import Direction
from pyaccount.execute.sampling.jobs import SHARD, Component, MixtureSampled, Proposal
from pyaccount.execute.sampling.proposals import PLAIN, plain_proposal, scaled_proposals, whole_units
from pyaccount.execute.sampling.shards import Purpose, Sampler
from pyaccount.plan.common import given
from pyaccount.plan.sampled import SampledMechanism

#: The shards of a grid of tilts, of a scouting run, and of an estimate.
TILT_GRID, SCOUT, ESTIMATE = 1, 4, 16
#: The number of tilts in a grid, and the factor by which their θ spread below the largest.
TILTS, SPAN = 20, 300.0
#: The strongest tilt, in standard deviations of t. Rounding would soon dominate the losses of stronger ones.
MOST_DEVIATIONS = 40.0
#: The tilts for each ε, by where their mean loss lies: in standard deviations of the loss beyond ε. With composed
#: phases, whose losses add to the sampled ones, as shares of ε instead.
BEYOND = (-0.5, 0.4, 1.3)
MIXED_SHARES = (0.2, 0.4, 0.6, 0.8, 1.0, 1.2)
#: The share of plain samples in a mixture, in units of a shard.
PLAIN_UNITS = _core.SHARD_UNITS // 8
#: Proposals with a smaller share of the answer are dropped, and at most this many scaled ones are kept, in a first and
#: in a second scouting: each takes a recursion.
LEAST_SHARE, MOST_SCALED, MOST_FAR = 0.01, 2, 6
#: With fewer effective samples than the first number there is no estimate; a stated one should have the second number.
ENOUGH_EFFECTIVE, WANTED_EFFECTIVE = 30.0, 400.0
#: The largest share of Σ V² that one sample may have, and of Σ V before a second scouting. If V has no second moment,
#: the share of the largest sample in Σ V² does not vanish as samples grow; if it has one, the share goes to 0.
MOST_PEAK, LINE_PEAK, MOST_SHARE = 0.2, 0.05, 1.0 / 60.0
#: A scaled law with a mean loss of this many times the largest ε is of no use, and slow if densities underflow.
FAR_LOSSES = 10.0
#: An estimate after a second scouting may lack this many samples like the largest.
UNSEEN = 3.0
#: A mixture is reused for a similar mechanism at a similar ε: if ε and ‖m̄‖² are this near, relatively, and samples are
#: worth at least this much each, and at least half of what they were. (What a mixture misses does not show in its own
#: samples.)
NEAR_EPSILON, NEAR_SQUARE, WORTH, STALE = 0.1, 0.25, 0.02, 0.5


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimate of δ(ε) in one direction. Not a bound."""

    value: float
    standard_error: float
    #: The number of equally weighted samples that would give the same precision.
    effective: float
    samples: int
    #: The single proposal whose samples would vary least, among those measured.
    proposal: Proposal
    #: The part of `value` that is added whatever is drawn.
    added: float = 0.0
    #: The mixture from which its samples were drawn.
    components: tuple[Component, ...] = ()
    #: The share of the largest sample in Σ V².
    peak: float = 0.0

    @property
    def sampled(self) -> float:
        """The mean of the samples."""
        return self.value - self.added

    @property
    def even(self) -> bool:
        """Whether no sample matters much: by (Σ V)² = effective·Σ V², the largest V is √(peak/effective)·Σ V."""
        most = MOST_PEAK if any(one.parameters for one in self.components) else LINE_PEAK
        return self.peak <= min(most, MOST_SHARE**2 * self.effective)

    @property
    def known(self) -> bool:
        """Whether it has enough effective samples to be called an estimate, and no few samples decide it."""
        return self.effective >= ENOUGH_EFFECTIVE and self.peak <= MOST_PEAK


@dataclass(frozen=True, slots=True)
class Mixture:
    """Proposals with their shares, and the best single proposal for each ε."""

    components: tuple[Component, ...]
    singles: tuple[Proposal, ...]
    epsilons: tuple[float, ...]
    #: ‖m̄‖² of the mechanism for which it was found; 0 if nothing can be tilted.
    square: float
    #: The effective samples for each sample drawn, at the ε where they are fewest, as first measured.
    efficiency: float = 0.0
    #: Whether it was found by a second scouting.
    far: bool = False

    def serves(self, epsilons: Sequence[float], square: float) -> bool:
        """Return whether it may be used for another mechanism at these values of ε."""
        pairs = zip(epsilons, self.epsilons, strict=True)
        near = all(abs(one - other) <= NEAR_EPSILON * max(abs(other), 0.1) for one, other in pairs)
        return near and abs(square - self.square) <= NEAR_SQUARE * self.square


@dataclass(frozen=True, slots=True)
class Effort:
    """The number of samples for an estimate, and the random numbers that they use."""

    shards: int = ESTIMATE
    #: The largest number of shards, if `shards` give too few effective samples at some ε; None means `shards`.
    most: int | None = None
    #: A value that a scouting run finds to be below this is not estimated more precisely.
    negligible: float = 0.0
    purpose: Purpose = "pilot"
    #: The candidate number of the stream. Estimates with the same number use the same random numbers.
    candidate: int | None = None


class _Asked(NamedTuple):
    """The δ to be estimated: of a mechanism, in one direction, at several ε."""

    mechanism: SampledMechanism
    direction: Direction
    epsilons: Sequence[float]


class Estimator:
    """Estimates for mechanisms that differ little from call to call: a mixture is reused while it is good."""

    def __init__(self, sampler: Sampler) -> None:
        self.sampler = sampler
        self._found: dict[tuple[Direction, bool, int], Mixture] = {}

    def at(
        self, mechanism: SampledMechanism, direction: Direction, epsilon: float, effort: Effort = Effort()
    ) -> Estimate:
        """Return an estimate of δ(ε) from up to four times the shards of the effort. Raises `LimitError`."""
        return self.curve(mechanism, direction, (epsilon,), replace(effort, most=4 * effort.shards))[0]

    def curve(
        self, mechanism: SampledMechanism, direction: Direction, epsilons: Sequence[float], effort: Effort = Effort()
    ) -> list[Estimate]:
        """Return estimates of δ at each ε from one set of samples. Raises `LimitError`."""
        key, asked = (direction, mechanism.lower is None, len(epsilons)), _Asked(mechanism, direction, epsilons)
        mixture = self._found.get(key)
        if mixture is not None and mixture.serves(epsilons, _square(mechanism)):
            found = self._draw(asked, mixture, effort)
            least = max(STALE * mixture.efficiency, WORTH)
            if self._efficiency(found) >= least or self._negligible(found, effort.negligible):
                return self._enough(asked, mixture, found, effort)
        mixture = self._scout(mechanism, direction, epsilons)
        if effort.negligible > 0.0:
            glance = self._draw(asked, mixture, replace(effort, shards=SCOUT))
            if self._negligible(glance, effort.negligible):
                return glance
        found = self._draw(asked, mixture, effort)
        if effort.purpose == "estimate" and not mechanism.enclosed and not all(one.even for one in found):
            mixture = self._scout(mechanism, direction, epsilons, far=True)
            found = self._draw(asked, mixture, effort)
        self._found[key] = replace(mixture, efficiency=self._efficiency(found))
        return self._enough(asked, mixture, found, effort)

    def _enough(self, asked: _Asked, mixture: Mixture, found: list[Estimate], effort: Effort) -> list[Estimate]:
        """Draw four times as many new samples while an ε has too few effective ones, or a stated one is not known."""
        while effort.most is not None and 4 * found[0].samples <= effort.most * SHARD:
            seen = [one for one in found if one.sampled > 0.0]
            known = effort.purpose != "estimate" or all(one.known for one in seen)
            if known and all(one.effective >= WANTED_EFFECTIVE for one in seen):
                break
            more = 4 * found[0].samples // SHARD
            found = self._draw(asked, mixture, replace(effort, shards=more, candidate=None))
        return found

    @staticmethod
    def _efficiency(found: Sequence[Estimate]) -> float:
        return min(one.effective / one.samples for one in found)

    @staticmethod
    def _negligible(found: Sequence[Estimate], negligible: float) -> bool:
        return negligible > 0.0 and all(one.sampled + 3.0 * one.standard_error <= negligible for one in found)

    def _draw(self, asked: _Asked, mixture: Mixture, effort: Effort) -> list[Estimate]:
        """Return the estimates from samples of a mixture."""
        mechanism, direction, epsilons = asked
        stream = self.sampler.stream(effort.purpose, effort.shards, effort.candidate)
        sums = self.sampler.balanced(mechanism, direction, mixture.components, epsilons, stream)
        added = [self.sampler.added(mechanism, direction, epsilon) for epsilon in epsilons]
        found = [_estimate(sums, k, single, added[k]) for k, single in enumerate(mixture.singles)]
        if mixture.far:
            # A few samples have much of the second moment, so the mean's own standard error is too small: larger ones
            # were not drawn. The largest sample adds to the mean the square root of its share times the standard error,
            # or a little more.
            lacking = [math.sqrt(1.0 + UNSEEN**2 * one.peak) for one in found]
            found = [
                replace(one, standard_error=one.standard_error * factor)
                for one, factor in zip(found, lacking, strict=True)
            ]
        return [replace(one, components=mixture.components) for one in found]

    def _scout(
        self, mechanism: SampledMechanism, direction: Direction, epsilons: Sequence[float], *, far: bool = False
    ) -> Mixture:
        """Return the proposals that matter, with their shares; `far` considers more laws than usual."""
        tilts = self._tilts(mechanism, direction, epsilons)
        most = FAR_LOSSES * max(1.0, *epsilons)
        scaled_laws = [] if mechanism.enclosed else scaled_proposals(mechanism, direction, far=far, most=most)
        components = [PLAIN]
        components += [Component(0, (), theta) for theta in tilts]
        components += [Component(0, one.parameters, one.mean_scale) for one in scaled_laws]
        usual = plain_proposal(mechanism, direction)
        singles = tuple(usual for _ in epsilons)
        weights = [1.0] * len(components)
        # Too few samples of each proposal say little, so the first round chooses which ones to measure more precisely.
        for repeated in range(2):
            shared = _shared(components, weights)
            sums = self.sampler.balanced(mechanism, direction, shared, epsilons, self.sampler.stream("pilot", SCOUT))
            weights = _weights(sums)
            if not any(weights):
                # No loss above ε was seen, so that no proposal is better than another.
                return Mixture(tuple(shared), singles, tuple(epsilons), _square(mechanism), far=far)
            if not repeated:
                singles = tuple(_single(sums, k, shared, usual) for k in range(len(epsilons)))
            kept = _kept(shared, weights, MOST_FAR if far else MOST_SCALED)
            components, weights = [shared[k] for k in kept], [weights[k] for k in kept]
        mixed = tuple(_shared(components, weights))
        return Mixture(mixed, singles, tuple(epsilons), _square(mechanism), far=far)

    def _tilts(self, mechanism: SampledMechanism, direction: Direction, epsilons: Sequence[float]) -> list[float]:
        """Return the θ around whose mean losses the values of ε lie; none if nothing can be tilted."""
        facts = mechanism.core.tilt(0.0)
        if facts is None or facts[0] <= 0.0:
            return []
        square, offset, _ = facts
        deviation, sign = math.sqrt(square), -1.0 if direction == "add" else 1.0
        top = max(*epsilons, 0.0) + 3.0 * deviation
        limit = MOST_DEVIATIONS / deviation
        largest = min(limit, 4.0 * (top + offset) / square)
        if direction != "add":
            # ln f ≥ t − offset, so if the mean of t is beyond top + offset, the mean of the loss is beyond every ε.
            low, high = 0.0, largest
            for _ in range(30):
                middle = 0.5 * (low + high)
                low, high = (low, middle) if _mean_statistic(mechanism, middle) >= top + offset else (middle, high)
            largest = high
        thetas = [largest * SPAN ** (-k / (TILTS - 1.0)) for k in range(TILTS)][::-1]
        components = _shared([PLAIN] + [Component(0, (), sign * theta) for theta in thetas], [1.0] * (TILTS + 1))
        sums = self.sampler.balanced(mechanism, direction, components, (), self.sampler.stream("pilot", TILT_GRID))
        counts = np.maximum(np.array(sums.drawn, dtype=float), 1.0)
        means = np.array([total for total, _ in sums.losses]) / counts
        spreads = np.sqrt(np.maximum(np.array([square for _, square in sums.losses]) / counts - means**2, 0.0))
        rising = np.maximum.accumulate(means)
        tried = np.array([0.0, *thetas])
        found: list[float] = []
        for epsilon in epsilons:
            if mechanism.curves:
                targets = [share * epsilon for share in MIXED_SHARES]
            else:
                spread = float(np.interp(epsilon, rising, spreads))
                targets = [epsilon + z * max(spread, 1e-12) for z in BEYOND]
            found += [float(np.interp(target, rising, tried)) for target in targets]
        apart: list[float] = []
        # Tilts closer than half a standard deviation of t are considered the same.
        for theta in sorted(found):
            if theta > 0.0 and (not apart or theta - apart[-1] > 0.5 / deviation):
                apart.append(theta)
        # Keep only as many as can get two of the units of a shard each.
        step = math.ceil(len(apart) / MOST_TILTS) if apart else 1
        return [sign * theta for theta in apart[::step]]


def stated_estimates(
    estimator: Estimator,
    mechanism: SampledMechanism,
    direction: Direction,
    epsilons: Sequence[float],
    shards: tuple[int, int],
) -> list[Estimate]:
    """Return the estimates of δ at each ε that are stated to people, from samples that are used for nothing else.

    `shards` has the number drawn, and the largest number. If a loss is enclosed, the estimate is the middle of those of
    the two enclosing losses, and half of their distance counts as standard error, since the truth is between them. The
    width of the composed profile's table counts too, and what rare truncation may add.
    """
    effort = Effort(shards[0], shards[1], purpose="estimate")
    above = estimator.curve(mechanism, direction, epsilons, effort)
    if mechanism.enclosed and mechanism.lower is not None:
        below = estimator.curve(mechanism.lower, direction, epsilons, effort)
        above = [_middle(high, low) for high, low in zip(above, below, strict=True)]
    curve = mechanism.curve(direction)
    if curve is None and mechanism.rare_truncation is None:
        return above
    # The curve is an upper one: its error is the width of its tables, and beyond its end at most its tail mass.
    gap = 0.0 if curve is None else curve.gap
    return [replace(one, standard_error=math.hypot(one.standard_error, gap * one.sampled, one.added)) for one in above]


def _middle(above: Estimate, below: Estimate) -> Estimate:
    half = 0.5 * abs(above.value - below.value)
    error = math.hypot(half, max(above.standard_error, below.standard_error))
    return replace(above, value=0.5 * (above.value + below.value), standard_error=error)


#: The most tilts of a mixture.
MOST_TILTS = 40


def _square(mechanism: SampledMechanism) -> float:
    """Return ‖m̄‖², or 0 if nothing can be tilted."""
    facts = mechanism.core.tilt(0.0)
    return 0.0 if facts is None else facts[0]


def _mean_statistic(mechanism: SampledMechanism, theta: float) -> float:
    """Return E t under the tilt: θ‖m̄‖² plus the derivative of ln Z."""
    step = max(1e-6 * theta, 1e-12)
    near, far = mechanism.core.tilt(theta), mechanism.core.tilt(theta + step)
    assert near is not None
    return theta * near[0] + (given(far)[2] - near[2]) / step


def _shared(components: Sequence[Component], weights: Sequence[float]) -> list[Component]:
    """Return the components with the units of a shard, by weight; each gets at least one, plain sampling an eighth."""
    units = whole_units(weights, _core.SHARD_UNITS - PLAIN_UNITS + 1)
    return [
        replace(one, units=unit + (PLAIN_UNITS - 1 if k == 0 else 0))
        for k, (one, unit) in enumerate(zip(components, units, strict=True))
    ]


def _weights(sums: MixtureSampled) -> list[float]:
    """Return each component's share of the answer, averaged over the values of ε; all are 0 if nothing was seen."""
    weights = np.zeros(len(sums.drawn))
    for merits in sums.merits:
        parts = np.array([part for part, _ in merits])
        if parts.sum() > 0.0:
            weights += parts / parts.sum()
    return [float(weight) for weight in weights / max(len(sums.merits), 1)]


def _kept(components: Sequence[Component], weights: Sequence[float], most: int) -> list[int]:
    """Return the components that matter, always with the first."""
    least = LEAST_SHARE / max(1.0, 0.02 * len(components))
    laws = sorted((k for k in range(len(components)) if components[k].parameters), key=lambda k: -weights[k])
    dropped = {*laws[most:], *(k for k in range(len(components)) if weights[k] < least)}
    return [k for k in range(len(components)) if k == 0 or k not in dropped]


def _single(sums: MixtureSampled, index: int, components: Sequence[Component], usual: Proposal) -> Proposal:
    """Return the proposal (plain sampling is one of them) with the least second moment if all samples came from it."""
    options = [k for k, one in enumerate(components) if k == 0 or one.parameters]
    alone = [sums.merits[index][k][1] for k in options]
    if not any(alone):
        return usual
    best = components[options[int(np.argmin(alone))]]
    return usual if not best.parameters else Proposal(best.parameters[0], best.number, best.parameters[1:])


def _estimate(sums: MixtureSampled, index: int, single: Proposal, added: float) -> Estimate:
    """Return the estimate at one ε from stratified samples: the variance of its mean is that within the components."""
    count = sum(sums.drawn)
    variance, total, square = 0.0, 0.0, 0.0
    for drawn, (first, second) in zip(sums.drawn, sums.values[index], strict=True):
        total, square = total + first, square + second
        if drawn > 1:
            variance += max(second - first * first / drawn, 0.0) * drawn / (drawn - 1)
    effective = 0.0 if square <= 0.0 else total * total / square
    peak = 0.0 if square <= 0.0 else sums.largest[index] ** 2 / square
    return Estimate(total / count + added, math.sqrt(variance) / count, effective, count, single, added, peak=peak)

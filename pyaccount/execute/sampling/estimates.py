"""Estimates of δ(ε) at any ε, by the balance heuristic over proposals that cover it; never bounds.

Samples come from a mixture of proposals: the mechanism itself, the mechanism tilted along its mean participation, and laws with
scaled means (see the core's `tilt`, `balanced` and `proposal`). Which of them, and in which shares, is found in two steps:

* a *grid* of tilts tells the mean loss of each, and so the tilts whose losses lie around every ε that is asked about;
* a *scouting* run of these and of a library of scaled laws gives each proposal's share of the answer, which is the
  share of samples it gets (one step of the EM iteration of Cappé et al. 2008). Proposals that contribute next to nothing are
  dropped.

The estimate itself is drawn afresh from the mixture found, so it is unbiased whatever the scouting saw. An eighth of its
samples are plain ones: none weighs more than eight times what it does in plain sampling, and so a region that the other
proposals miss shows in the standard error rather than in nothing, down to the δ that plain samples see.

Far below that a mixture may miss much of what counts, and its samples are then few and heavy beyond bounds at the edge of what it
covers: their mean is low, and so is its standard error. It shows in the largest of them. Where one sample has more than
`MOST_PEAK` of the second moment (of tilts alone, which cover one line, `LINE_PEAK`), or `MOST_SHARE` of the mean, an estimate
that is told is drawn from what a second scouting finds, with laws whose means are scaled further. There is no estimate where one
sample then still has more than `MOST_PEAK` of the second moment, or where fewer than `ENOUGH_EFFECTIVE` samples' worth was seen.
No samples tell of a region that none of them is near to; that standard errors are true as far down as 1e-18 is tested.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pyaccount import _core
from pyaccount.execute.sampling.jobs import SHARD, Balanced, Component, Proposal
from pyaccount.execute.sampling.proposals import PLAIN, library, plain, shared
from pyaccount.execute.sampling.shards import Sampler
from pyaccount.plan.drawing import DrawingRule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyaccount.directions import Direction
    from pyaccount.execute.sampling.shards import Purpose
    from pyaccount.plan.sampled import SampledMechanism

#: Shards of a grid of tilts, of a scouting run, and of an estimate.
TILT_GRID, SCOUT, ESTIMATE = 1, 4, 16
#: Tilts of a grid, and the range of θ they span below the largest.
TILTS, SPAN = 20, 300.0
#: Tilts are no stronger than this many standard deviations of t: losses would be dominated by rounding before long.
MOST_DEVIATIONS = 40.0
#: Tilts for each ε: where their mean loss lies, in standard deviations of the loss beyond ε. With composed phases, whose
#: losses add to the sampled ones, as shares of ε instead.
BEYOND = (-0.5, 0.4, 1.3)
MIXED_SHARES = (0.2, 0.4, 0.6, 0.8, 1.0, 1.2)
#: Plain samples' share of a mixture, in units of a shard.
PLAIN_UNITS = _core.SHARD_UNITS // 8
#: Proposals with a smaller share of the answer are dropped, and no more scaled ones than this are kept, in a first and in a
#: second look: each costs a recursion.
LEAST_SHARE, MOST_SCALED, MOST_FAR = 0.01, 2, 6
#: Effective samples below which there is no estimate, and which are wanted of one that is told.
ENOUGH_EFFECTIVE, WANTED_EFFECTIVE = 30.0, 400.0
#: The most of Σ V² that may be one sample's, and of Σ V without a second look. Where V has no second moment the largest of any
#: number of samples has a share of Σ V² that does not vanish; where it has one, the share goes to 0.
MOST_PEAK, LINE_PEAK, MOST_SHARE = 0.2, 0.05, 1.0 / 60.0
#: A scaled law is of no use if its mean loss is so many times the largest ε, and slow if a density leaves the range of doubles.
FAR_LOSSES = 10.0
#: As many samples like the largest as an estimate after a second look may lack.
UNSEEN = 3.0
#: A mixture serves a similar mechanism at a similar ε: values of ε and ‖m̄‖² that are so near, relatively, and samples
#: that are worth so much each and no less than half of what they were. What a mixture misses does not show in its own samples.
NEAR_EPSILON, NEAR_SQUARE, WORTH, STALE = 0.1, 0.25, 0.02, 0.5


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimate of δ(ε) in one direction. Not a bound."""

    value: float
    standard_error: float
    #: The number of equally weighted samples that would be as good.
    effective: float
    samples: int
    #: Where samples of a single proposal would vary least, of those that were looked at.
    proposal: Proposal
    #: The part of `value` that is added whatever is drawn.
    added: float = 0.0
    #: The mixture that its samples came from.
    components: tuple[Component, ...] = ()
    #: The share of Σ V² that is of the largest sample alone.
    peak: float = 0.0

    @property
    def sampled(self) -> float:
        """The mean of the samples."""
        return self.value - self.added

    @property
    def even(self) -> bool:
        """Whether no single sample counts for much: with (Σ V)² = effective·Σ V², the largest V is √(peak/effective)·Σ V."""
        most = MOST_PEAK if any(one.parameters for one in self.components) else LINE_PEAK
        return self.peak <= min(most, MOST_SHARE**2 * self.effective)

    @property
    def known(self) -> bool:
        """Whether enough was seen to call it an estimate, and no few samples decide it."""
        return self.effective >= ENOUGH_EFFECTIVE and self.peak <= MOST_PEAK


@dataclass(frozen=True, slots=True)
class Mixture:
    """Proposals with their shares, and for each ε the best single one."""

    components: tuple[Component, ...]
    singles: tuple[Proposal, ...]
    epsilons: tuple[float, ...]
    #: ‖m̄‖² of the mechanism it was found for; 0 where nothing is tilted.
    square: float
    #: Effective samples for each one drawn, at the ε where they are fewest, as first seen.
    efficiency: float = 0.0
    #: Whether it was found by a second look.
    far: bool = False

    def serves(self, epsilons: Sequence[float], square: float) -> bool:
        """Whether it may serve another mechanism at these values of ε."""
        pairs = zip(epsilons, self.epsilons, strict=True)
        near = all(abs(one - other) <= NEAR_EPSILON * max(abs(other), 0.1) for one, other in pairs)
        return near and abs(square - self.square) <= NEAR_SQUARE * self.square


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is drawn for an estimate, and from which random numbers."""

    shards: int = ESTIMATE
    #: Shards at most, where `shards` give too few effective samples at some ε; None means `shards`.
    most: int | None = None
    #: A value that a scouting run finds below this is not looked at more closely.
    negligible: float = 0.0
    purpose: Purpose = "pilot"
    #: The candidate number of the stream. Mechanisms that are estimated with the same one differ by no random numbers.
    candidate: int | None = None


class _Asked(NamedTuple):
    """What is estimated: δ of a mechanism in one direction at several ε."""

    mechanism: SampledMechanism
    direction: Direction
    epsilons: Sequence[float]


class Estimator:
    """Estimates for mechanisms that differ little from call to call: a mixture serves while it is good."""

    def __init__(self, sampler: Sampler) -> None:
        self.sampler = sampler
        self._found: dict[tuple[Direction, bool, int], Mixture] = {}

    def at(
        self, mechanism: SampledMechanism, direction: Direction, epsilon: float, effort: Effort = Effort()
    ) -> Estimate:
        """Return an estimate of δ(ε) from up to four times the shards of the effort."""
        return self.curve(mechanism, direction, (epsilon,), replace(effort, most=4 * effort.shards))[0]

    def curve(
        self, mechanism: SampledMechanism, direction: Direction, epsilons: Sequence[float], effort: Effort = Effort()
    ) -> list[Estimate]:
        """Return estimates of δ at each ε from one set of samples."""
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
        """Draw four times as many new samples, while some ε has too few effective ones, or a stated estimate is not known."""
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
            # Few samples have much of the second moment: the mean's own standard error is too small, since larger ones were
            # not drawn. What the largest adds to the mean is the root of its share times the standard error, or a little more.
            lacking = [math.sqrt(1.0 + UNSEEN**2 * one.peak) for one in found]
            found = [
                replace(one, standard_error=one.standard_error * factor)
                for one, factor in zip(found, lacking, strict=True)
            ]
        return [replace(one, components=mixture.components) for one in found]

    def _scout(
        self, mechanism: SampledMechanism, direction: Direction, epsilons: Sequence[float], *, far: bool = False
    ) -> Mixture:
        """The proposals that matter, and in which shares; `far`: of more laws than usual."""
        tilts = self._tilts(mechanism, direction, epsilons)
        newer = self.sampler.drawing.includes(DrawingRule.SECOND_MOMENTS)
        most = FAR_LOSSES * max(1.0, *epsilons) if newer else math.inf
        scaled_laws = [] if mechanism.enclosed else library(mechanism, direction, far=far, most=most)
        components = [PLAIN]
        components += [Component(0, (), theta) for theta in tilts]
        components += [Component(0, one.parameters, one.mean_scale) for one in scaled_laws]
        usual = plain(mechanism, direction)
        singles = tuple(usual for _ in epsilons)
        weights = [1.0] * len(components)
        # Too few samples of each tell nothing: the first round says what to look at more closely.
        for repeated in range(2):
            shared = _shared(components, weights)
            sums = self.sampler.balanced(mechanism, direction, shared, epsilons, self.sampler.stream("pilot", SCOUT))
            weights = _weights(sums)
            if not any(weights):
                # Nothing was seen: all are as good as any.
                return Mixture(tuple(shared), singles, tuple(epsilons), _square(mechanism), far=far)
            if not repeated:
                singles = tuple(_single(sums, k, shared, usual) for k in range(len(epsilons)))
            kept = _kept(shared, weights, MOST_FAR if far else MOST_SCALED)
            components, weights = [shared[k] for k in kept], [weights[k] for k in kept]
        mixed = tuple(_shared(components, weights))
        return Mixture(mixed, singles, tuple(epsilons), _square(mechanism), far=far)

    def _tilts(self, mechanism: SampledMechanism, direction: Direction, epsilons: Sequence[float]) -> list[float]:
        """θ around whose mean losses the values of ε lie; none where nothing can be tilted."""
        facts = mechanism.core.tilt(0.0)
        if facts is None or facts[0] <= 0.0:
            return []
        square, offset, _ = facts
        deviation, sign = math.sqrt(square), -1.0 if direction == "add" else 1.0
        top = max(*epsilons, 0.0) + 3.0 * deviation
        limit = MOST_DEVIATIONS / deviation
        largest = min(limit, 4.0 * (top + offset) / square)
        if direction != "add":
            # ln f ≥ t − offset, so where the mean of t is beyond top + offset, that of the loss is beyond all ε.
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
        places = np.array([0.0, *thetas])
        found: list[float] = []
        for epsilon in epsilons:
            if mechanism.curves:
                targets = [share * epsilon for share in MIXED_SHARES]
            else:
                spread = float(np.interp(epsilon, rising, spreads))
                targets = [epsilon + z * max(spread, 1e-12) for z in BEYOND]
            found += [float(np.interp(target, rising, places)) for target in targets]
        apart: list[float] = []
        # Tilts closer than half a standard deviation of t are the same for all purposes.
        for theta in sorted(found):
            if theta > 0.0 and (not apart or theta - apart[-1] > 0.5 / deviation):
                apart.append(theta)
        # As many as get two of the units of a shard each.
        step = math.ceil(len(apart) / MOST_TILTS) if apart else 1
        return [sign * theta for theta in apart[::step]]


def stated_estimates(
    estimator: Estimator,
    mechanism: SampledMechanism,
    direction: Direction,
    epsilons: Sequence[float],
    shards: tuple[int, int],
) -> list[Estimate]:
    """Return the estimates of δ itself at each ε that are stated to people, from samples that serve nothing else.

    `shards` are how many are drawn, and how many at most. Where a loss is enclosed the estimate lies in the middle of what the
    two enclosing losses give, and half of their distance counts as standard error: the truth is between them. So does the
    width of the composed profile's table, and what rare truncation may add.
    """
    effort = Effort(shards[0], shards[1], purpose="estimate")
    above = estimator.curve(mechanism, direction, epsilons, effort)
    if mechanism.enclosed and mechanism.lower is not None:
        below = estimator.curve(mechanism.lower, direction, epsilons, effort)
        above = [_middle(high, low) for high, low in zip(above, below, strict=True)]
    curve = mechanism.curve(direction)
    if curve is None and mechanism.rare_truncation is None:
        return above
    # The curve is read from above: its width is that of the tables, and beyond its end it is at most its tail mass, and may be 0.
    gap = 0.0 if curve is None else curve.gap
    return [replace(one, standard_error=math.hypot(one.standard_error, gap * one.sampled, one.added)) for one in above]


def _middle(above: Estimate, below: Estimate) -> Estimate:
    half = 0.5 * abs(above.value - below.value)
    error = math.hypot(half, max(above.standard_error, below.standard_error))
    return replace(above, value=0.5 * (above.value + below.value), standard_error=error)


#: The most tilts of a mixture.
MOST_TILTS = 40


def _square(mechanism: SampledMechanism) -> float:
    """‖m̄‖², 0 where nothing is tilted."""
    facts = mechanism.core.tilt(0.0)
    return 0.0 if facts is None else facts[0]


def _mean_statistic(mechanism: SampledMechanism, theta: float) -> float:
    """E t under the tilt: θ‖m̄‖² and the derivative of ln Z."""
    step = max(1e-6 * theta, 1e-12)
    near, far = mechanism.core.tilt(theta), mechanism.core.tilt(theta + step)
    assert near is not None
    assert far is not None
    return theta * near[0] + (far[2] - near[2]) / step


def _shared(components: Sequence[Component], weights: Sequence[float]) -> list[Component]:
    """The units of a shard, by weight: each component gets at least one and plain sampling, the first, an eighth."""
    units = shared(weights, _core.SHARD_UNITS - PLAIN_UNITS + 1)
    return [
        replace(one, share=unit + (PLAIN_UNITS - 1 if k == 0 else 0))
        for k, (one, unit) in enumerate(zip(components, units, strict=True))
    ]


def _weights(sums: Balanced) -> list[float]:
    """Each component's share of the answer, averaged over the values of ε; all 0 if nothing was seen."""
    weights = np.zeros(len(sums.drawn))
    for merits in sums.merits:
        parts = np.array([part for part, _ in merits])
        if parts.sum() > 0.0:
            weights += parts / parts.sum()
    return [float(weight) for weight in weights / max(len(sums.merits), 1)]


def _kept(components: Sequence[Component], weights: Sequence[float], most: int) -> list[int]:
    """The components that matter, the first among them whether it does or not."""
    least = LEAST_SHARE / max(1.0, 0.02 * len(components))
    laws = sorted((k for k in range(len(components)) if components[k].parameters), key=lambda k: -weights[k])
    dropped = {*laws[most:], *(k for k in range(len(components)) if weights[k] < least)}
    return [k for k in range(len(components)) if k == 0 or k not in dropped]


def _single(sums: Balanced, place: int, components: Sequence[Component], usual: Proposal) -> Proposal:
    """The proposal, plain sampling among them, with the least second moment if all samples came from it."""
    options = [k for k, one in enumerate(components) if k == 0 or one.parameters]
    alone = [sums.merits[place][k][1] for k in options]
    if not any(alone):
        return usual
    best = components[options[int(np.argmin(alone))]]
    return usual if not best.parameters else Proposal(best.parameters[0], best.number, best.parameters[1:])


def _estimate(sums: Balanced, place: int, single: Proposal, added: float) -> Estimate:
    """Stratified: the variance of the mean is that within the components."""
    count = sum(sums.drawn)
    variance, total, square = 0.0, 0.0, 0.0
    for drawn, (first, second) in zip(sums.drawn, sums.values[place], strict=True):
        total, square = total + first, square + second
        if drawn > 1:
            variance += max(second - first * first / drawn, 0.0) * drawn / (drawn - 1)
    effective = 0.0 if square <= 0.0 else total * total / square
    peak = 0.0 if square <= 0.0 else sums.largest[place] ** 2 / square
    return Estimate(total / count + added, math.sqrt(variance) / count, effective, count, single, added, peak=peak)

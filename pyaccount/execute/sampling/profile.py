"""Compute profiles from loss histograms: pointwise bounds on δ(ε), each with probability at least 1 − q, and estimates.

A histogram of N samples gives the sample mean m of V ∈ [0, W], and its mean square. With L = ln(1/q):

* δ ≤ the t > m with N·KL(m/W‖t/W) = L (Chernoff's bound, which holds for means on [0, 1]: Hoeffding 1963, Theorem 1);
* δ ≤ m + √(2vL/N) + 7WL/(3(N − 1)), v the sample variance (Maurer & Pontil 2009, Theorem 4, with q split for its two sides);

and likewise from below. Of several valid bounds the best is taken, with q divided among them. N is fixed before the
samples are drawn.

Estimates come from their own samples (see `estimates`), which cover every ε. If noise moves an estimate out of the
proven interval, the nearer end replaces it: since the truth is inside, that is nearer to the truth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyaccount import _core
from pyaccount.directions import Direction
from pyaccount.execute.sampling.bounds_without_samples import Proven, point_of
from pyaccount.execute.sampling.jobs import SHARD, Proposal, edges_around
from pyaccount.execute.sampling.shards import Sampler
from pyaccount.execute.sampling.tests_of_claims import divergence
from pyaccount.plan.common import given
from pyaccount.plan.sampled import SampledMechanism
from pyaccount.records.certificate import ProfilePoint

#: The number of bounds that share one q: two formulas for each histogram.
FORMULAS = 2
#: ε at a given δ is found in steps of this share of the ε around which samples were drawn, up to twice that ε.
STEPS = 128
LEAST_CENTRE = 0.1


@dataclass(frozen=True, slots=True)
class Histogram:
    """A loss histogram of samples from one proposal."""

    mechanism: SampledMechanism
    direction: Direction
    proposal: Proposal
    losses: _core.LossHistogram
    #: A second histogram for lower ends, if the pair is not attained.
    under: _core.LossHistogram | None = None
    #: The share of a failure probability that its bounds get; smaller if the number of samples was not fixed before.
    share: float = 1.0

    def merged(self, other: Histogram) -> Histogram:
        """Return both histograms together. They must come from the same mechanism, direction and proposal."""
        if (self.direction, self.proposal) != (other.direction, other.proposal):
            raise ValueError("histograms of different sampling cannot be merged")
        under = None if self.under is None or other.under is None else self.under.merged(other.under)
        return replace(self, losses=self.losses.merged(other.losses), under=under)

    def point(self, sampler: Sampler, epsilon: float, failure_probability: float) -> ProfilePoint:
        """Return bounds on δ at ε."""
        limits = sampler.limits(self.mechanism, self.direction, self.proposal, epsilon)
        # Rounding of the log densities moves the loss by at most 2r and the weight by at most e^{2r}.
        shift, factor = 2.0 * limits.rounding, 1.0 + 4.0 * limits.rounding
        # The part of δ that is added whatever is drawn is excluded here; the upper end below and estimates include it.
        curve = self.mechanism.curve(self.direction)

        def means(losses: _core.LossHistogram) -> tuple[float, float, float]:
            _, above, square = losses.moments(epsilon - shift, curve)
            below, _, _ = losses.moments(epsilon + shift, curve)
            return above * factor, below / factor, square * factor * factor

        above, least, square = means(self.losses)
        judged = self.mechanism.lower
        _, below, under = (above, least, square) if self.under is None else means(self.under)
        samples, weight_bound = self.losses.samples, limits.weight_bound
        log = math.log(FORMULAS / (self.share * failure_probability))
        if not math.isfinite(weight_bound):
            return point_of(epsilon, 1.0, 0.0)

        def margin(square: float, mean: float) -> float:
            # Each side of the empirical Bernstein bound has its own share of q, hence ln 2 more.
            variance = max(square - mean * mean, 0.0) * samples / (samples - 1)
            width = math.sqrt(2.0 * variance * (log + math.log(2.0)) / samples)
            return width + 7.0 * weight_bound * (log + math.log(2.0)) / (3.0 * (samples - 1))

        upper = above + margin(square, least)
        upper = min(upper, weight_bound * _chernoff(above / weight_bound, log / samples, upwards=True))
        upper += limits.generator + limits.added + limits.left_out
        lower = below - margin(under, below)
        lower = max(lower, weight_bound * _chernoff(below / weight_bound, log / samples, upwards=False))
        if judged is not None:
            if self.under is None:
                return point_of(epsilon, min(1.0, upper), 0.0)
            limits = sampler.limits(judged, self.direction, self.proposal, epsilon)
        lower -= limits.generator + limits.below
        return point_of(epsilon, min(1.0, upper), min(max(0.0, lower), 1.0))


def _chernoff(mean: float, rate: float, *, upwards: bool) -> float:
    """Return the t on one side of `mean` in [0, 1] with KL(mean‖t) = rate, rounded outwards."""
    if mean >= 1.0:
        return 1.0 if upwards else math.exp(-rate)
    inner, outer = mean, 1.0 if upwards else 0.0
    for _ in range(200):
        middle = 0.5 * (inner + outer)
        if middle in (inner, outer):
            break
        if divergence(mean, middle) < rate:
            inner = middle
        else:
            outer = middle
    return outer


def draw(  # noqa: PLR0913, PLR0917 - the samples to draw, and their number
    sampler: Sampler,
    mechanism: SampledMechanism,
    direction: Direction,
    proposal: Proposal,
    epsilon: float,
    shards: int,
) -> Histogram:
    """Draw a histogram of this many shards, with its bins around ε. Raises `LimitError`."""

    def losses(judged: SampledMechanism) -> _core.LossHistogram:
        total = None
        stream = sampler.stream("profile", shards)
        waves = sampler.waves(judged, direction, proposal, (), stream, edges_around(epsilon))
        for part in (wave.histogram for wave in waves):
            assert part is not None
            total = part if total is None else total.merged(part)
            sampler.progress(total.samples / (shards * SHARD))
        return given(total)

    under = None if mechanism.lower is None else losses(mechanism.lower)
    return Histogram(mechanism, direction, proposal, losses(mechanism), under)


@dataclass(frozen=True, slots=True)
class Curve:
    """The profile of a mechanism: the larger of its directions, each from its histograms."""

    sampler: Sampler
    histograms: dict[Direction, list[Histogram]]
    #: The ε around which samples were drawn.
    centre: float
    failure_probability: float
    #: Bounds on the profile from other sources than its own samples.
    beside: Proven | None = None

    def point(self, epsilon: float) -> ProfilePoint:
        """Return bounds on δ at ε."""
        points = [
            curve(self.sampler, histograms, (epsilon,), self.failure_probability)[0]
            for histograms in self.histograms.values()
        ]
        if self.beside is not None:
            points = [self.beside.capped(one, side) for one, side in zip(points, self.histograms, strict=True)]
        return larger(points)

    def epsilons(self, delta: float) -> tuple[float, float]:
        """Return bounds (lower, upper) on ε at δ, each wrong with probability at most q; (0, ∞) if nothing is known.

        The values of ε that may be returned are fixed before the samples are looked at. From the largest down, "δ(ε) ≤
        δ" is true until some first false one; the sequence passes it only if the bound at that one ε fails. Likewise
        upwards from 0.
        """
        step = max(self.centre, LEAST_CENTRE) / STEPS
        grid = [k * step for k in range(2 * STEPS + 1)]
        upper, lower = math.inf, 0.0
        for epsilon in reversed(grid):
            if self.point(epsilon).delta > delta:
                break
            upper = epsilon
        for epsilon in grid:
            if self.point(epsilon).delta_lower <= delta:
                break
            lower = epsilon
        return lower, upper


def larger(points: Sequence[ProfilePoint]) -> ProfilePoint:
    """Return the guarantee's point from those of its directions, (remove, add) or one: the larger bounds and estimate.

    If too little of adding a record was seen for an estimate, that of removing one is used: adding is seldom the larger
    of the two, and if it is, it is seen as well. Without an estimate of the first direction there is none.
    """
    upper, lower = max(point.delta for point in points), max(point.delta_lower for point in points)
    found = point_of(points[0].epsilon, upper, lower)
    if points[0].delta_estimate is None:
        return found
    known = [(point.delta_estimate, point.standard_error) for point in points if point.delta_estimate is not None]
    estimate, error = max(known, key=lambda pair: pair[0])
    return found.model_copy(update={"delta_estimate": max(estimate, lower), "standard_error": error})


def curve(
    sampler: Sampler, histograms: Sequence[Histogram], epsilons: Sequence[float], failure_probability: float
) -> list[ProfilePoint]:
    """Return the points of one direction: for each ε the best bounds of several histograms, with q divided among them.

    Each point holds with its own probability. A neighbour's bound would add the neighbour's error probability, so none
    is carried over. Bounds that hold for certain, or with the guarantee, are used in addition: see `proven`.
    """
    points = []
    for epsilon in epsilons:
        found = [histogram.point(sampler, epsilon, failure_probability / len(histograms)) for histogram in histograms]
        upper, lower = min(point.delta for point in found), max(point.delta_lower for point in found)
        points.append(point_of(epsilon, upper, lower))
    return points

"""Tests of added records by an upper bound on one mean, E D. D measures how far ln f is from linear.

The core's `added_mean` has the definitions and proofs.

**δ itself.** δ_add(ε) ≤ e^{factor + E D₁}, so the claim δ₀ follows from E D₁ < ln δ₀ − factor. The number of samples of
bets against "E D₁ ≥ that" depends only on how loose the bound is, not on δ₀; plain samples need at least ln(1/q)/δ₀. If
ln f is not nearly linear, the bound is above the claim, and nothing is found.

**The second moment.** E V² ≤ e^{factor + E D₂} for samples V of δ from the shifted law. With any v above that, E D₂ <
ln v − factor proves E V² ≤ v, and then clipped samples prove the claim (see `betting_choice`). Here a bound that is a
few times too large costs samples, but the claim can still be proven. Both tests are at q. If the claim is false, either
E V² > v, and the first test accepts with probability at most q; or E V² ≤ v, and the second one does. Which of the two
holds is not random, so q need not be split.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from pyaccount import _core
from pyaccount.execute.sampling.jobs import SHARD, LogSobolev
from pyaccount.execute.sampling.shards import Sampler
from pyaccount.plan.sampled import SampledMechanism

#: Sizes of the shift that are tried, each twice the one before, until the expected samples grow; and values of λ.
SIZES = tuple(2.0**k for k in range(12))
EXPONENTS = tuple(1.1**k for k in range(-20, 80))
#: The values of λ for which the first look draws D, which is quadratic in λ.
LOOKED = (1.0, 4.0, 16.0)
#: How far, in nats, the mean must be below the threshold by a first look.
CLOSEST = 0.05
#: How far, in nats, v is above its estimate: a larger distance takes fewer samples of D and more of V. A sample of D
#: takes as long as `DEARER` samples of V.
ABOVE, DEARER = (0.25, 0.5, 1.0, 1.5, 2.0, 2.5), 3.0


@dataclass(frozen=True, slots=True)
class MeanClaim:
    """The claim that is bet against: the mean of D is at least `threshold`. D is at most `most`."""

    proposal: LogSobolev
    threshold: float
    most: float
    #: ln of the factor in the bound factor·e^{E D} on δ or the second moment, and the error of the mean.
    log_factor: float
    error: float

    @property
    def room(self) -> float:
        """The largest distance of D above the threshold."""
        return self.most - self.threshold

    def samples(self, mean: float, log_target: float) -> float:
        """Return the expected number of samples if D is always near its mean, far below its largest value."""
        return log_target / math.log1p((self.threshold - mean) / self.room)


def mean_claim(mechanism: SampledMechanism, proposal: LogSobolev, epsilon: float, bound: float) -> MeanClaim | None:
    """Return the claim about D that implies that δ_add(ε), or the second moment, is below a bound.

    Returns None if there is no such claim for the mechanism, or if nothing of the bound is left.
    """
    found = _core.AddedMean.of(mechanism.core, proposal.size)
    return None if found is None else _claim(mechanism, found, proposal, epsilon, bound)


def _claim(
    mechanism: SampledMechanism, found: _core.AddedMean, proposal: LogSobolev, epsilon: float, bound: float
) -> MeanClaim | None:
    """Return the claim for samples of D that are given."""
    overstated = mechanism.overstated * math.exp(min(epsilon, 700.0))
    rest = bound - overstated
    if mechanism.curves or rest <= 0.0 or (overstated > 0.0 and proposal.moment > 1):
        return None
    log_factor, most, error = found.limits(proposal.exponent, proposal.moment, epsilon)
    log = math.log(rest)
    # The rounding of a logarithm and three sums, each by a unit of its terms.
    rounding = 1e-15 * (1.0 + abs(log) + abs(log_factor))
    return MeanClaim(proposal, log - log_factor - error - rounding, most, log_factor, error)


def choose_mean(
    sampler: Sampler, mechanism: SampledMechanism, epsilon: float, delta: float
) -> tuple[MeanClaim, float] | None:
    """Return the claim that is expected to take the fewest samples, and the expected mean of D; None if none holds.

    Raises `LimitError`.
    """
    best: tuple[float, MeanClaim, float] | None = None
    nearest = -math.inf
    for size, samples, means in _looks(sampler, mechanism, 1):
        found: tuple[float, MeanClaim, float] | None = None
        before, nearest = nearest, -math.inf
        for exponent in EXPONENTS:
            claim = _claim(mechanism, samples, LogSobolev(size, exponent), epsilon, delta)
            mean = _through(means, exponent)
            if claim is None:
                return None
            nearest = max(nearest, claim.threshold - mean)
            if claim.threshold - mean < CLOSEST:
                continue
            loose = claim.room / (claim.threshold - mean)
            if found is None or loose < found[0]:
                found = (loose, claim, mean)
        # Larger shifts take more samples, or are farther from the claim, than this one.
        if (best is not None and (found is None or found[0] >= best[0])) or (found is None and nearest < before):
            break
        best = found or best
    return None if best is None else best[1:]


@dataclass(frozen=True, slots=True)
class SquareClaim:
    """The claim that is bet against to prove E V² ≤ `square`, for samples V of δ shifted by `mean.proposal.size`."""

    mean: MeanClaim
    square: float
    #: The expected mean of D.
    expected: float


def choose_square(sampler: Sampler, mechanism: SampledMechanism, epsilon: float, delta: float) -> SquareClaim | None:
    """Return the claim about a second moment for which testing δ is expected to be cheapest; None if there is none.

    The cost is in samples V per ln(1/q): about 2v/δ² clipped samples if δ is far below the claim, and the samples of D,
    each of which counts as `DEARER`. Raises `LimitError`.
    """
    best: tuple[float, SquareClaim] | None = None
    for size, samples, means in _looks(sampler, mechanism, 2):
        found: tuple[float, SquareClaim] | None = None
        for exponent in EXPONENTS:
            proposal, mean = LogSobolev(size, exponent, 2), _through(means, exponent)
            unit = _claim(mechanism, samples, proposal, epsilon, 1.0)
            if unit is None:
                return None
            for above in ABOVE:
                square = math.exp(min(unit.log_factor + mean + above, 700.0))
                claim = _claim(mechanism, samples, proposal, epsilon, square) if square > 0.0 else None
                if claim is None or claim.threshold - mean < CLOSEST:
                    continue
                taken = DEARER * claim.samples(mean, 1.0) if claim.room > 0.0 else 0.0
                taken += 2.0 * square / (delta * delta)
                if found is None or taken < found[0]:
                    found = (taken, SquareClaim(claim, square, mean))
        if best is not None and (found is None or found[0] >= best[0]):
            break
        best = found or best
    return None if best is None else best[1]


def _looks(
    sampler: Sampler, mechanism: SampledMechanism, moment: int
) -> Iterator[tuple[float, _core.AddedMean, tuple[float, ...]]]:
    """Yield, for one size of the shift after the other, samples of D and their mean for each λ of the first look."""
    for size in SIZES:
        samples = _core.AddedMean.of(mechanism.core, size)
        if samples is None:
            return
        tables: list[tuple[float, float, list[tuple[float, float]]]] = [(one, math.inf, []) for one in LOOKED]
        (sums,) = sampler.added_mean(samples, tables, sampler.stream("pilot", 1), moment=moment)
        yield size, samples, tuple(value / SHARD for _, value, _ in sums)


def _through(means: tuple[float, ...], exponent: float) -> float:
    """Return the value at λ of the quadratic through the means of the first look (Lagrange)."""
    total = 0.0
    for known, mean in zip(LOOKED, means, strict=True):
        rest = [one for one in LOOKED if one != known]
        total += mean * math.prod((exponent - one) / (known - one) for one in rest)
    return total

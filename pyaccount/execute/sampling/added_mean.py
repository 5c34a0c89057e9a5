"""Tests of added records by one mean, E D, bounded from above: how far ln f is from linear; see the core's `added_mean`.

**δ itself.** δ_add(ε) ≤ e^{factor + E D₁}: a claim δ₀ follows from E D₁ < ln δ₀ − factor. Bets against "E D₁ ≥ that" take as many
samples as the bound is loose, whatever δ₀ is, where plain samples take ln(1/q)/δ₀ at least. Where ln f is not nearly linear the
bound is above the claim: nothing is found.

**The second moment.** E V² ≤ e^{factor + E D₂} for samples V of δ from the shifted law: with any v above that, E D₂ < ln v −
factor proves E V² ≤ v, and then clipped samples prove the claim (see `betting_choice`). Here a bound that is a few times too
large costs samples, not the claim. Both tests are at q. If the claim is false, either E V² > v, and the first test accepts with
probability at most q; or E V² ≤ v, and the second one does. Which of both holds is no matter of chance: there is no q to split.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyaccount import _core
from pyaccount.execute.sampling.jobs import SHARD, LogSobolev

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyaccount.execute.sampling.shards import Sampler
    from pyaccount.plan.sampled import SampledMechanism

#: Sizes of the shift that are tried, each twice the one before, until the samples expected grow; and values of λ.
SIZES = tuple(2.0**k for k in range(12))
EXPONENTS = tuple(1.1**k for k in range(-20, 80))
#: The first look draws D for these λ: it is quadratic in λ.
LOOKED = (1.0, 4.0, 16.0)
#: How far below what is needed the mean must be, in nats, by a first look.
CLOSEST = 0.05
#: How far, in nats, v is above what it seems to be: more takes fewer samples of D, and more of V. A sample of D takes as long as
#: so many of V.
ABOVE, DEARER = (0.25, 0.5, 1.0, 1.5, 2.0, 2.5), 3.0


@dataclass(frozen=True, slots=True)
class MeanClaim:
    """What is bet against: the mean of D is at least the threshold; D is at most `most`."""

    proposal: LogSobolev
    threshold: float
    most: float
    #: ln of the factor by which e^{E D} bounds δ or the second moment, and the error of the mean.
    log_factor: float
    error: float

    @property
    def room(self) -> float:
        """How far D may be above the threshold."""
        return self.most - self.threshold

    def samples(self, mean: float, log_target: float) -> float:
        """Samples expected, D being near its mean, far below the largest value."""
        return log_target / math.log1p((self.threshold - mean) / self.room)


def mean_claim(mechanism: SampledMechanism, proposal: LogSobolev, epsilon: float, bound: float) -> MeanClaim | None:
    """Return the claim about D that implies that δ_add(ε), or the second moment, is below a bound.

    None where there is no such mechanism, or nothing left of δ.
    """
    found = _core.AddedMean.of(mechanism.core, proposal.size)
    return None if found is None else _claim(mechanism, found, proposal, epsilon, bound)


def _claim(
    mechanism: SampledMechanism, found: _core.AddedMean, proposal: LogSobolev, epsilon: float, bound: float
) -> MeanClaim | None:
    """The same, for samples of D that are at hand."""
    overstated = mechanism.overstated * math.exp(min(epsilon, 700.0))
    rest = bound - overstated
    if mechanism.curves or rest <= 0.0 or (overstated > 0.0 and proposal.moment > 1):
        return None
    log_factor, most, error = found.limits(proposal.exponent, proposal.moment, epsilon)
    log = math.log(rest)
    # A logarithm and three sums, each rounded by a unit of its terms.
    rounding = 1e-15 * (1.0 + abs(log) + abs(log_factor))
    return MeanClaim(proposal, log - log_factor - error - rounding, most, log_factor, error)


def choose_mean(
    sampler: Sampler, mechanism: SampledMechanism, epsilon: float, delta: float
) -> tuple[MeanClaim, float] | None:
    """Return the claim that is expected to take the fewest samples, and the mean of D expected; None where none seems to hold.

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
        # Larger shifts take more samples, or are farther from the claim, than the last one.
        if (best is not None and (found is None or found[0] >= best[0])) or (found is None and nearest < before):
            break
        best = found or best
    return None if best is None else best[1:]


@dataclass(frozen=True, slots=True)
class SquareClaim:
    """What is bet against to prove that E V² ≤ `square` for samples of δ that are shifted by `mean.proposal.size`."""

    mean: MeanClaim
    square: float
    #: The mean of D that is expected.
    expected: float


def choose_square(sampler: Sampler, mechanism: SampledMechanism, epsilon: float, delta: float) -> SquareClaim | None:
    """Return the claim about a second moment with which testing δ is expected to take the least; None where there is none.

    Clipped samples take about 2v/δ² times ln(1/q) where δ is far below the claim, as many as there are of D in units of ln(1/q)
    beside them. Raises `LimitError`.
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
    """For one size of the shift after the other: samples of D, and the mean of a shard for each λ of the first look."""
    for size in SIZES:
        samples = _core.AddedMean.of(mechanism.core, size)
        if samples is None:
            return
        tables: list[tuple[float, float, list[tuple[float, float]]]] = [(one, math.inf, []) for one in LOOKED]
        (sums,) = sampler.added_mean(samples, tables, sampler.stream("pilot", 1), moment=moment)
        yield size, samples, tuple(value / SHARD for _, value, _ in sums)


def _through(means: tuple[float, ...], exponent: float) -> float:
    """The quadratic in λ through the means of the first look (Lagrange)."""
    total = 0.0
    for place, mean in zip(LOOKED, means, strict=True):
        rest = [one for one in LOOKED if one != place]
        total += mean * math.prod((exponent - one) / (place - one) for one in rest)
    return total

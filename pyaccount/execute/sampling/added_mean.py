"""Tests of added records by one mean: δ_add(ε) ≤ e^{factor + E D}, D bounded from above; see the core's `added_mean`.

A claim δ₀ follows from E D < ln δ₀ − factor. Bets against "E D ≥ that" take as many samples as the bound is loose, whatever δ₀
is, where plain samples take ln(1/q)/δ₀ at least. Where ln f is not nearly linear the bound is above the claim: nothing is found.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyaccount import _core
from pyaccount.execute.sampling.jobs import SHARD, LogSobolev

if TYPE_CHECKING:
    from pyaccount.execute.sampling.shards import Sampler
    from pyaccount.plan.sampled import SampledMechanism

#: Sizes of the shift that are tried, each twice the one before, until the samples expected grow; and values of λ.
SIZES = tuple(2.0**k for k in range(12))
EXPONENTS = tuple(1.1**k for k in range(-20, 80))
#: The first look draws D for these λ: it is quadratic in λ.
LOOKED = (1.0, 4.0, 16.0)
#: How far below what is needed the mean must be, in nats, by a first look.
CLOSEST = 0.05


@dataclass(frozen=True, slots=True)
class MeanClaim:
    """What is bet against: the mean of D is at least the threshold; D is at most `most`."""

    proposal: LogSobolev
    threshold: float
    most: float
    #: ln of the factor by which e^{E D} bounds δ, and the error of the mean.
    log_factor: float
    error: float


def mean_claim(mechanism: SampledMechanism, proposal: LogSobolev, epsilon: float, delta: float) -> MeanClaim | None:
    """Return the claim about D that implies δ_add(ε) < δ; None where there is no such mechanism, or nothing left of δ."""
    found = _core.AddedMean.of(mechanism.core, proposal.size)
    return None if found is None else _claim(mechanism, found, proposal, epsilon, delta)


def _claim(
    mechanism: SampledMechanism, found: _core.AddedMean, proposal: LogSobolev, epsilon: float, delta: float
) -> MeanClaim | None:
    """The same, for samples of D that are at hand."""
    rest = delta - mechanism.overstated * math.exp(min(epsilon, 700.0))
    if mechanism.curves or rest <= 0.0:
        return None
    log_factor, most, error = found.limits(proposal.exponent, epsilon)
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
    for size in SIZES:
        samples = _core.AddedMean.of(mechanism.core, size)
        if samples is None:
            return None
        means = _looked(sampler, samples)
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
            loose = (claim.most - claim.threshold) / (claim.threshold - mean)
            if found is None or loose < found[0]:
                found = (loose, claim, mean)
        # Larger shifts take more samples, or are farther from the claim, than the last one.
        if (best is not None and (found is None or found[0] >= best[0])) or (found is None and nearest < before):
            break
        best = found or best
    return None if best is None else best[1:]


def _looked(sampler: Sampler, samples: _core.AddedMean) -> tuple[float, ...]:
    """The mean of D in a shard for each λ of the first look, from the same samples."""
    tables: list[tuple[float, float, list[tuple[float, float]]]] = [(one, math.inf, []) for one in LOOKED]
    (sums,) = sampler.added_mean(samples, tables, candidate=sampler.fresh(), count=1)
    return tuple(value / SHARD for _, value, _ in sums)


def _through(means: tuple[float, ...], exponent: float) -> float:
    """The quadratic in λ through the means of the first look (Lagrange)."""
    total = 0.0
    for place, mean in zip(LOOKED, means, strict=True):
        rest = [one for one in LOOKED if one != place]
        total += mean * math.prod((exponent - one) / (place - one) for one in rest)
    return total

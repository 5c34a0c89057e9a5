"""dp_accounting's `MixtureOfGaussiansDpEvent`, as the sampler that makes it.

The event is the pair Σ_j w_j N(s_j, σ²) against N(0, σ²), s_j ≥ 0, for a record that is added, removed or set to zero. Several
independent draws of a round have the law w_j = Bin(j; k, p) and s_j = j·s, which Poisson sampling with k draws per iteration has
too; so have Gaussian noise alone (one sensitivity) and one draw (k = 1). Other weights are the law of no sampler of a document
that adds a record's contribution as often as it is drawn, and are refused.

Weights are given as rounded numbers. They are taken for binomial if each is within `_SAME` of Bin(j; k, p), relative to it, where
kp is their mean. The rate of the document is then p(1 + η) with η > 2·`_SAME`, whose law is stochastically larger, so that the
document bounds the event: the ratio of both binomial probabilities grows by at least 1 + η from j − 1 to j. So it is at least
(1 + η)^½ from j on, and then so is the ratio of the probabilities of {≥ j}; or it is at most (1 + η)^−½ up to j − 1, and then so
is the ratio of those of {< j}. Stochastically larger sensitivities are never more private: both hockey-stick divergences are
suprema over half-lines {y > t} or {y ≤ t}, and Pr[N(s, σ²) > t] grows with s.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pyaccount.adapters.dp_accounting_mechanisms import field_of
from pyaccount.adapters.reading import BodyMapping, no_equivalent, real, wrong_type_error
from pyaccount.document.ranges import DRAWS_PER_ITERATION, NOISE_MULTIPLIER, SMALLEST_DELTA, Range
from pyaccount.errors import Path, quoted

#: How far weights may be from the binomial law, relative to it, and by how much its rate is increased for that.
_SAME, _MORE = 1e-11, 1e-10
_FROM_ZERO, _PROBABILITY = Range(0, 1e12), Range(0, 1)
_OTHER = (
    "no bound is implemented for a mixture that is not binomial: Poisson sampling of one or several draws has "
    "sensitivities 0, s, 2s, …, ks with binomial probabilities; describe the sampler that makes this mixture, or state its "
    "guarantees with `mechanism: {kind: stated}`"
)


def of_mixture(event: object, path: Path, count: int) -> list[BodyMapping]:
    """Return the body of `count` rounds with this mixture; none if no sensitivity is positive.

    Raises:
        DocumentError: The weights are not those of one Gaussian mechanism, or of Poisson sampling with one or several draws.
    """
    deviation = real(field_of(event, "standard_deviation", path), NOISE_MULTIPLIER, (*path, "standard_deviation"))
    weights = _law(event, path)
    largest = max(weights, default=0.0)
    if largest == 0.0:
        return []
    training: BodyMapping = {"iterations": count}
    if set(weights) == {largest}:
        return [{"training": training, "sampler": {"kind": "none"}, "noise": _noise(deviation, largest, path)}]
    draws, unit, law = _steps(weights, path)
    sampler: BodyMapping = {"kind": "poisson"} | ({"draws_per_iteration": draws} if draws > 1 else {})
    training |= {"sampling_probability": _rate(law, draws, path)}
    return [{"training": training, "sampler": sampler, "noise": _noise(deviation, unit, path)}]


def _law(event: object, path: Path) -> dict[float, float]:
    """Return the probability of each sensitivity, without those of probability 0."""
    lists = []
    for name, allowed in (("sensitivities", _FROM_ZERO), ("sampling_probs", _PROBABILITY)):
        values: Any = field_of(event, name, path)
        if isinstance(values, str | bytes) or not isinstance(values, Sequence):
            wrong_type_error(
                (*path, name), f"must be a list of numbers, not {quoted(values)}", quoted(values), "a list"
            )
        lists.append([real(value, allowed, (*path, name, index)) for index, value in enumerate(values)])
    sensitivities, probabilities = lists
    if len(sensitivities) != len(probabilities):
        message = (
            f"there are {len(sensitivities)} sensitivities and {len(probabilities)} probabilities: give one for each"
        )
        no_equivalent((*path, "sampling_probs"), message, value=len(probabilities), allowed=str(len(sensitivities)))
    total = math.fsum(probabilities)
    if not math.isclose(total, 1.0, rel_tol=1e-9):
        message = f"the probabilities add up to {total:.10g}, and must add up to 1"
        no_equivalent((*path, "sampling_probs"), message, value=total, allowed="1")
    weights: dict[float, float] = {}
    for sensitivity, probability in zip(sensitivities, probabilities, strict=True):
        if probability:
            weights[sensitivity] = weights.get(sensitivity, 0.0) + probability / total
    return weights


def _steps(weights: dict[float, float], path: Path) -> tuple[int, float, list[float]]:
    """Return k and the unit s of sensitivities that are multiples js, 0 ≤ j ≤ k, and the probability of each j."""
    unit = min(sensitivity for sensitivity in weights if sensitivity > 0.0)
    multiples = {sensitivity: round(sensitivity / unit) for sensitivity in weights}
    draws = max(multiples.values())
    even = all(math.isclose(one, j * unit, rel_tol=1e-15) for one, j in multiples.items())
    if not even or draws not in DRAWS_PER_ITERATION or len(set(multiples.values())) != draws + 1:
        no_equivalent((*path, "sensitivities"), _OTHER, value=str(sorted(weights))[:80])
    law = [0.0] * (draws + 1)
    for sensitivity, j in multiples.items():
        law[j] = weights[sensitivity]
    # The unit is rounded up to that of every multiple.
    return draws, max(sensitivity / j for sensitivity, j in multiples.items() if j), law


def _rate(law: list[float], draws: int, path: Path) -> float:
    """Return the probability of one draw. Raises `DocumentError` if the law is not binomial."""
    if draws == 1:
        return law[1]
    mean = math.fsum(j * probability for j, probability in enumerate(law)) / draws
    for j, probability in enumerate(law):
        exact = math.comb(draws, j) * mean**j * (1.0 - mean) ** (draws - j)
        if abs(probability - exact) > _SAME * exact and max(probability, exact) > SMALLEST_DELTA:
            no_equivalent((*path, "sampling_probs"), _OTHER, value=probability)
    return min(1.0, mean * (1.0 + _MORE))


def _noise(deviation: float, unit: float, path: Path) -> BodyMapping:
    """Return the noise multiplier of a unit of sensitivity, rounded down."""
    multiplier = deviation if unit == 1.0 else math.nextafter(deviation / unit, 0.0)
    return {"multiplier": real(multiplier, NOISE_MULTIPLIER, (*path, "standard_deviation"))}

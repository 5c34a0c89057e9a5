"""The proven points of a certificate, as a stated mechanism.

**Which points are proven.** A certificate states upper bounds on δ at its guarantee and at the points of its profile. Without
samples all of them are proven at once. If samples were drawn:

- The guarantee of a *deterministic* certificate is proven without them. That of a *verified* one holds as it is, since δ includes
  the probability that the test accepts a false claim. That of one by *confidence* fails with the total probability of its tests.
- The upper bound of each point of the profile is a statement of its own. It fails with `pointwise_failure_probability`, and, if
  the guarantee bounds it too, also when the tests fail, which is one event for all points. So m points hold *together* with
  probability at least 1 − (m·q + total): the union bound. Nothing is assumed of how the samples of different points depend on
  each other. `delta_estimate` and the standard error are estimates, and are not used; neither are lower bounds.

All of these points bound one profile, in both directions, so the lower convex hull in e^ε bounds it (`plan.mechanisms.stated`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from pyaccount.document.ranges import BASE_DELTA, EPSILON

if TYPE_CHECKING:
    from pyaccount.certificate.model import CertificateModel, DirectionResult
    from pyaccount.document.words import Adjacency

#: Which points of a certificate from samples are composed: those of its profile too, or its guarantee alone.
UsedPoints = Literal["profile", "guarantee"]
POINTS: tuple[UsedPoints, ...] = get_args(UsedPoints)


class ProvenPoints(NamedTuple):
    """Points (ε, δ) of one profile that all hold, except with the failure probability."""

    points: tuple[tuple[float, float], ...]
    failure_probability: float
    #: Whether a verified guarantee is among what they rest on.
    verified: bool

    def least_delta(self, steps: int) -> float:
        """Return the least δ of all points, for one step or two: no ε is known at a smaller δ. It is rounded to nearest.

        It is g(0), or g(g(0)), of `plan.mechanisms.groups_of_stated`.
        """
        least = min(delta for _, delta in self.points)
        if steps == 1:
            return least
        rising = (delta + math.exp(min(epsilon, 700.0)) * least for epsilon, delta in self.points)
        flat = (-math.expm1(-epsilon) + math.exp(-epsilon) * (delta + least) for epsilon, delta in self.points)
        return min(1.0, *rising, *flat)

    def mechanism(self, adjacency: Adjacency | None) -> dict[str, Any]:
        """Return the stated mechanism; `adjacency` is that of the points if the joint document has another one."""
        stated: dict[str, Any] = {
            "kind": "stated",
            "guarantees": [{"epsilon": epsilon, "delta": delta} for epsilon, delta in self.points],
        }
        if adjacency is not None:
            stated["adjacency"] = adjacency
        if self.failure_probability > 0.0:
            stated["failure_probability"] = self.failure_probability
        if self.verified:
            stated["verified"] = True
        return stated


def proven_points(data: CertificateModel, points: UsedPoints) -> ProvenPoints:
    """Return the guarantee of a certificate, and the upper bounds of its profile if they are asked for.

    The failure probability is that of all points together, rounded up.
    """
    guarantee, sampling = data.guarantee, data.evidence.sampling
    pairs = {(guarantee.epsilon, guarantee.delta)}
    if points == "guarantee":
        return ProvenPoints(_usable(pairs), guarantee.failure_probability, guarantee.kind == "verified")
    pairs.update((point.epsilon, point.delta) for point in data.profile)
    if sampling is None:
        pairs.update(_curve(data.directions.remove, data.directions.add))
        return ProvenPoints(_usable(pairs), guarantee.failure_probability, guarantee.kind == "verified")
    failures = [sampling.pointwise_failure_probability] * len(data.profile)
    if guarantee.kind != "deterministic" or sampling.profile_failure_probability is not None:
        failures.append(sampling.total_probability)
    total = min(1.0, math.nextafter(math.fsum(failures), math.inf)) if data.profile else guarantee.failure_probability
    return ProvenPoints(_usable(pairs), total, guarantee.kind == "verified" and not data.profile)


def _curve(remove: DirectionResult, add: DirectionResult) -> list[tuple[float, float]]:
    """Return the further points of a profile, for the larger direction; empty if the directions have other points."""
    one, other = remove.curve, add.curve
    if one is None or other is None or one.epsilon != other.epsilon:
        return []
    return [(epsilon, max(deltas)) for epsilon, *deltas in zip(one.epsilon, one.delta, other.delta, strict=True)]


def _usable(pairs: set[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    """Return the points that a document may state, in ascending order of ε. The first of several that say nothing remains."""
    stated = sorted(pair for pair in pairs if pair[0] in EPSILON and pair[1] in BASE_DELTA)
    informative = [pair for pair in stated if pair[1] < 1.0]
    return tuple(informative or stated[:1])

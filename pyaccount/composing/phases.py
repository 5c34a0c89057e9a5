"""The phases of a certificate or a document, as a joint document has them, and proven points as a stated mechanism.

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
from typing import Any, Literal, NamedTuple, cast, get_args

from pyaccount.composing.sources import Composable
from pyaccount.document.document import Document
from pyaccount.document.models import BODY_KEYS
from pyaccount.document.phases import with_own_noise
from pyaccount.document.ranges import BASE_DELTA, EPSILON, NAME_LENGTH
from pyaccount.document.tree import Parts
from pyaccount.document.words import TWO_STEPS, Adjacency
from pyaccount.errors import DocumentError, Problem
from pyaccount.records.certificate import CertificateModel, DirectionResult
from pyaccount.rounding import up

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


JointPhase = dict[str, Any]


class Aim(NamedTuple):
    """What a joint document is about, and which points of certificates from samples it uses."""

    adjacency: Adjacency
    group_size: int
    points: UsedPoints


class Taken(NamedTuple):
    """The phases of a source in a joint document, and the rules that they need, in words."""

    phases: list[JointPhase]
    rules: list[str]
    #: The least δ at which anything is known of it: 0 if its phases are composed.
    least_delta: float = 0.0


def taken_as(source: Composable, name: str, aim: Aim) -> Taken:
    """Return the phases of a source in a joint document: its own, or one mechanism of which its proven points are known.

    Raises `DocumentError` for what is composed neither exactly nor by a rule.
    """
    mine, said, rules, group = source.protected, f"“{name}”", [], aim.group_size
    if mine.group_size != group:
        rules.append(
            f"{said} protects up to {mine.group_size} {mine.unit}s together, and the joint guarantee is for "
            f"{'one' if group == 1 else f'up to {group}'}: a guarantee for more {mine.unit}s covers fewer."
        )
    if source.document is not None and mine.adjacency == aim.adjacency:
        return Taken(_own_phases(source.document, name), rules)
    if (problem := _refusal(source, aim)) is not None:
        raise DocumentError([problem])
    assert source.data is not None
    other = cast("Adjacency", mine.adjacency) if mine.adjacency != aim.adjacency else None
    if other is not None:
        rules.append(
            f"{said} is certified under {other}, and is composed by the points of its profile. {TWO_STEPS[other]}"
        )
    proven = proven_points(source.data, aim.points)
    if source.data.evidence.sampling is not None:
        rules.append(_sampled_rule(proven, said))
    return Taken(
        [{"name": shortened(name), "mechanism": proven.mechanism(other)}],
        rules,
        proven.least_delta(1 if other is None else 2),
    )


def _refusal(source: Composable, aim: Aim) -> Problem | None:
    """Return why a source is not composed by the points of its profile; None if it is."""
    mine, slug = source.protected, "no-valid-bound"
    if source.data is None:
        message = (
            f"no bound is implemented for {aim.adjacency} from the document of a run under {mine.adjacency}: certify it first, "
            "and compose its certificate, whose profile is converted"
        )
        return source.problem(slug, ("privacy", "adjacency"), message, mine.adjacency)
    if mine.unit == "user":
        message = (
            "no bound is implemented for a guarantee of users by the points of its profile: a stated mechanism is about records. "
            "Certify one document with the phases of all runs"
        )
        return source.problem(slug, ("privacy", "unit"), message, mine.unit)
    if aim.group_size > 1:
        message = (
            f"no bound is implemented for groups of {aim.group_size} records by the points of a profile, which are for up to "
            f"{mine.group_size} together: a stated mechanism is about one record. Certify one of the runs for single records"
        )
        return source.problem(slug, ("privacy", "group_size"), message, mine.group_size)
    return None


def _sampled_rule(proven: ProvenPoints, said: str) -> str:
    """Return the rule by which a certificate from samples is composed."""
    count = len(proven.points)
    what = "its guarantee" if count == 1 else f"{count} points of its profile"
    how = "the point holds" if count == 1 else "all of them hold"
    if proven.failure_probability > 0.0:
        chance = f"{how} with probability at least 1 − {up(proven.failure_probability)}, and the joint guarantee fails if not"
    elif proven.verified:
        chance = f"{how} for a run that takes place only because its test accepted"
    else:
        chance = f"{how} without samples"
    return f"{said} comes from samples, so it is composed by {what}: {chance}."


def _own_phases(document: Document, name: str) -> list[JointPhase]:
    """Return the phases of a document without blanks, or its only body as one phase, named after the document.

    Each phase has its own noise: a factor of all phases of the document is multiplied in.
    """
    mapping = document.to_mapping()
    if "phases" not in mapping:
        return [{"name": shortened(name), **{key: mapping[key] for key in BODY_KEYS if key in mapping}}]
    phases = []
    for index, (phase, node) in enumerate(zip(mapping["phases"], document.phases, strict=True)):
        own = with_own_noise(phase, node)
        called = shortened(f"{name}: {own.pop('name', f'phase {index + 1}')}")
        phases.append({"name": called, **own})
    return phases


def part_of(name: str, phases: list[JointPhase], sources: list[Composable]) -> JointPhase:
    """Return a part of the data with these phases. Raises `DocumentError` for a part that has disjoint parts itself."""
    problems = [
        source.problem(
            "no-valid-bound",
            ("phases",),
            f"no bound is implemented for disjoint parts inside of the part {name!r}: compose certificates of the smaller "
            "parts, each as a part of its own",
        )
        for source in sources
        if source.document is not None and any(isinstance(one, Parts) for one in source.document.phases)
    ]
    if problems:
        raise DocumentError(problems)
    if len(phases) == 1:
        return {**phases[0], "name": name}
    return {"name": name, "phases": phases}


def shortened(name: str) -> str:
    """Return a name that a document may have."""
    longest = int(NAME_LENGTH.maximum)
    return name if len(name) <= longest else f"{name[: longest - 1]}…"


def numbered(names: list[str]) -> list[str]:
    """Return names of which no two are equal: the second of two equal ones ends in (2)."""
    taken: set[str] = set()
    different = []
    for name in names:
        other, count = name, 1
        while other in taken:
            count += 1
            other = f"{name} ({count})"
        taken.add(other)
        different.append(other)
    return different

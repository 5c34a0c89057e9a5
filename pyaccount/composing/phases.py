"""The phases of a certificate or a document, as a joint document has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

from pyaccount.composing.points import ProvenPoints, UsedPoints, proven_points
from pyaccount.document.models import BODY_KEYS
from pyaccount.document.phases import with_own_noise
from pyaccount.document.ranges import NAME_LENGTH
from pyaccount.document.tree import Parts
from pyaccount.document.words import TWO_STEPS, Adjacency
from pyaccount.errors import DocumentError
from pyaccount.rounding import up

if TYPE_CHECKING:
    from pyaccount.composing.sources import Composable
    from pyaccount.document.document import Document
    from pyaccount.errors import Problem

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

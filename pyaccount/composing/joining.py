"""Makes the joint document: everything that is run on one data set, as phases, with one adjacency, group and target.

What several guarantees have in common determines whether a joint one exists, and for which neighbours.

- **Units.** Protecting records does not imply protecting users, nor the reverse: removing one record of a user does not remove
  the user.
- **Groups.** A guarantee for up to k records covers fewer, and so the joint one is for the smallest group. A document without
  samples is composed anew for that group.
- **Adjacencies.** Neither add-remove nor zero-out implies the other, and replace-one implies neither. Each of them implies
  replace-one by two steps (`plan.mechanisms.stated` has the proof), so a joint guarantee under replace-one exists for all.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast, get_args

from pyaccount.certificate.certificate import Certificate
from pyaccount.composing.phases import (
    POINTS,
    Aim,
    JointPhase,
    Taken,
    UsedPoints,
    numbered,
    part_of,
    shortened,
    taken_as,
)
from pyaccount.composing.sources import Composable, CompositionSource, read
from pyaccount.document.document import Document
from pyaccount.document.loading import load, placed
from pyaccount.document.words import Adjacency
from pyaccount.errors import DocumentError, DomainError, Problem
from pyaccount.reading.sources import Folders, Handed
from pyaccount.rounding import down, shortest

#: The adjacency that the others imply by two steps.
REPLACED: Adjacency = "replace-one"


def check_apart(sources: list[Composable], *, repeat: bool) -> None:
    """Raise `DocumentError` if two sources are the same document: nobody knows whether it was run twice.

    With `repeat` it was: each source stands for a run of its own. Certificates of one document are the same guarantee, even if
    they were issued twice; a joint certificate stands for those that it was composed from.
    """
    if repeat:
        return
    first: dict[str, Composable] = {}
    problems: list[Problem] = []
    for source in sources:
        for entry in source.entries:
            sha256 = entry["document_sha256"]
            if sha256 not in first:
                first[sha256] = source
                continue
            other = first[sha256].label
            message = (
                f"the document “{entry['name']}” is composed twice: it is in {other} too. A document describes one run, so "
                "either one of the two is too many, or it was run twice: then say so with `repeat`, or certify it "
                "with `count: 2`"
            )
            problems.append(source.problem("composed-twice", ("document_sha256",), message, sha256))
    if problems:
        raise DocumentError(problems)


def _check_units(sources: list[Composable]) -> None:
    """Raise `DocumentError` if some sources protect records and some protect users."""
    first = sources[0]
    problems = [
        source.problem(
            "no-valid-bound",
            ("privacy", "unit"),
            f"no bound is implemented for records and users together: this protects {source.protected.unit}s, and {first.label} "
            f"{first.protected.unit}s, and neither implies the other. Certify both for the same unit",
            source.protected.unit,
        )
        for source in sources
        if source.protected.unit != first.protected.unit
    ]
    if problems:
        raise DocumentError(problems)


def group_of(sources: list[Composable]) -> int:
    """Return the number of records that the joint guarantee protects together: the smallest of all."""
    return min(source.protected.group_size for source in sources)


def _adjacency_of(sources: list[Composable], wanted: str | None) -> Adjacency:
    """Return the adjacency of the joint guarantee: the common one, or replace-one, which the others imply.

    Raises `DomainError` for a word that is no adjacency, and `DocumentError` for an adjacency that some source does not imply.
    """
    allowed = get_args(Adjacency)
    if wanted is not None and wanted not in allowed:
        raise DomainError(f"adjacency = {wanted!r} is outside its domain: {', '.join(allowed)}")
    stated = {source.protected.adjacency for source in sources}
    target = wanted or (next(iter(stated)) if len(stated) == 1 else REPLACED if REPLACED in stated else None)
    if target == REPLACED or stated == {target}:
        return cast("Adjacency", target)
    first = sources[0]
    other = target or first.protected.adjacency
    who = "asked for" if target is not None else f"that of {first.label}"
    problems = [
        source.problem(
            "no-valid-bound",
            ("privacy", "adjacency"),
            f"no bound is implemented for {other}, {who}, from a guarantee under {source.protected.adjacency}: no adjacency "
            "implies another, except that each implies replace-one by two steps. Certify all under one adjacency, or ask for "
            "replace-one with `adjacency`",
            source.protected.adjacency,
        )
        for source in sources
        if source.protected.adjacency != other
    ]
    raise DocumentError(problems)


#: What a part is made from: one source, or several that are run on the same part.
PartSources = CompositionSource | Sequence[CompositionSource]


@dataclass(frozen=True, slots=True)
class Joint:
    """A joint document, and in words each rule by which something is not composed exactly as it was certified."""

    document: Document
    rules: tuple[str, ...]


def joint_document(  # noqa: PLR0913 - what is composed, and how
    sources: Iterable[CompositionSource],
    *,
    parts: Mapping[str, PartSources] | None = None,
    names: Sequence[str] | None = None,
    name: str | None = None,
    epsilon: float | str | None = None,
    delta: float | str | None = None,
    adjacency: str | None = None,
    repeat: bool = False,
    points: UsedPoints = "profile",
) -> Document:
    """Return the joint document of certificates and documents on the same data; nothing is computed.

    The arguments and errors are those of `pyaccount.compose`, without those of the computation.
    """
    return joint(
        sources,
        parts=parts,
        names=names,
        name=name,
        epsilon=epsilon,
        delta=delta,
        adjacency=adjacency,
        repeat=repeat,
        points=points,
    ).document


def joint(  # noqa: PLR0913 - as joint_document
    sources: Iterable[CompositionSource],
    *,
    parts: Mapping[str, PartSources] | None = None,
    names: Sequence[str] | None = None,
    name: str | None = None,
    epsilon: float | str | None = None,
    delta: float | str | None = None,
    adjacency: str | None = None,
    repeat: bool = False,
    points: UsedPoints = "profile",
    folders: Folders = (),
) -> Joint:
    """Return the joint document of certificates and documents, with the rules that were used. As `joint_document`.

    Files that they name lie beside them, or in one of `folders`.
    """
    if points not in POINTS:
        raise DomainError(f"points = {points!r} is outside its domain: {' or '.join(POINTS)}")
    whole = [read(source, folders) for source in _listed(sources)]
    in_parts = {part: [read(source, folders) for source in _of_part(given)] for part, given in (parts or {}).items()}
    everything = [*whole, *(source for there in in_parts.values() for source in there)]
    if not everything:
        raise DomainError("sources is a list of certificates, of at least one: there is nothing to compose")
    if len(in_parts) == 1:
        raise DomainError(f"parts = {[*in_parts]} is outside its domain: a data set has at least two parts")
    if names is not None and len(names) != len(whole):
        raise DomainError(f"names has {len(names)} names, but there are {len(whole)} sources")
    check_apart(everything, repeat=repeat)
    _check_units(everything)
    target, group = _adjacency_of(everything, adjacency), group_of(everything)
    labels = numbered([*(names or [one.name for one in whole]), *(one.name for one in everything[len(whole) :])])
    aim = Aim(target, group, points)
    taken = {id(source): taken_as(source, label, aim) for source, label in zip(everything, labels, strict=True)}

    def phases_of(sources: list[Composable]) -> list[JointPhase]:
        return [phase for source in sources for phase in taken[id(source)].phases]

    phases = phases_of(whole)
    if in_parts:
        parallel = [part_of(part, phases_of(there), there) for part, there in in_parts.items()]
        phases.append({"name": "disjoint parts", "parallel": parallel})
    mapping: dict[str, Any] = {
        "pyaccount": 1,
        "name": shortened(name if name is not None else _joint_name(labels)),
        "privacy": _privacy(everything, target, group, epsilon, delta),
        **_accounting(everything),
        "composed_from": [entry for source in everything for entry in source.entries],
        "phases": phases,
    }
    where = _where(everything)
    document = load(mapping) if where is None else placed(mapping, str(where[0] / "document"), where[1])
    of_parts = [[taken[id(source)] for source in there] for there in in_parts.values()]
    _check_delta(document, [taken[id(source)] for source in whole], of_parts)
    rules = dict.fromkeys(rule for one in taken.values() for rule in one.rules)
    return Joint(document, tuple(rules))


def _listed(sources: Iterable[CompositionSource]) -> list[CompositionSource]:
    if isinstance(sources, str | bytes | os.PathLike | Mapping | Handed | Certificate | Document) or not isinstance(
        sources, Iterable
    ):
        raise TypeError(
            f"sources is a list of certificates, not one {type(sources).__name__}: compose([certificate, …])"
        )
    return list(sources)


def _of_part(given: PartSources) -> list[CompositionSource]:
    one = isinstance(given, str | os.PathLike | Mapping | Handed | Certificate | Document)
    return [cast("CompositionSource", given)] if one else list(cast("Sequence[CompositionSource]", given))


def _joint_name(labels: list[str]) -> str:
    """Return the name of a joint document, which its certificate's sentence contains, and so the main assumption too."""
    if len(labels) == 1:
        return labels[0]
    together = f"{', '.join(labels[:-1])} and {labels[-1]}"
    suffix = " together, all fixed beforehand"
    named = f"{together}{suffix}"
    return named if named == shortened(named) else f"{len(labels)} runs{suffix}"


def _privacy(
    sources: list[Composable],
    adjacency: Adjacency,
    group: int,
    epsilon: float | str | None,
    delta: float | str | None,
) -> dict[str, Any]:
    """Return the section of the joint document: ε is the blank unless it is given, at a given δ or the common one."""
    privacy: dict[str, Any] = {"adjacency": adjacency}
    if group != 1:
        privacy["group_size"] = group
    if delta is None and epsilon is not None and epsilon != "solve":
        delta = "solve"
    elif delta is None:
        delta = _common_delta(sources)
    return {**privacy, "epsilon": "solve" if epsilon is None else epsilon, "delta": delta}


def _common_delta(sources: list[Composable]) -> float:
    """Return the δ that all sources have. Raises `DomainError` if they have several, or none."""
    stated = {source.label: source.delta for source in sources}
    common = set(stated.values())
    if len(common) == 1 and (delta := common.pop()) is not None:
        return delta
    shown = ", ".join(
        f"{label} has {'none' if value is None else f'δ = {shortest(value)}'}" for label, value in stated.items()
    )
    raise DomainError(
        f"`delta` is not given, and the sources have no common one: {shown}. Give the δ of the joint guarantee"
    )


def _check_delta(document: Document, whole: list[Taken], parts: list[list[Taken]]) -> None:
    """Raise `DocumentError` if no ε is known at δ, since the points of certificates do not reach so far down.

    With the probability δ_i, the worst mechanism with known points reveals everything, independently of the others.
    """
    delta = document.privacy.delta
    if delta == "solve":
        return
    worst = max((_least_delta(part) for part in parts), default=0.0)
    least = 1.0 - (1.0 - _least_delta(whole)) * (1.0 - worst)
    # A few roundings refuse nothing that the computation may find.
    if least <= delta * (1.0 + 1e-9):
        return
    message = (
        f"no ε is known at δ = {shortest(delta)}: of what is composed by points, only ε at larger δ are known, and together "
        f'these points have a δ of at least {down(least)}. Give a larger `delta`, use the profiles too (points="profile"), '
        "or certify the runs with larger values of ε in accounting.profile"
    )
    raise DocumentError([document.problem("target-infeasible", ("privacy", "delta"), message)])


def _least_delta(taken: list[Taken]) -> float:
    """Return the least δ at which an ε is known of several sources together."""
    return 1.0 - math.prod(1.0 - min(1.0, one.least_delta) for one in taken)


def _accounting(sources: list[Composable]) -> dict[str, Any]:
    """Return the section with the smallest tolerance that a document states; empty if none states one."""
    documents = [source.document for source in sources if source.document is not None]
    stated = [document.accounting.tolerance for document in documents if document.accounting.tolerance is not None]
    return {"accounting": {"tolerance": min(stated)}} if stated else {}


def _where(sources: list[Composable]) -> tuple[Path, tuple[str, ...]] | None:
    """Return the folder of the files that the documents name, and the further ones in which they may lie; None if they name none.

    Raises `DocumentError` if these differ, since a document looks for its files in one folder, and in the same other ones.
    """
    named: dict[tuple[Path, tuple[str, ...]], Composable] = {}
    for source in sources:
        document = source.document
        if document is not None and any(node.files() for node in document.every_node()):
            folder = Path() if document.file is None else Path(document.file).parent
            named.setdefault((Path(os.path.realpath(folder)), document.folders), source)
    if len(named) > 1:
        folders = " and ".join(
            f"of {source.label} in {', '.join(map(str, (folder, *further)))}"
            for (folder, further), source in named.items()
        )
        last = [*named.values()][-1]
        message = (
            f"the files that the documents name are in several folders ({folders}), and one document looks for its files in one "
            "folder: put the files and certificates into one folder, with different names"
        )
        raise DocumentError([last.problem("outside-folder", ("document",), message)])
    return next(iter(named), None)

"""What several guarantees have in common: whether a joint one exists, and for which neighbours.

- **Units.** Protecting records does not imply protecting users, nor the reverse: removing one record of a user does not remove
  the user.
- **Groups.** A guarantee for up to k records covers fewer, and so the joint one is for the smallest group. A document without
  samples is composed anew for that group.
- **Adjacencies.** Neither add-remove nor zero-out implies the other, and replace-one implies neither. Each of them implies
  replace-one by two steps (`plan.mechanisms.stated` has the proof), so a joint guarantee under replace-one exists for all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast, get_args

from pyaccount.document.words import Adjacency
from pyaccount.errors import DocumentError, DomainError, Problem

if TYPE_CHECKING:
    from pyaccount.composing.sources import Composable

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


def check_units(sources: list[Composable]) -> None:
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


def adjacency_of(sources: list[Composable], wanted: str | None) -> Adjacency:
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

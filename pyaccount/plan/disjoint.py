"""Disjoint parts of the data: the worst of them, each composed with everything else, not their sum.

Every record belongs to exactly one part of a phase, by a rule that depends on this record alone. Let P_1, …, P_m be what is
run on the parts, and R everything else in the document.

- **One record** that is added, removed, or set to zero, in part j: given what was released before, the laws of what is run on
  the other parts are the same for both data sets, since it does not use the record. So the pair of the whole document is
  dominated by that of R composed with P_j, also if the parts and the later phases look at what the others released
  (Zhu, Dong & Wang 2022, arXiv:2106.08567, Theorem 10). The profile is the maximum over j of these compositions. Whether two
  kinds of records exist is public, so an attack is about one kind. A record that is set to zero stays where it is.
- **The maximum is taken last.** The maximum of the profiles of the P_j, composed with R or with itself, bounds the same, but
  loosely: it would be attained by a record that is in the worst part for every ε at once.
- **A group of k records** may be spread: for k_1 + … + k_m = k the pair is dominated by the composition of R for k records with
  P_i for k_i records, each for k_i records that are all added, all removed, or all set to zero.
- **A record that is replaced** by one of the same part: P_j under replace-one. By one of another part: P_a from which a record is
  removed, and P_b to which one is added, both under add-remove, with R under replace-one. The other order is the reversed pair,
  which is the other direction of the same kind.
- **Several such phases**, whose rules may differ: every combination.

A lower end is the maximum of those of the kinds, each of which is about two data sets that exist.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple

from pyaccount.document.tree import MechanismRelease, Node, Parts, TrainingNode
from pyaccount.errors import DocumentError, Problem
from pyaccount.plan.common import number, refused_groups
from pyaccount.plan.protection import Case, Protection
from pyaccount.plan.rounds import Alternative, DirectedBounds, in_turn

#: The most kinds of records of a document.
MOST_KINDS = 256
#: The most equal parts that are named one by one.
MOST_NAMES = 3


class _Share(NamedTuple):
    """What happens in one part: `records` records change there, as the adjacency says, or one leaves it or joins it."""

    part: int
    records: int
    change: Literal["stays", "leaves", "joins"] = "stays"


class _RecordKind(NamedTuple):
    """Where the protected records are: the parts in which something changes."""

    name: str
    shares: tuple[_Share, ...]


def _record_kinds(case: Case) -> tuple[_RecordKind, ...]:
    """Return where the protected records can be, at most one kind more than `MOST_KINDS`. Equal parts are one."""
    classes = _equal_parts(case.node)
    kinds: list[_RecordKind] = []
    for kind in _kinds(case, classes):
        kinds.append(kind)
        if len(kinds) > MOST_KINDS:
            break
    return tuple(kinds)


def _kinds(case: Case, classes: Sequence[Sequence[int]]) -> Iterator[_RecordKind]:
    group = number(case.asked.privacy.group_size)
    names = [_called(case.node, parts) for parts in classes]
    if group == 1:
        for name, parts in zip(names, classes, strict=True):
            yield _RecordKind(name, (_Share(parts[0], 1),))
        if case.asked.privacy.adjacency != "replace-one":
            return
        for index, parts in enumerate(classes):
            for other in range(index, len(classes)):
                second = classes[other][1:] if other == index else classes[other]
                if second:
                    name = f"{names[index]}, replaced by one of {names[other] if other != index else 'an equal part'}"
                    yield _RecordKind(name, (_Share(parts[0], 1, "leaves"), _Share(second[0], 1, "joins")))
        return
    for spread in _spreads(group, [len(parts) for parts in classes]):
        shares = [
            (_Share(parts[place], records), name)
            for parts, name, counts in zip(classes, names, spread, strict=True)
            for place, records in enumerate(counts)
        ]
        name = ", ".join(f"{share.records} in {name}" for share, name in shares)
        yield _RecordKind(name, tuple(share for share, _ in shares))


def _spreads(records: int, sizes: Sequence[int]) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Yield the ways to spread records over classes of equal parts: for each class the counts of its parts, decreasing."""
    if not sizes:
        if records == 0:
            yield ()
        return
    for here in range(records, -1, -1):
        if here < records and len(sizes) == 1:
            return
        for counts in _partitions(here, sizes[0], here):
            for rest in _spreads(records - here, sizes[1:]):
                yield (counts, *rest)


def _partitions(records: int, parts: int, most: int) -> Iterator[tuple[int, ...]]:
    """Yield decreasing positive counts with this sum, at most `parts` of them, each at most `most`."""
    if records == 0:
        yield ()
        return
    if parts == 0:
        return
    for first in range(min(records, most), 0, -1):
        for rest in _partitions(records - first, parts - 1, first):
            yield (first, *rest)


def _equal_parts(node: Node) -> list[list[int]]:
    """Return the indices of the parts, those that differ only in their names together."""
    classes: dict[int, list[int]] = {}
    plain = [part.nameless() for part in node.inner]
    for index, part in enumerate(plain):
        first = next(other for other in range(index + 1) if plain[other] == part)
        classes.setdefault(first, []).append(index)
    return list(classes.values())


def part_name(node: Node, index: int) -> str:
    """Return the name of a part in words."""
    return node.inner[index].name or f"part {index + 1}"


def _called(node: Node, parts: Sequence[int]) -> str:
    if len(parts) > MOST_NAMES:
        return f"{part_name(node, parts[0])} or {len(parts) - 1} equal parts"
    return " or ".join(part_name(node, part) for part in parts)


def bounds_by_kind(case: Case, of_part: Callable[[int, Protection, bool], DirectedBounds]) -> tuple[Alternative, ...]:
    """Return the rounds of all runs of a phase with disjoint parts, for each kind of record.

    Args:
        case: The phase, with a number of records in the group that is protected.
        of_part: Returns the rounds of a part, given its index, what is asked about what changes in it, and whether a
            record leaves or joins it.
    """
    if problems := kinds_refusals(case.asked):
        raise DocumentError(problems)
    found = []
    for kind in _record_kinds(case):
        changed = []
        for share in kind.shares:
            if share.change == "stays":
                asked = case.asked.protecting(case.asked.privacy.adjacency, share.records)
                changed.append(of_part(share.part, asked, False))
                continue
            one = of_part(share.part, case.asked.protecting("add-remove", 1), True)
            changed.append(one if share.change == "leaves" else {"remove": one["add"], "add": one["remove"]})
        found.append(Alternative(kind.name, in_turn(changed)))
    return tuple(found)


def kinds_refusals(asked: Protection) -> list[Problem]:
    """Refuse documents with too many kinds of records; empty while the size of the group is the blank."""
    phases = [phase for phase in asked.phases if isinstance(phase, Parts)]
    if not phases or asked.privacy.group_size == "solve":
        return []
    if math.prod(len(_record_kinds(Case(asked, phase))) for phase in phases) <= MOST_KINDS:
        return []
    message = (
        f"more than {MOST_KINDS} compositions would be compared, one for every way in which the protected records can be in the "
        "parts: give the smaller parts the noise of one of them, since equal parts count once, or certify one document for each "
        "part, with everything else, and state the largest guarantee"
    )
    path = phases[-1].at("parallel")
    return [asked.refusal(path, message, allowed=f"at most {MOST_KINDS} combinations")]


def crossing_refusals(case: Case) -> list[Problem]:
    """Refuse what is not covered if a record may be replaced by one of another part; empty for other adjacencies."""
    if case.asked.privacy.adjacency != "replace-one":
        return []
    problems = refused_groups(
        case.asked,
        "no bound is implemented for groups of records that are replaced by records of other parts: use add-remove, where 2k "
        "records cover k that are replaced",
    )
    if problems:
        return problems
    for one in case.node.every():
        if isinstance(one, MechanismRelease):
            message = (
                "under replace-one this states what the mechanism reveals if a record is replaced by one of the same part, but a "
                "record may also leave the part, or join it: use add-remove, where 2 records cover one that is replaced, or "
                "zero-out"
            )
            path, allowed = one.at("mechanism"), "training, sampler and noise; or another adjacency"
        elif isinstance(one, TrainingNode) and one.sampler.needs_size:
            message = (
                "under replace-one a record may be replaced by one of another part, so the number of records in a part is not "
                "fixed, which this sampler's bound needs: use add-remove or zero-out, or a sampler that draws each record "
                "independently"
            )
            path, allowed = one.at("sampler", "kind"), "poisson or none; or another adjacency"
        else:
            continue
        problems.append(case.asked.refusal(path, message, allowed=allowed))
    return problems

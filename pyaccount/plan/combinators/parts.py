"""Phases on disjoint parts of the data, and the phases of one part, run one after the other (theorems: `plan.disjoint`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from pyaccount.document.tree import Node, Parts, Sequence
from pyaccount.document.words import Assumed
from pyaccount.errors import Path, Problem
from pyaccount.plan.common import inner_refusals, joined
from pyaccount.plan.disjoint import bounds_by_kind, part_name
from pyaccount.plan.protection import Protection
from pyaccount.plan.rounds import Alternative, DirectedBounds, in_turn, repeated, worst_of
from pyaccount.plan.theorem import CombinedTheorem, Reduction, Theorem, matched

PARTITION = Assumed(
    "Each record belongs to exactly one part, by a rule that depends on this record alone and was fixed without looking at the "
    "data: the parts are neither equal folds of a shuffled data set nor clusters that were learnt from it. What is run on a part "
    "uses the records of this part and what was released before, nothing else.",
    "Each record has one part, by a rule fixed without looking at other records.",
)
STAYS = Assumed(
    "A record whose contribution is replaced by zero stays in its part.",
    "A record that is replaced by zero stays in its part.",
)
SPREAD = "A group of records may be spread over several parts: the worst way to spread it counts."
MOVED = (
    "A record may be replaced by one of another part: a record then leaves the one and joins the other, under add-remove. So how "
    "many records a part has is not public, and no constant of a part may follow from it."
)
#: What a reader should know if several phases have parts.
COMBINED = "Parts of different phases combine in any way: a record may be in any part of each phase, and the worst case counts."


#: The way forward for a phase that is sampled, inside of a part and beside parts.
ONE_EACH = "certify one document for each part, with everything else; the guarantee is the largest of them"
OF_A_PART = f"not implemented inside of disjoint parts: {ONE_EACH}"
USERS = f"no bound is implemented for users whose records are in parts: {ONE_EACH}"


@dataclass(frozen=True, repr=False)
class PartsTheorem(CombinedTheorem):
    """Disjoint parts; under replace-one `crossing` has the theorem of each part if a record leaves it or joins it."""

    node: Parts

    of_kinds: ClassVar[bool] = True

    crossing: tuple[Theorem, ...] = ()

    def on(self, node: Node, asked: Protection | None = None) -> Self:
        """Return the theorem for another node of the same shape, which may lack some of the parts."""
        moved = None if asked is None else asked.protecting("add-remove", 1)
        return replace(super().on(node, asked), crossing=matched(self.crossing, node, moved))

    def on_whole_parts(self) -> Iterator[Theorem]:
        """Yield what is run on each part."""
        for one in self.inner:
            yield from one.on_whole_parts()

    def without(self, path: Path) -> Self | None:
        """Return the theorem of the other parts; None if there is none."""
        left = tuple(part for part in self.node.inner if not part.contains(path))
        return self.on(replace(self.node, inner=left)) if left else None

    @property
    def gaussian(self) -> bool:
        """Whether the rounds of all parts are Gaussian mechanisms."""
        return all(one.gaussian for one in self.inner)

    def words(self) -> Reduction:
        """Return the theorems of the parts, and that of the partition, as one."""
        parts = {part_name(self.node, index): one.words() for index, one in enumerate(self.inner)}
        privacy = self.asked.privacy
        several = sum(isinstance(one, Parts) for one in self.asked.phases) > 1
        remarks = [
            MOVED if self.crossing else SPREAD if privacy.group_size != 1 else None,
            COMBINED if several else None,
            *(part.remark for part in parts.values()),
        ]
        return Reduction(
            path=self.node.path,
            subject=f"disjoint parts of the data: {'; '.join(f'{name}: {part.subject}' for name, part in parts.items())}",
            theorem="composition of everything else with each part, the worst of which counts",
            source=joined(
                [
                    *(part.source for part in parts.values()),
                    "disjoint parts: McSherry 2009 (parallel composition), for profiles in docs/composition.md",
                ]
            ),
            pair="; or ".join(f"{name}: {part.rounds} × {part.pair}" for name, part in parts.items()),
            rounds=str(self.node.count),
            tight=all(part.tight for part in parts.values()),
            remark=" ".join(dict.fromkeys(filter(None, remarks))) or None,
            assumed=(
                *_of_parts(parts),
                PARTITION,
                *((STAYS,) if privacy.adjacency == "zero-out" else ()),
            ),
            lower_end="the two data sets of the rounds of each part"
            if any(part.lower_end for part in parts.values())
            else None,
        )

    def alternatives(self) -> tuple[Alternative, ...]:
        """Return all runs of each kind of record."""

        def of_part(index: int, asked: Protection, crossing: bool) -> DirectedBounds:
            one = (self.crossing if crossing else self.inner)[index]
            return repeated(one.on(one.node, asked).bounds(), self.node.count)

        return bounds_by_kind(self, of_part)

    def bounds(self) -> DirectedBounds:
        """Return all runs of the worst kind of record."""
        return worst_of([one.bounds for one in self.alternatives()])

    def public(self) -> DirectedBounds:
        """Return all runs of the worst kind of record, with public participations."""

        def of_part(index: int, asked: Protection, _: bool) -> DirectedBounds:
            one = self.inner[index]
            return repeated(one.on(one.node, asked).public(), self.node.count)

        return worst_of([one.bounds for one in bounds_by_kind(self, of_part)])

    def refusals(self) -> list[Problem]:
        """Refuse what the parts refuse, phases that are analysed by drawing samples, and users."""
        users = [
            self.asked.refusal(phase.at("sampler", "kind"), USERS) for phase in self.node.runs() if phase.protects_users
        ]
        if users:
            return users
        problems = inner_refusals(self.inner, OF_A_PART)
        problems += [problem for one in self.crossing for problem in one.refusals()]
        return list({(problem.path, problem.message): problem for problem in problems}.values())


class SequenceTheorem(CombinedTheorem):
    """The phases of one part, run one after the other."""

    node: Sequence

    def on_whole_parts(self) -> Iterator[Theorem]:
        """Yield what is run on whole parts inside."""
        for one in self.inner:
            yield from one.on_whole_parts()

    @property
    def gaussian(self) -> bool:
        """Whether the rounds of all phases are Gaussian mechanisms."""
        return all(one.gaussian for one in self.inner)

    def words(self) -> Reduction:
        """Return the theorems of the phases as one."""
        parts = [one.words() for one in self.inner]
        return Reduction(
            path=self.node.path,
            subject=", then ".join(part.subject for part in parts),
            theorem="composition of the phases",
            source=joined([part.source for part in parts]),
            pair=f"({', and '.join(f'{part.rounds} × {part.pair}' for part in parts)})",
            rounds=str(self.node.count),
            tight=all(part.tight for part in parts),
            remark=" ".join(dict.fromkeys(filter(None, (part.remark for part in parts)))) or None,
            assumed=tuple(dict.fromkeys(text for part in parts for text in part.assumed)),
            lower_end="the two data sets of each phase" if any(part.lower_end for part in parts) else None,
        )

    def bounds(self) -> DirectedBounds:
        """Return all runs of the phases."""
        return repeated(in_turn([one.bounds() for one in self.inner]), self.node.count)

    def public(self) -> DirectedBounds:
        """Return all runs of the phases with public participations."""
        return repeated(in_turn([one.public() for one in self.inner]), self.node.count)

    def refusals(self) -> list[Problem]:
        """Refuse what the phases refuse, and phases that are analysed by drawing samples."""
        return inner_refusals(self.inner, OF_A_PART)


def _of_parts(parts: dict[str, Reduction]) -> tuple[Assumed, ...]:
    """Return each assumption of the parts once; one that not all parts share begins with the names of its parts."""
    holders: dict[Assumed, list[str]] = {}
    for name, part in parts.items():
        for assumed in dict.fromkeys(part.assumed):
            holders.setdefault(assumed, []).append(name)
    return tuple(assumed if len(names) == len(parts) else assumed.of(names) for assumed, names in holders.items())

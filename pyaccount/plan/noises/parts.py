"""Phases on disjoint parts of the data, and the phases of one part, run one after the other (theorems: `plan.disjoint`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyaccount.plan.disjoint import bounds_by_kind, part_name
from pyaccount.plan.reduction import Analysis, Reduction
from pyaccount.plan.rounds import in_turn, repeated, worst_of

if TYPE_CHECKING:
    from pyaccount.document.document import Document
    from pyaccount.document.views import Body
    from pyaccount.errors import Problem
    from pyaccount.plan.rounds import Alternative, DirectedBounds

PARTITION = (
    "Each record belongs to exactly one part, by a rule that depends on this record alone and was fixed without looking at the "
    "data: the parts are neither equal folds of a shuffled data set nor clusters that were learnt from it. What is run on a part "
    "uses the records of this part and what was released before, nothing else."
)
STAYS = "A record whose contribution is replaced by zero stays in its part."
SPREAD = "A group of records may be spread over several parts: the worst way to spread it counts."
MOVED = (
    "A record may be replaced by one of another part: a record then leaves the one and joins the other, under add-remove. So how "
    "many records a part has is not public, and no constant of a part may follow from it."
)
#: What a reader should know if several phases have parts.
COMBINED = "Parts of different phases combine in any way: a record may be in any part of each phase, and the worst case counts."


#: The way forward for a phase that is sampled, inside of a part and beside parts.
ONE_EACH = "certify one document for each part, with everything else; the guarantee is the largest of them"
USERS = f"no bound is implemented for users whose records are in parts: {ONE_EACH}"


@dataclass(frozen=True, slots=True)
class Disjoint:
    """The analysis of disjoint parts.

    `inner` has the analysis of each part; `crossing`, under replace-one only, that of each part if a record leaves it or
    joins it.
    """

    inner: tuple[Analysis, ...]
    crossing: tuple[Analysis, ...] = ()

    def analysis(self) -> Analysis:
        """Return the analysis of the worst part."""
        return Analysis(
            self.words,
            self.bounds,
            refusals=self.refusals,
            gaussian=all(one.gaussian for one in self.inner),
            alternatives=self.alternatives,
        )

    def words(self, document: Document, body: Body) -> Reduction:
        """Return the theorems of the parts, and that of the partition, as one."""
        parts = {
            part_name(body, index): one.words(document, part)
            for index, (one, part) in enumerate(zip(self.inner, body.inner, strict=True))
        }
        privacy = document.privacy
        several = sum(one.disjoint for one in document.bodies) > 1
        remarks = [
            MOVED if self.crossing else SPREAD if privacy.group_size != 1 else None,
            COMBINED if several else None,
            *(part.remark for part in parts.values()),
        ]
        remark = " ".join(dict.fromkeys(filter(None, remarks))) or None
        return Reduction(
            path=body.path,
            subject=f"disjoint parts of the data: {'; '.join(f'{name}: {part.subject}' for name, part in parts.items())}",
            theorem="composition of everything else with each part, the worst of which counts",
            source="; ".join(
                dict.fromkeys(
                    [
                        *(part.source for part in parts.values()),
                        "disjoint parts: McSherry 2009 (parallel composition), for profiles in docs/composition.md",
                    ]
                )
            ),
            pair="; or ".join(f"{name}: {part.rounds} × {part.pair}" for name, part in parts.items()),
            rounds=str(body.count),
            tight=all(part.tight for part in parts.values()),
            remark=remark,
            assumptions=(
                *_of_parts(parts),
                PARTITION,
                *((STAYS,) if privacy.adjacency == "zero-out" else ()),
            ),
            lower_end="the two data sets of the rounds of each part"
            if any(part.lower_end for part in parts.values())
            else None,
        )

    def alternatives(self, document: Document, body: Body) -> tuple[Alternative, ...]:
        """Return all runs of each kind of record."""

        def of_part(index: int, asked: Document, crossing: bool) -> DirectedBounds:
            part = body.inner[index]
            # The body may lack some parts: a part is known by its place in the document.
            bounds = (self.crossing if crossing else self.inner)[int(part.path[-1])].bounds
            assert bounds is not None
            return repeated(bounds(asked, part), body.count)

        return bounds_by_kind(document, body, of_part)

    def bounds(self, document: Document, body: Body) -> DirectedBounds:
        """Return all runs of the worst kind of record."""
        return worst_of([one.bounds for one in self.alternatives(document, body)])

    def refusals(self, document: Document, body: Body) -> list[Problem]:
        """Refuse what the parts refuse, phases that are analysed by drawing samples, and users."""
        users = [
            document.problem("no-valid-bound", phase.at("sampler", "kind"), USERS)
            for phase in body.within()
            if phase.sampler.protects_users
        ]
        if users:
            return users
        problems = _inner_refusals(self.inner, document, body)
        for one, part in zip(self.crossing, body.inner, strict=False):
            if one.refusals is not None:
                problems += one.refusals(document.protecting("add-remove", 1), part)
        return list({(problem.path, problem.message): problem for problem in problems}.values())


@dataclass(frozen=True, slots=True)
class InSequence:
    """The analysis of the phases of one part; `inner` has the analysis of each."""

    inner: tuple[Analysis, ...]

    def analysis(self) -> Analysis:
        """Return the analysis of all phases."""
        return Analysis(
            self.words, self.bounds, refusals=self.refusals, gaussian=all(one.gaussian for one in self.inner)
        )

    def words(self, document: Document, body: Body) -> Reduction:
        """Return the theorems of the phases as one."""
        parts = [one.words(document, part) for one, part in zip(self.inner, body.inner, strict=True)]
        return Reduction(
            path=body.path,
            subject=", then ".join(part.subject for part in parts),
            theorem="composition of the phases",
            source="; ".join(dict.fromkeys(part.source for part in parts)),
            pair=f"({', and '.join(f'{part.rounds} × {part.pair}' for part in parts)})",
            rounds=str(body.count),
            tight=all(part.tight for part in parts),
            remark=" ".join(dict.fromkeys(filter(None, (part.remark for part in parts)))) or None,
            assumptions=tuple(dict.fromkeys(text for part in parts for text in part.assumptions)),
            lower_end="the two data sets of each phase" if any(part.lower_end for part in parts) else None,
        )

    def bounds(self, document: Document, body: Body) -> DirectedBounds:
        """Return all runs of the phases."""
        rounds = []
        for one, part in zip(self.inner, body.inner, strict=True):
            assert one.bounds is not None
            rounds.append(one.bounds(document, part))
        return repeated(in_turn(rounds), body.count)

    def refusals(self, document: Document, body: Body) -> list[Problem]:
        """Refuse what the phases refuse, and phases that are analysed by drawing samples."""
        return _inner_refusals(self.inner, document, body)


def _inner_refusals(inner: tuple[Analysis, ...], document: Document, body: Body) -> list[Problem]:
    problems = []
    for one, part in zip(inner, body.inner, strict=True):
        problems += [] if one.refusals is None else one.refusals(document, part)
        if one.bounds is None:
            message = (
                f"{part.sampler.kind} sampling is analysed by drawing samples, which is not implemented inside of disjoint "
                f"parts: {ONE_EACH}"
            )
            path = part.at("sampler", "kind")
            problems.append(document.problem("no-valid-bound", path, message, allowed="a sampler whose rounds compose"))
    return problems


def _of_parts(parts: dict[str, Reduction]) -> tuple[str, ...]:
    """Return each assumption of the parts once; one that not all parts share begins with the names of its parts."""
    holders: dict[str, list[str]] = {}
    for name, part in parts.items():
        for text in dict.fromkeys(part.assumptions):
            holders.setdefault(text, []).append(name)
    return tuple(text if len(names) == len(parts) else f"{', '.join(names)}: {text}" for text, names in holders.items())

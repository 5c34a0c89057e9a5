"""The base class of mechanisms in the plan room: from what is known of a mechanism to rounds that compose.

Each kind is a class: its dominating pair or its proven profile, what it assumes, and what it refuses. The objects have no
state: every method gets the mechanism. `plan.units` has the theorems about runs on a sample.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar, cast

from pyaccount.directions import DIRECTIONS
from pyaccount.document.mechanisms import MechanismKind
from pyaccount.plan.common import neighbours_assumption, number
from pyaccount.plan.noises.base import NoisePlan
from pyaccount.plan.reduction import Analysis, Reduction
from pyaccount.plan.rounds import Bounds, DirectedBounds, repeated
from pyaccount.plan.units import SHOWN, sampled, sampling_assumptions, sampling_refusals, sampling_source
from pyaccount.profiles import ProfileKind, Rounds
from pyaccount.rounding import shortest

if TYPE_CHECKING:
    from pyaccount.document.document import Document
    from pyaccount.document.views import Body
    from pyaccount.errors import Problem

Mechanism = TypeVar("Mechanism", bound=MechanismKind)

#: The assumption about runs that are repeated, and about what is drawn.
FRESH = "Every run uses randomness that is new, independent of everything else, and cannot be predicted."


@dataclass(frozen=True, slots=True)
class Released:
    """What one run of a mechanism reveals: `count` rounds of a profile.

    The profile `upper` bounds every pair of neighbours, and `lower` is that of two data sets. They are the same object if
    the bound is attained, unless rounding separates them. Both are for both directions, unless `add` has those of the
    direction add.
    """

    upper: ProfileKind
    lower: ProfileKind
    count: int = 1
    add: Released | None = None
    #: What is revealed beside it, which is the same from above and from below, and in both directions.
    beside: tuple[ProfileKind, ...] = ()

    def bounds(self) -> DirectedBounds:
        """Return the rounds of one run in both directions."""
        beside = tuple(Rounds(one, 1) for one in self.beside)
        return {
            direction: Bounds((Rounds(one.upper, one.count), *beside), (Rounds(one.lower, one.count), *beside))
            for direction, one in zip(DIRECTIONS, (self, self.add or self), strict=True)
        }


@dataclass(frozen=True, slots=True)
class MechanismWords:
    """A mechanism's theorem in words; see `Reduction`."""

    subject: str
    theorem: str
    source: str
    pair: str
    assumptions: tuple[str, ...]
    remark: str | None = None
    #: The two data sets of the lower bound, unless the bound is attained.
    lower_end: str | None = None
    #: What bounds several runs better than their composition, unless they are sampled.
    several: str | None = None


class MechanismPlan(NoisePlan, Generic[Mechanism]):
    """What the plan room needs to know about a mechanism beyond its fields."""

    sums_have_error: ClassVar[bool] = False

    @abstractmethod
    def released(self, mechanism: Mechanism, group: int) -> Released:
        """Return what one run reveals about a group of `group` records, each of which may change it by its sensitivity."""

    @abstractmethod
    def described(self, mechanism: Mechanism) -> MechanismWords:
        """Return the theorem in words, for one record."""

    def own_refusals(self, document: Document, body: Body, mechanism: Mechanism) -> list[Problem]:
        """Explain what the theorem does not cover; empty if it covers the body."""
        return []

    def one_run(self, document: Document, body: Body) -> Released:
        """Return what one run of a body's mechanism reveals about what the document protects."""
        return self.released(self._of(body), number(document.privacy.group_size))

    def analysis(self, document: Document, body: Body) -> Analysis:
        """Return the analysis of the runs as rounds that compose."""
        return Analysis(self.words, self.bounds, refusals=self.refusals)

    def words(self, document: Document, body: Body) -> Reduction:
        """Return the theorem, with sampling and the number of runs."""
        text, group = self.described(self._of(body)), document.privacy.group_size
        drawn = body.sampler.kind == "poisson"
        unit = "clients" if body.draws_groups else "records"
        remark = text.several if text.several is not None and body.count > 1 and not drawn else text.remark
        if group != 1:
            grouped = f"For a group of {'k' if group == 'solve' else group} records the mechanism is that of the group."
            remark = grouped if remark is None else f"{remark} {grouped}"
        if drawn and document.privacy.adjacency == "replace-one" and not body.draws_groups:
            remark = SHOWN if remark is None else f"{remark} {SHOWN}"
        return Reduction(
            path=body.path,
            subject=f"{text.subject}, on a Poisson sample of the {unit}" if drawn else text.subject,
            theorem=f"{text.theorem}, sampled" if drawn else text.theorem,
            source=f"{text.source}; {sampling_source(document, body)}" if drawn else text.source,
            pair=f"{text.pair}; drawn with probability {shortest(body.sampling_probability())}" if drawn else text.pair,
            rounds=str(body.count),
            tight=text.lower_end is None,
            remark=remark,
            assumptions=(
                neighbours_assumption(document.privacy),
                *text.assumptions,
                FRESH,
                *(sampling_assumptions(document, body, removal=self._of(body).for_any_data()) if drawn else ()),
            ),
            lower_end=text.lower_end,
        )

    def bounds(self, document: Document, body: Body) -> DirectedBounds:
        """Return the rounds of all runs."""
        run = self.one_run(document, body).bounds()
        return sampled(run, document, body) if body.sampler.kind == "poisson" else repeated(run, body.count)

    def refusals(self, document: Document, body: Body) -> list[Problem]:
        """Refuse engines that draw samples, and sampling of what is not covered."""
        mechanism, problems = self._of(body), []
        if document.accounting.method == "monte-carlo" and len(document.bodies) == 1:
            message = "a mechanism is composed, not sampled: leave method out"
            problems.append(
                document.problem("no-valid-bound", ("accounting", "method"), message, allowed="auto or pld")
            )
        if body.sampler.kind == "poisson":
            problems += sampling_refusals(document, body, removal=self._of(body).for_any_data())
        return [*problems, *self.own_refusals(document, body, mechanism)]

    def public(self, document: Document, body: Body) -> DirectedBounds:
        """Return the rounds of all runs on all records."""
        return repeated(self.one_run(document, body).bounds(), body.count)

    def convention(self, document: Document) -> str:
        """Return the sentence about the unit of scales, which is the same for all mechanisms."""
        return "The scale of a mechanism is in the unit of what it releases, as its sensitivity is."

    def _of(self, body: Body) -> Mechanism:
        return cast("Mechanism", body.noise)

"""A combinator that pyaccount does not have: phases that are run if a coin, which is shown, comes up heads.

What somebody writes who adds one: its shape in a document, its node, and its theorem. `register` adds them to the tables of this
process.
"""

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from pydantic import Field

from pyaccount.directions import DIRECTIONS
from pyaccount.document import models, ranges, views
from pyaccount.document.tree import Combined
from pyaccount.document.words import Assumed
from pyaccount.errors import Path, Problem
from pyaccount.plan.common import OF_DOCUMENT, inner_refusals, joined, one_run, pairs_of_run
from pyaccount.plan.compiling import THEOREMS, inside
from pyaccount.plan.rounds import Bounds, DirectedBounds, combine, one_round
from pyaccount.plan.theorem import CombinedTheorem, Reduction
from pyaccount.profiles import Rounds, SometimesProfile
from pyaccount.reading.fields import Items, Number
from pyaccount.reading.kinds import KeyedShapes
from pyaccount.reading.numerals import Range

COIN = Assumed("The coin depends on nothing else.", "The coin depends on nothing else.")


class SometimesPhases(models._NamedPhase):
    """Phases that are run with a probability."""

    sometimes: Annotated[float, Number(Range(0.0, 1.0))] = Field(description="The probability that they are run.")
    phases: Annotated[
        tuple[Annotated[models.MechanismPhase, KeyedShapes(models.Phase, {"mechanism": models.MechanismPhase})], ...],
        Items(ranges.INNER_PHASES),
    ] = Field(description="What is run.")
    count: Annotated[int, Number(ranges.COUNT, whole=True)] = Field(default=1, description="The number of coins.")


@dataclass(frozen=True, slots=True)
class Sometimes(Combined):
    """Nodes that are run if a coin comes up heads."""

    key: ClassVar[str] = "sometimes"

    probability: float = field()


class SometimesTheorem(CombinedTheorem):
    """Whether the phases are run is shown, and depends on nothing: q·h + (1 − q)(1 − α)₊, attained."""

    node: Sometimes

    def words(self) -> Reduction:
        """Return the theorems of the phases, and that of the coin, as one."""
        parts = [one.words() for one in self.inner]
        return Reduction(
            path=self.node.path,
            subject=f"sometimes: {', then '.join(part.subject for part in parts)}",
            theorem="a mixture whose component is shown",
            source=joined([part.source for part in parts]),
            pair=f"{pairs_of_run(self.inner, parts)}; with probability {self.node.probability}",
            rounds=str(self.node.count),
            tight=all(part.tight for part in parts),
            remark=None,
            assumed=(*(one for part in parts for one in part.assumed), COIN),
        )

    def bounds(self) -> DirectedBounds:
        """Return the rounds of all coins."""
        return self._sometimes(one_run(self.inner))

    def public(self) -> DirectedBounds:
        """Return the same, with public participations."""
        return self._sometimes(combine([one.public() for one in self.inner], merge_gaussians=True))

    def refusals(self) -> list[Problem]:
        """Refuse what the phases refuse."""
        return inner_refusals(self.inner, OF_DOCUMENT)

    def _sometimes(self, run: DirectedBounds) -> DirectedBounds:
        bounds: DirectedBounds = {}
        for side in DIRECTIONS:
            upper, lower = (
                (Rounds(SometimesProfile(one_round(rounds, below=below), self.node.probability), self.node.count),)
                for rounds, below in ((run[side].upper, False), (run[side].lower, True))
            )
            bounds[side] = Bounds(upper, lower)
        return bounds


def _node(model: Any, path: Path, name: str | None) -> Sometimes:
    return Sometimes(path, name, model.count, views.inside(model.phases, (*path, "phases")), model.sometimes)


def register() -> None:
    """Add the shape to the document language, its node to the tree, and its theorem to the plan."""
    by_key = dict(models.PHASE_SHAPES.by_key)
    models.PHASE_SHAPES.by_key.clear()  # type: ignore[attr-defined]
    models.PHASE_SHAPES.by_key.update({"sometimes": SometimesPhases, **by_key})  # type: ignore[attr-defined]
    views.NODES[SometimesPhases] = _node
    THEOREMS[Sometimes] = lambda case: SometimesTheorem(case.asked, case.node, inside(case))

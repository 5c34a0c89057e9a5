"""The best of a random number of runs of some phases; `plan.selection` has the theorems."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyaccount.plan.combinators.inside import OF_DOCUMENT, inner_refusals, joined, one_run, pairs_of_run
from pyaccount.plan.mechanisms.base import FRESH
from pyaccount.plan.rounds import combine
from pyaccount.plan.selection import RunLaw, selected
from pyaccount.plan.theorem import CombinedTheorem, Reduction
from pyaccount.rounding import shortest

if TYPE_CHECKING:
    from pyaccount.document.tree import Best
    from pyaccount.errors import Problem
    from pyaccount.plan.rounds import DirectedBounds

SECRET_RUNS = (
    "How many runs there were, and everything but the best of them, is secret; the number of runs is drawn by the stated law, "
    "and depends on nothing else."
)
SCORE = (
    "The score by which the best run is chosen is part of what a run releases, or computed from it and from public data; ties "
    "are decided by what the runs release, or at random. If there is no run, a fixed symbol is released."
)


class BestTheorem(CombinedTheorem):
    """The best of several runs of phases."""

    node: Best

    def law(self) -> RunLaw:
        """Return the law of the number of runs."""
        assert self.node.law is not None
        return RunLaw(self.node.law.kind, self.node.law.parameters())

    def words(self) -> Reduction:
        """Return the theorems of the phases, and that of the selection, as one."""
        parts, law = [one.words() for one in self.inner], self.law()
        texts = dict.fromkeys(text for part in parts for text in part.assumptions)
        return Reduction(
            path=self.node.path,
            subject=f"the best of a {law.name} number of runs, {shortest(float(f'{law.mean():.4g}'))} on average, of: "
            f"{', then '.join(part.subject for part in parts)}",
            theorem="private selection from the profile of one run",
            source=joined(
                [
                    *(part.source for part in parts),
                    "Koskela, Redberg & Wang 2024 (arXiv:2402.06701) and Papernot & Steinke 2022 (arXiv:2110.03620), "
                    "sharpened in docs/mechanisms.md",
                ]
            ),
            pair=f"one run: {pairs_of_run(self.inner, parts)}",
            rounds=str(self.node.count),
            tight=False,
            remark=None,
            assumptions=(*texts, FRESH, SECRET_RUNS, SCORE),
            lower_end="a score that is drawn at random, so that the best run is one run, on the two data sets of each phase",
        )

    def bounds(self) -> DirectedBounds:
        """Return `count` selections."""
        return selected(one_run(self.inner), self.law(), self.node.count)

    def refusals(self) -> list[Problem]:
        """Refuse what the phases refuse, and phases that are analysed by drawing samples."""
        return inner_refusals(self.inner, OF_DOCUMENT)

    def public(self) -> DirectedBounds:
        """Return the selections from runs with public participations."""
        run = combine([one.public() for one in self.inner], merge_gaussians=True)
        return selected(run, self.law(), self.node.count)

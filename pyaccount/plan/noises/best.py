"""The best of a random number of runs of some phases; `plan.selection` has the theorems."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyaccount.plan.mechanisms.base import FRESH
from pyaccount.plan.noises.one_sample import inner_refusals, one_run, pairs_of_run
from pyaccount.plan.reduction import Analysis, Reduction
from pyaccount.plan.selection import RunLaw, selected
from pyaccount.rounding import shortest

if TYPE_CHECKING:
    from pyaccount.document.document import Document
    from pyaccount.document.views import Body
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


def law_of(body: Body) -> RunLaw:
    """Return the law of the number of runs of a body with a selection."""
    assert body.select is not None
    return RunLaw(body.select.kind, body.select.parameters())


@dataclass(frozen=True, slots=True)
class Best:
    """The analysis of the best of several runs of phases; `inner` has the analysis of each phase."""

    inner: tuple[Analysis, ...]

    def analysis(self) -> Analysis:
        """Return the analysis of the selection."""
        return Analysis(self.words, self.bounds, refusals=self.refusals)

    def words(self, document: Document, body: Body) -> Reduction:
        """Return the theorems of the phases, and that of the selection, as one."""
        parts = [one.words(document, part) for one, part in zip(self.inner, body.inner, strict=True)]
        law = law_of(body)
        texts = dict.fromkeys(text for part in parts for text in part.assumptions)
        return Reduction(
            path=body.path,
            subject=f"the best of a {law.name} number of runs, {shortest(float(f'{law.mean():.4g}'))} on average, of: "
            f"{', then '.join(part.subject for part in parts)}",
            theorem="private selection from the profile of one run",
            source="; ".join(
                dict.fromkeys(
                    [
                        *(part.source for part in parts),
                        "Koskela, Redberg & Wang 2024 (arXiv:2402.06701) and Papernot & Steinke 2022 (arXiv:2110.03620), "
                        "sharpened in docs/mechanisms.md",
                    ]
                )
            ),
            pair=f"one run: {pairs_of_run(self.inner, parts)}",
            rounds=str(body.count),
            tight=False,
            remark=None,
            assumptions=(*texts, FRESH, SECRET_RUNS, SCORE),
            lower_end="a score that is drawn at random, so that the best run is one run, on the two data sets of each phase",
        )

    def bounds(self, document: Document, body: Body) -> DirectedBounds:
        """Return `count` selections."""
        return selected(one_run(self.inner, document, body), law_of(body), body.count)

    def refusals(self, document: Document, body: Body) -> list[Problem]:
        """Refuse what the phases refuse, and phases that are analysed by drawing samples."""
        return inner_refusals(self.inner, document, body)

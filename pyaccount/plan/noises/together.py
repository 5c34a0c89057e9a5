"""Phases that are run together on one sample of the records or clients, drawn anew for each run (theorems: `plan.units`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyaccount.plan.mechanisms.base import FRESH
from pyaccount.plan.reduction import Analysis, Reduction
from pyaccount.plan.rounds import combine
from pyaccount.plan.units import sampled, sampling_assumptions, sampling_refusals, sampling_source
from pyaccount.rounding import shortest

if TYPE_CHECKING:
    from pyaccount.document.document import Document
    from pyaccount.document.views import Body
    from pyaccount.errors import Problem
    from pyaccount.plan.rounds import DirectedBounds


@dataclass(frozen=True, slots=True)
class Together:
    """The analysis of phases that are run together; `inner` has the analysis of each."""

    inner: tuple[Analysis, ...]

    def analysis(self) -> Analysis:
        """Return the analysis of all phases and of their sample."""
        return Analysis(self.words, self.bounds, refusals=self.refusals)

    def words(self, document: Document, body: Body) -> Reduction:
        """Return the theorems of the phases, and that of the sample, as one."""
        parts = [one.words(document, part) for one, part in zip(self.inner, body.inner, strict=True)]
        unit = "client" if body.draws_groups else "record"
        texts = dict.fromkeys(text for part in parts for text in part.assumptions)
        return Reduction(
            path=body.path,
            subject=f"phases on a Poisson sample of the {unit}s: {', then '.join(part.subject for part in parts)}",
            theorem="composition of the phases of a run, sampled",
            source="; ".join(dict.fromkeys([*(part.source for part in parts), sampling_source(body)])),
            pair=f"{', and '.join(f'{part.rounds} × {part.pair}' for part in parts)}; all of them with probability "
            f"{shortest(body.sampling_probability())}",
            rounds=str(body.count),
            tight=all(part.tight for part in parts),
            remark=None,
            assumptions=(*texts, FRESH, *sampling_assumptions(document, body)),
            components=sum(part.components for part in parts),
            lower_end="the two data sets of each phase" if any(part.lower_end for part in parts) else None,
        )

    def bounds(self, document: Document, body: Body) -> DirectedBounds:
        """Return `count` rounds of the sampled composition."""
        parts = [_bounds(one, document, part) for one, part in zip(self.inner, body.inner, strict=True)]
        return sampled(combine(parts, merge_gaussians=True), body)

    def refusals(self, document: Document, body: Body) -> list[Problem]:
        """Refuse what the phases or their sample refuse, and phases that are analysed by drawing samples."""
        problems = sampling_refusals(document, body)
        for one, part in zip(self.inner, body.inner, strict=True):
            problems += [] if one.refusals is None else one.refusals(document, part)
            if one.bounds is None:
                message = (
                    f"{part.sampler.kind} sampling is analysed by drawing samples, which is implemented for phases of the "
                    "document, not for phases inside of another one"
                )
                path = part.at("sampler", "kind")
                problems.append(
                    document.problem("no-valid-bound", path, message, allowed="a sampler whose rounds compose")
                )
        return problems


def _bounds(analysis: Analysis, document: Document, body: Body) -> DirectedBounds:
    assert analysis.bounds is not None
    return analysis.bounds(document, body)

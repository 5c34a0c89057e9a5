"""The kinds of noise in the plan room: which theorem analyses a body, and the worst case without sampling.

Each kind is a module with a class. A body with a mechanism has the plan object of the mechanism instead, which answers
the same questions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyaccount.document.noise import Gaussian, Laplace
from pyaccount.errors import DocumentError
from pyaccount.plan import mechanisms
from pyaccount.plan.disjoint import bounds_by_kind, crossing_refusals
from pyaccount.plan.noises import gaussian, laplace
from pyaccount.plan.noises.base import NoisePlan
from pyaccount.plan.noises.best import Best, law_of
from pyaccount.plan.noises.one_sample import OnOneSample, inner_refusals
from pyaccount.plan.noises.parts import Disjoint, InSequence
from pyaccount.plan.own_probabilities import LargestBounds
from pyaccount.plan.replaced import states_removal
from pyaccount.plan.rounds import combine, in_turn, repeated, worst_of
from pyaccount.plan.scheduled_rounds import composed
from pyaccount.plan.selection import selected
from pyaccount.plan.units import draw_may_show
from pyaccount.reading.kinds import Section

if TYPE_CHECKING:
    from pyaccount.document.document import Document
    from pyaccount.document.views import Body
    from pyaccount.plan.reduction import Analysis
    from pyaccount.plan.rounds import DirectedBounds

#: The plan object of each class of noise, and of mechanisms.
PLANS: dict[type[Section], NoisePlan] = {Gaussian: gaussian.PLAN, Laplace: laplace.PLAN, **mechanisms.PLANS}


def analysis_of(document: Document, body: Body) -> Analysis:
    """Return the analysis of a body. Raises `DocumentError` for a sampler that is not covered."""
    analysis = _usual(document, body)
    return analysis if body.own_probabilities is None else LargestBounds(analysis).analysis()


def _usual(document: Document, body: Body) -> Analysis:
    """Return the analysis of a body whose records are all drawn with the same probability."""
    if not body.inner:
        return noise_plan(body).analysis(document, body)
    if body.disjoint and (problems := crossing_refusals(document, body)):
        raise DocumentError(problems)
    inner = tuple(analysis_of(document, one) for one in body.inner)
    if body.select is not None:
        return Best(inner).analysis()
    if not body.disjoint:
        together = (
            OnOneSample(inner, _of_removal(document, body)) if body.sampler.kind == "poisson" else InSequence(inner)
        )
        return together.analysis()
    crossing: tuple[Analysis, ...] = ()
    if document.privacy.adjacency == "replace-one":
        moved = document.protecting("add-remove", 1)
        crossing = tuple(analysis_of(moved, one) for one in body.inner)
    return Disjoint(inner, crossing).analysis()


def _of_removal(document: Document, body: Body) -> tuple[Analysis, ...]:
    """Return the analysis of each phase on a sample for a record that is removed; empty if it is not known, or not needed."""
    if not draw_may_show(document, body) or not states_removal(body):
        return ()
    asked = document.protecting("add-remove", 1)
    try:
        analyses = tuple(analysis_of(asked, one) for one in body.inner)
    except DocumentError:
        return ()
    return () if inner_refusals(analyses, asked, body) else analyses


def public_bounds(document: Document, body: Body) -> DirectedBounds:
    """Return the rounds of a body if participations are public and as bad as they can be, whatever its schedules."""
    if body.disjoint:

        def of_part(index: int, asked: Document, _: bool) -> DirectedBounds:
            return repeated(public_bounds(asked, body.inner[index]), body.count)

        return worst_of([one.bounds for one in bounds_by_kind(document, body, of_part)])
    if body.inner and body.select is None and body.sampler.kind == "none":
        return repeated(in_turn([public_bounds(document, one) for one in body.inner]), body.count)
    if body.inner:
        runs = combine([public_bounds(document, one) for one in body.inner], merge_gaussians=True)
        return repeated(runs, body.count) if body.select is None else selected(runs, law_of(body), body.count)
    public = noise_plan(body).public
    return composed(document, body, public) if body.schedules() else public(document, body)


def noise_plan(body: Body) -> NoisePlan:
    """Return the plan object for the noise of a body, or for the mechanism in its place."""
    return PLANS[type(body.noise)]


def conventions(document: Document) -> str:
    """Return the sentences that state the units of a document's multipliers, each once."""
    present = {type(body.noise) for body in document.every_body()}
    return " ".join(dict.fromkeys(plan.convention(document) for kind, plan in PLANS.items() if kind in present))

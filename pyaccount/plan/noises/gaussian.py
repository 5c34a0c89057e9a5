"""Gaussian noise on the sum of a round; the theorem depends on how records are drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pyaccount.errors import DocumentError
from pyaccount.plan.common import moves, number
from pyaccount.plan.contrast import worst
from pyaccount.plan.noises import several
from pyaccount.plan.noises.base import NoisePlan
from pyaccount.plan.rounds import enclosed
from pyaccount.plan.samplers import sampler_plan, truncated
from pyaccount.profiles import GaussianProfile

if TYPE_CHECKING:
    from pyaccount.document.document import Document
    from pyaccount.document.views import Body
    from pyaccount.plan.reduction import Analysis
    from pyaccount.plan.rounds import DirectedBounds

INDEPENDENT = (
    "σ is the standard deviation of the noise added to each released sum, in units of the clip norm of one record."
)
CORRELATED = (
    "σ is the standard deviation of the rows of Z in units of the clip norm of one record, where training adds C⁻¹Z; "
    "the largest column norm of C is stated with each phase, 1 unless the document says otherwise."
)

ALSO = (
    "Where a batch has several releases σ is that of the main one; the others are stated with each phase, each in units of its "
    "own clip norm, and the effective multiplier is that of all of them together."
)


class GaussianPlan(NoisePlan):
    """Gaussian noise, which is analysed with every sampler and with the matrices that the sampler allows."""

    sums_have_error: ClassVar[bool] = True

    def analysis(self, document: Document, body: Body) -> Analysis:
        """Return the sampler's analysis; if a batch has several releases, of all of them together."""
        plan = sampler_plan(body)
        if getattr(body.sampler, "truncate_to", None) is not None:
            problems = truncated.refusals(document, plan.truncation_refusals(document, body))
            if problems:
                raise DocumentError(problems)
        analysis = plan.analysis(document, body)
        return several.SeveralReleases(analysis, plan.stacks(body)).analysis() if body.noise.also else analysis

    def public(self, document: Document, body: Body) -> DirectedBounds:
        """Return one Gaussian mechanism for each release of the worst participation pattern.

        Its sensitivity is k (2k under replace-one) times the largest ‖Cx‖ over the patterns x that the sampler allows.
        """
        participation = worst(document, body)
        sensitivity = float(number(document.privacy.group_size) * moves(document)) * participation.norm()
        upper, lower = (GaussianProfile(sensitivity, multiplier) for multiplier in several.multipliers(body))
        return enclosed((upper, upper), (lower, lower), participation.count)

    def convention(self, document: Document) -> str:
        """State that σ is the noise of each sum; of the rows of Z if some phase has a matrix."""
        independent = all(body.matrix.kind == "identity" for body in document.every_body())
        sentence = INDEPENDENT if independent else CORRELATED
        return f"{sentence} {ALSO}" if any(body.noise.also for body in document.every_body()) else sentence


PLAN = GaussianPlan()

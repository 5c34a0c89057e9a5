"""Gaussian noise on the sum of a round: what follows from it depends on how records are drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pyaccount.errors import DocumentError
from pyaccount.plan.common import moves, whole
from pyaccount.plan.contrast import worst
from pyaccount.plan.noises import several
from pyaccount.plan.noises.base import NoisePlan
from pyaccount.plan.rounds import enclosed, gaussian
from pyaccount.plan.samplers import sampler_plan, truncated

if TYPE_CHECKING:
    from pyaccount.document import Body, Document
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
    """With every sampler and every matrix that goes with it."""

    sums_have_error: ClassVar[bool] = True

    def analysis(self, document: Document, body: Body) -> Analysis:
        """The sampler's."""
        plan = sampler_plan(body)
        if getattr(body.sampler, "truncate_to", None) is not None:
            problems = truncated.refusals(document, plan.truncation_refusals(document, body))
            if problems:
                raise DocumentError(problems)
        found = plan.analysis(document, body)
        return several.Joined(found).analysis() if body.noise.also else found

    def public(self, document: Document, body: Body) -> DirectedBounds:
        """One Gaussian mechanism: k (2k under replace-one) times the largest ‖Cx‖ over the patterns x that the sampler allows."""
        found = worst(document, body)
        sensitivity = float(whole(document.privacy.group_size) * moves(document)) * found.norm()
        upper, lower = (gaussian(sensitivity, multiplier) for multiplier in several.multipliers(body))
        return enclosed((upper, upper), (lower, lower), found.count)

    def convention(self, document: Document) -> str:
        """Of the rows of Z, where some phase has a matrix."""
        independent = all(body.matrix.kind == "identity" for body in document.bodies)
        told = INDEPENDENT if independent else CORRELATED
        return f"{told} {ALSO}" if any(body.noise.also for body in document.bodies) else told


PLAN = GaussianPlan()

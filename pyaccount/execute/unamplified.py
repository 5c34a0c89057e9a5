"""The contrast: the same training run if nothing about a record's participations were secret. And what holds without samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyaccount.plan.noises import noise_plan
from pyaccount.plan.reduction import DirectedBounds, combine

if TYPE_CHECKING:
    from pyaccount.document import Document
    from pyaccount.plan.compiled import Instance


def unamplified_bounds(document: Document) -> DirectedBounds:
    """One Gaussian mechanism, and Laplace releases: each body's run with a record's participations public and as bad as can be.

    The sensitivity is k (2k under replace-one) times the largest ‖Cx‖ over the patterns x that the sampler allows (`plan.worst`
    has them, in words too). A mixture is dominated by its worst component (joint quasi-convexity of the hockey stick), so this
    bounds the sampled run too, except that of a sampler with a fixed number of draws: there a record takes another one's place,
    or is drawn several times in a round, and the contrast is the run on whole batches that it stands for.
    """
    return combine([noise_plan(body).public(document, body) for body in document.bodies], merge_gaussians=True)


def unsampled_bounds(instance: Instance) -> DirectedBounds:
    """What holds without a sample: the sampled phases with public participations, the rest as they are analysed."""
    parts = [
        noise_plan(body).public(instance.document, body) if part is None else part
        for part, body in zip(instance.parts(), instance.document.bodies, strict=True)
    ]
    return combine(parts, merge_gaussians=True)

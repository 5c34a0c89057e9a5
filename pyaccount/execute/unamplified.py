"""The contrast: the same training run if nothing about a record's participations were secret. And what holds without samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyaccount.document import participations
from pyaccount.plan.common import moves, number, whole
from pyaccount.plan.laplace import laplace
from pyaccount.plan.reduction import DirectedBounds, combine, gaussian, tight
from pyaccount.plan.worst import worst

if TYPE_CHECKING:
    from pyaccount.document import Body, Document
    from pyaccount.plan.compiled import Instance


def unamplified_bounds(document: Document) -> DirectedBounds:
    """One Gaussian mechanism, and Laplace releases: each body's run with a record's participations public and as bad as can be.

    The sensitivity is k (2k under replace-one) times the largest ‖Cx‖ over the patterns x that the sampler allows (`plan.worst`
    has them, in words too). A mixture is dominated by its worst component (joint quasi-convexity of the hockey stick), so this
    bounds the sampled run too, except that of a sampler with a fixed number of draws: there a record takes another one's place,
    or is drawn several times in a round, and the contrast is the run on whole batches that it stands for.
    """
    return combine([_public(document, body) for body in document.bodies], merge_gaussians=True)


def unsampled_bounds(instance: Instance) -> DirectedBounds:
    """What holds without a sample: the sampled phases with public participations, the rest as they are analysed."""
    parts = [
        _public(instance.document, body) if part is None else part
        for part, body in zip(instance.parts(), instance.document.bodies, strict=True)
    ]
    return combine(parts, merge_gaussians=True)


def _public(document: Document, body: Body) -> DirectedBounds:
    """One body with a record's participations public and as bad as can be."""
    sensitivity = float(whole(document.privacy.group_size) * moves(document))
    if body.noise.kind == "laplace":
        part = laplace(sensitivity, number(body.noise.multiplier))
        return tight(part, part, body.count * participations(body))
    found = worst(document, body)
    part = gaussian(sensitivity * found.norm(), number(body.noise.multiplier))
    return tight(part, part, found.count)

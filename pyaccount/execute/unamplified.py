"""The contrast: the same training run if every record took part in every round."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyaccount.plan.common import number, rounds, whole
from pyaccount.plan.deterministic import participations
from pyaccount.plan.reduction import DirectedBounds, combine, gaussian, tight

if TYPE_CHECKING:
    from pyaccount.document import Document


def unamplified_bounds(document: Document) -> DirectedBounds:
    """One Gaussian mechanism: each body's rounds with sensitivity k (2k under replace-one), no sampling.

    A body without sampling keeps its own number of participations.
    """
    sensitivity = float(whole(document.privacy.group_size)) * (2 if document.privacy.adjacency == "replace-one" else 1)
    parts = []
    for body in document.bodies:
        count = body.count * participations(body) if body.sampler.kind == "none" else rounds(body)
        part = gaussian(sensitivity, number(body.noise.multiplier))
        parts.append(tight(part, part, count))
    return combine(parts, merge_gaussians=True)

"""The contrast: the same training run if every record took part in every round. And what holds without samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyaccount.document import (
    BallsInBins,
    BMinSep,
    CyclicPoisson,
    Identity,
    Laplace,
    UserBMinSep,
    bins,
    participations,
    separation,
    truncation,
)
from pyaccount.plan.common import number, rounds, whole
from pyaccount.plan.laplace import laplace
from pyaccount.plan.reduction import DirectedBounds, combine, gaussian, tight
from pyaccount.plan.strategy import strategy

if TYPE_CHECKING:
    from pyaccount.document import Body, Document
    from pyaccount.plan.plan import Plan


def unamplified_bounds(document: Document) -> DirectedBounds:
    """One Gaussian mechanism, and Laplace releases: each body's run with a record's participations revealed and as bad as can be.

    The sensitivity is k (2k under replace-one) times the largest ‖Cx‖ over the patterns x that the sampler allows. A
    mixture is dominated by its worst component (joint quasi-convexity of the hockey stick), so this bounds the sampled
    run too. Where batches are truncated a record that survives takes the place of another one, or of none if it is empty and not
    drawn: then the sum moves by up to 2.
    """
    return combine([_revealed(document, body) for body in document.bodies], merge_gaussians=True)


def unsampled_bounds(plan: Plan) -> DirectedBounds:
    """What holds without a sample: the sampled phases with their participations revealed, the others as they are analysed."""
    document = plan.document
    parts = [
        reduction.bounds() if reduction.sampled is None else _revealed(document, body)
        for reduction, body in zip(plan.reductions, document.bodies, strict=True)
    ]
    return combine(parts, merge_gaussians=True)


def _revealed(document: Document, body: Body) -> DirectedBounds:
    """One body with a record's participations revealed and as bad as can be."""
    sensitivity = float(whole(document.privacy.group_size)) * (2 if document.privacy.adjacency == "replace-one" else 1)
    if isinstance(body.noise, Laplace):
        part = laplace(sensitivity, number(body.noise.multiplier))
        return tight(part, part, body.count * participations(body))
    shift, count = _worst(document, body)
    displaced = 1.0 if truncation(body) is None else 2.0
    part = gaussian(sensitivity * displaced * shift, number(body.noise.multiplier))
    return tight(part, part, count)


def _worst(document: Document, body: Body) -> tuple[float, int]:
    """The largest ‖Cx‖ of a run, from above, and how many such runs there are."""
    sampler = body.sampler
    if isinstance(sampler, BallsInBins):
        return strategy(document, body).bin_gram(bins(body))[1], body.count
    if isinstance(sampler, BMinSep | UserBMinSep | CyclicPoisson):
        b = separation(body) or 1
        # All records of a user at once, whenever any may be drawn.
        records = sampler.records_per_user if isinstance(sampler, UserBMinSep) else 1
        built = strategy(document, body)
        worst = built.sensitivity(b, whole(body.training.iterations))[0]
        return records * worst * (1.0 + built.slack), body.count
    if isinstance(body.matrix, Identity):
        return 1.0, body.count * participations(body) if sampler.kind == "none" else rounds(body)
    apart = (sampler.min_separation or 1) if sampler.kind == "none" else 1
    built = strategy(document, body)
    return built.sensitivity(apart, participations(body))[0] * (1.0 + built.slack), body.count

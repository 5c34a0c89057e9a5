"""No sampling: every record takes part in rounds fixed beforehand. One Gaussian mechanism, exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyaccount.plan.common import basic_assumptions, number, shown, whole
from pyaccount.plan.reduction import DirectedBounds, Reduction, gaussian, tight

if TYPE_CHECKING:
    from pyaccount.document import Body, Document


def participations(body: Body) -> int:
    """The largest number of rounds in which one record takes part during one run of this body."""
    iterations = whole(body.training.iterations)
    limits = [iterations]
    if body.sampler.kind == "none":
        if body.sampler.max_participations is not None:
            limits.append(body.sampler.max_participations)
        if body.sampler.min_separation is not None:
            limits.append(-(-iterations // body.sampler.min_separation))
    return min(limits)


def reduce(document: Document, body: Body) -> Reduction:
    """Sensitivity k in each of m rounds (2k under replace-one): the Gaussian mechanism with sensitivity k√m."""
    privacy = document.privacy
    factor = 2 if privacy.adjacency == "replace-one" else 1

    def bounds() -> DirectedBounds:
        part = gaussian(float(factor * whole(privacy.group_size)), number(body.noise.multiplier))
        return tight(part, part, body.count * participations(body))

    k, sigma = shown(privacy.group_size, "k"), shown(body.noise.multiplier, "σ")
    per_round = k if factor == 1 else f"2·{k}"
    m = "m" if body.training.iterations == "solve" else str(participations(body))
    return Reduction(
        path=body.path,
        subject="no sampling",
        theorem="composition of Gaussian mechanisms",
        source="Dong, Roth & Su 2022, Corollary 3.3; attained when the records of the group share their rounds",
        pair=f"N({per_round}·√{m}, {sigma}²) against N(0, {sigma}²)",
        rounds=m if body.count == 1 else f"{body.count} × {m}",
        tight=True,
        remark=None,
        assumptions=(
            *basic_assumptions(privacy),
            "Which records take part in which round is fixed beforehand, does not depend on the data, and does not change for "
            "the other records when a record is added, removed or replaced.",
            f"No record takes part in more than {m} rounds of a run.",
        ),
        components=1,
        bounds=bounds,
    )

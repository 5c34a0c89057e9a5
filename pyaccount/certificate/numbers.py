"""What the two kinds of evidence have in common once they are numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyaccount.certificate.model import ConsideredRecord
from pyaccount.errors import NumericsError

if TYPE_CHECKING:
    from pyaccount.certificate.model import Directions, EvidenceRecord, Guarantee, ProfilePoint, Solved
    from pyaccount.plan.plan import Plan


@dataclass(frozen=True, slots=True)
class Numbers:
    """The numbers of a certificate."""

    guarantee: Guarantee
    solved: Solved | None
    directions: Directions
    profile: list[ProfilePoint]
    evidence: EvidenceRecord


def ordered(lower: float, upper: float, what: str) -> float:
    """The lower end, if it does not lie above the upper one: nothing may be certified on bounds that cross."""
    if lower > upper:
        raise NumericsError(f"the bounds on {what} cross: at least {lower!r}, at most {upper!r}; this is a defect")
    return lower


def considered(plan: Plan) -> list[ConsideredRecord]:
    """What the plan's choices were made among."""
    return [
        ConsideredRecord(
            matrix=one.matrix,
            bands=one.bands,
            noise_multiplier_estimate=one.noise_multiplier,
            prefix_sum_mse_estimate=one.prefix_sum_mse,
        )
        for one in plan.considered
    ]

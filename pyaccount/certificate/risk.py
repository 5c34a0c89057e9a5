"""The budget of risk in a certificate: what is certified of it, in which words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pyaccount.certificate.model import RiskRecord
from pyaccount.directions import DIRECTIONS
from pyaccount.risk.budget import Enclosure, attained_at_least
from pyaccount.rounding import down, plain, up

if TYPE_CHECKING:
    from pyaccount.certificate.model import Directions, Guarantee
    from pyaccount.risk.budget import Budget, Points


def risk_record(budget: Budget, value: tuple[float, float], told: tuple[float, float, float]) -> RiskRecord:
    """What is certified of a document's budget: the measure at most and at least; ε at most and at least, and at which δ."""
    return RiskRecord(
        measure=budget.measure,  # type: ignore[arg-type]
        budget=budget.limit,
        **budget.details(),
        value=_finite(value[0]),
        value_lower=value[1],
        epsilon=_finite(told[0]),
        epsilon_lower=told[1],
        delta=told[2],
    )


def from_guarantee(budget: Budget, guarantee: Guarantee, directions: Directions) -> tuple[float, float]:
    """The measure at most and at least, by the guarantee alone, which holds in both directions: see `Budget.claim`."""
    points: Points = {
        # δ falls, so that what it is at least here it is at ε = 0.
        side: [
            *([Enclosure(0.0, ends.delta_lower, 1.0)] if guarantee.epsilon > 0.0 else []),
            Enclosure(guarantee.epsilon, ends.delta_lower, guarantee.delta),
        ]
        for side, ends in zip(DIRECTIONS, (directions.remove, directions.add), strict=True)
    }
    most = budget.at_most(points)
    return most, min(most, attained_at_least(budget, points))


def risk_words(risk: RiskRecord, value: str) -> str:
    """A value of the measure, for a sentence: `a membership advantage of at most 0.1`."""
    if risk.measure == "gaussian_mu":
        return f"no larger δ than N({value}, 1) against N(0, 1) at any ε from 0 to {plain(risk.last_epsilon or 0.0)}"
    if risk.measure == "advantage":
        return f"a membership advantage of at most {value}"
    return (
        f"a true-positive rate of at most {value} at a false-positive rate of {plain(risk.false_positive_rate or 0.0)}"
    )


def kept(risk: RiskRecord) -> str:
    """What is certified, as the end of a sentence about the run."""
    value = "no certified value" if risk.value is None else up(risk.value)
    if risk.measure == "gaussian_mu":
        return f"it has {risk_words(risk, value)}"
    return f"every attack on it has {risk_words(risk, value)}"


def exceeded(risk: RiskRecord, chance: str) -> str:
    """What is wrong with a budget that is not kept, as the beginning of a sentence about the run."""
    allowed = risk_words(risk, plain(risk.budget))
    if risk.value_lower > risk.budget:
        return f"does not keep {allowed}: it is at least {down(risk.value_lower)}{chance}"
    return f"could not be certified to keep {allowed}"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None

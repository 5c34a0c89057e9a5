"""The risk budget in a certificate: what is certified about it, as data and in words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pyaccount.directions import DIRECTIONS
from pyaccount.records.certificate import RiskRecord
from pyaccount.risk.budget import Enclosure, attained_at_least
from pyaccount.rounding import down, shortest, up

if TYPE_CHECKING:
    from pyaccount.records.certificate import Directions, Guarantee
    from pyaccount.risk.budget import Budget, Points


def risk_record(budget: Budget, value: tuple[float, float], told: tuple[float, float, float]) -> RiskRecord:
    """Return what is certified of a budget: `value` bounds the measure, `told` is ε, its lower bound, and their δ."""
    return RiskRecord(
        measure=budget.measure,  # type: ignore[arg-type]
        budget=budget.limit,
        **{"false_positive_rate": None, "last_epsilon": None, "least_rate": None, **budget.details()},
        value=_finite(value[0]),
        value_lower=value[1],
        epsilon=_finite(told[0]),
        epsilon_lower=told[1],
        delta=told[2],
    )


def from_guarantee(budget: Budget, guarantee: Guarantee, directions: Directions) -> tuple[float, float]:
    """Return (upper, lower) bounds on the measure by the guarantee alone, in both directions: see `Budget.claim`."""
    points: Points = {
        # δ falls with ε, so a lower bound on δ here is also one at ε = 0.
        side: [
            *([Enclosure(0.0, ends.delta_lower, 1.0)] if guarantee.epsilon > 0.0 else []),
            Enclosure(guarantee.epsilon, ends.delta_lower, guarantee.delta),
        ]
        for side, ends in zip(DIRECTIONS, (directions.remove, directions.add), strict=True)
    }
    most = budget.at_most(points)
    return most, min(most, attained_at_least(budget, points))


def _risk_words(risk: RiskRecord, value: str) -> str:
    """Return a value of the measure as words for a sentence, such as `a membership advantage of at most 0.1`."""
    if risk.measure == "gaussian_mu":
        return f"no larger δ than N({value}, 1) against N(0, 1) at any ε from 0 to {shortest(risk.last_epsilon or 0.0)}"
    if risk.measure == "advantage":
        return f"a membership advantage of at most {value}"
    return f"a true-positive rate of at most {value} at a false-positive rate of {shortest(risk.false_positive_rate or 0.0)}"


def kept(risk: RiskRecord) -> str:
    """Return what is certified, as the end of a sentence about the run."""
    value = "no certified value" if risk.value is None else up(risk.value)
    if risk.measure == "gaussian_mu":
        return f"it has {_risk_words(risk, value)}"
    return f"every attack on it has {_risk_words(risk, value)}"


def exceeded(risk: RiskRecord, chance: str) -> str:
    """Return why a budget is not kept, as the continuation of a sentence about the run."""
    allowed = _risk_words(risk, shortest(risk.budget))
    if risk.value_lower > risk.budget:
        return f"does not keep {allowed}: it is at least {down(risk.value_lower)}{chance}"
    return f"could not be certified to keep {allowed}"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None

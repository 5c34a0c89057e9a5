"""The risk budget of a certificate in words."""

from __future__ import annotations

from pyaccount.records.certificate import RiskRecord
from pyaccount.rounding import down, shortest, up


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

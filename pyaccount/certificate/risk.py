"""The budget of risk in a certificate: what is certified of it, in which words, and what may not contradict it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pyaccount.certificate.inconsistency import Inconsistency, at, is_number
from pyaccount.certificate.model import RiskRecord
from pyaccount.directions import DIRECTIONS
from pyaccount.risk.budget import Enclosure, attained_at_least
from pyaccount.risk.budgets import BUDGETS
from pyaccount.rounding import down, plain, up

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyaccount.certificate.model import CertificateModel, Directions, Guarantee
    from pyaccount.risk.budget import Budget, Points

#: What rounding may do to numbers that follow from others.
ROUNDING = 1e-9
#: To how much the range of a Gaussian budget is the same on all machines: it is rounded to four digits.
RANGE = 1.1e-3


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


def risk_inconsistencies(data: CertificateModel, risk: RiskRecord) -> Iterator[Inconsistency]:
    """The block against the document, the guarantee and the profile."""
    stated = at(data.document, "privacy", "risk")
    if not isinstance(stated, dict):
        yield Inconsistency("risk", "the document has no budget of risk")
        return
    for name, field in (("budget", risk.measure), ("false_positive_rate", "false_positive_rate")):
        if getattr(risk, name) != stated.get(field):
            yield Inconsistency(
                f"risk.{name}", f"{getattr(risk, name)!r}, where the document says {stated.get(field)!r}"
            )
            return
    if risk.delta != _told_at(data.document, stated):
        yield Inconsistency("risk.delta", f"{risk.delta!r}, which is not the δ at which the document has ε told")
        return
    budget = _budget(risk)
    if budget is None:
        yield Inconsistency("risk.measure", "not a budget that a document can have")
        return
    yield from _of_budget(risk, budget)
    if data.holds != (risk.value is not None and risk.value <= risk.budget):
        yield Inconsistency("holds", f"{data.holds}, where the risk is {risk.value!r} and the budget {risk.budget!r}")
    if risk.value is not None and risk.value_lower > risk.value:
        yield Inconsistency("risk.value_lower", "above the value")
    if risk.epsilon is not None and risk.epsilon_lower > risk.epsilon:
        yield Inconsistency("risk.epsilon_lower", "above epsilon")
    yield from (_composed if data.evidence.sampling is None else _sampled)(data, risk, budget)


def _of_budget(risk: RiskRecord, budget: Budget) -> Iterator[Inconsistency]:
    details: dict[str, float | None] = {"false_positive_rate": None, "last_epsilon": None, "least_rate": None}
    for name, value in (details | budget.details()).items():
        found = getattr(risk, name)
        if found is None or value is None:
            agrees = found is value
        else:
            # The end of a range is rounded, and a rate falls faster than the range grows.
            far = {"last_epsilon": RANGE, "least_rate": 1.0}.get(name, 0.0)
            agrees = abs(found - value) <= far * value
        if not agrees:
            yield Inconsistency(f"risk.{name}", f"{found!r}, where the budget makes it {value!r}")


def _composed(data: CertificateModel, risk: RiskRecord, budget: Budget) -> Iterator[Inconsistency]:
    """The guarantee is what is told of ε, and no point of the profile refutes the value."""
    guarantee = data.guarantee
    for name in ("epsilon", "epsilon_lower", "delta"):
        if getattr(risk, name) != getattr(guarantee, name):
            yield Inconsistency(f"risk.{name}", f"not the guarantee's, {getattr(guarantee, name)!r}")
    last = math.inf if risk.last_epsilon is None else risk.last_epsilon
    points = {
        side: sorted(
            {Enclosure(one.epsilon, one.delta_lower, one.delta) for one in ends.profile if one.epsilon <= last}
        )
        for side, ends in zip(DIRECTIONS, (data.directions.remove, data.directions.add), strict=True)
    }
    whole = all(ends and ends[0].epsilon == 0.0 for ends in points.values())
    if whole and risk.value is not None and attained_at_least(budget, points) > risk.value * (1.0 + ROUNDING):
        yield Inconsistency("risk.value", "refuted by the points of the profile")


def _sampled(data: CertificateModel, risk: RiskRecord, budget: Budget) -> Iterator[Inconsistency]:
    """Value and lower end follow from the guarantee, which was tested."""
    for name, found in zip(
        ("value", "value_lower"), from_guarantee(budget, data.guarantee, data.directions), strict=True
    ):
        stated = getattr(risk, name)
        if stated is None or abs(stated - found) > ROUNDING * found:
            yield Inconsistency(f"risk.{name}", f"{stated!r}, where the guarantee makes it {found!r}")


def _budget(risk: RiskRecord) -> Budget | None:
    """The budget of a block; None where no document has such a one."""
    from pyaccount.document import Risk  # few certificates have a budget of risk

    said: dict[str, Any] = {risk.measure: risk.budget, "false_positive_rate": risk.false_positive_rate}
    stated = Risk.model_construct(None, **said)
    return next((found for budget in BUDGETS if (found := budget.of(stated, risk.delta)) is not None), None)


def _told_at(document: dict[str, Any], stated: dict[str, Any]) -> float:
    """The δ at which a document has ε told."""
    from pyaccount.document.risk import usual_delta  # few certificates have a budget of risk

    given = stated.get("report_delta")
    if given is not None and is_number(given):
        return float(given)
    phases = document.get("phases")
    bodies = phases if isinstance(phases, list) else [document]
    sizes = [at(body, "training", "dataset_size") for body in bodies]
    return float(usual_delta(max((int(size) for size in sizes if is_number(size)), default=None)))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None

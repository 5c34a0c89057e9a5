"""The total of a block: the certificate of its fixed entries composed with the whole budgets of its filters.

What is spent in a filter is told in the terms of its budget, rounded in the direction that keeps the statement true.
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pyaccount.document.data_set import DataSet, load_data_set
from pyaccount.document.loading import load
from pyaccount.document.mechanisms.base import rounded_up
from pyaccount.document.words import VERSION
from pyaccount.ledger.events import canonical
from pyaccount.ledger.state import EntryCost, KeptDataSet, Total, limit_of, measure_of
from pyaccount.plan.compiled import COMPOSED_TOLERANCE
from pyaccount.rounding import down, up

if TYPE_CHECKING:
    from pyaccount.document.document import Document

Phases = list[dict[str, Any]]

#: What the measures of budgets are called.
SYMBOLS = {
    "epsilon": "ε",
    "rho": "ρ",
    "mu": "μ",
    "gaussian_mu": "μ",
    "advantage": "advantage",
    "true_positive_rate": "true-positive rate",
}


def total_of(kept: KeptDataSet, fixed: Iterable[Phases]) -> Total | None:
    """Return the total of a block with these fixed entries. None if all entries count in one filter, which bounds itself.

    Its ε is that of the certificate of the joint document, without the other numbers of a certificate. Raises `DocumentError` for
    phases that no bound is implemented for together.
    """
    data_set = kept.data_set
    if data_set.filtered:
        return None
    phases = [phase for entry in fixed for phase in entry]
    if not phases and not kept.filters:
        return Total(0.0, 0.0, 0.0)
    if not phases and (added := _added(data_set)) is not None:
        return added
    joint = merged([*phases, *(rule.phase() for rule in kept.filters.values())])
    return _certified(kept.text, canonical(joint))


def _added(data_set: DataSet) -> Total | None:
    """Return Σε and Σδ of the filters if all of them are of this kind and the budget has their Σδ; None otherwise.

    The guarantee of several mechanisms that are (ε, δ)-differentially private is at most this (basic composition), and this sum
    is exact where a composition of profiles is rounded up.
    """
    budgets = list(data_set.filters.values())
    if data_set.way != "epsilon" or not all("epsilon" in budget for budget in budgets):
        return None
    epsilon, delta = _sum(budget["epsilon"] for budget in budgets), _sum(budget["delta"] for budget in budgets)
    assert data_set.privacy.delta is not None
    return Total(epsilon, epsilon, data_set.privacy.delta) if delta <= data_set.privacy.delta else None


def _sum(numbers: Iterable[float]) -> float:
    """Return the sum, rounded up only if it is not a double."""
    exact = sum(map(Fraction, numbers), Fraction(0))
    near = float(exact)
    return near if Fraction(near) >= exact else math.nextafter(near, math.inf)


@lru_cache(maxsize=128)
def _certified(document: str, joint: str) -> Total:
    """Return the total of phases, as text. What was computed is kept, since a reservation is often decided several times."""
    data_set, phases = load_data_set(json.loads(document)), json.loads(joint)
    privacy = data_set.privacy
    if privacy.risk is not None:
        return _attacked(data_set, phases)
    from pyaccount.execute.engine import Engine, Question, asked_at  # numerics are needed only for totals
    from pyaccount.plan.compiling import compile_document

    assert privacy.delta is not None
    whole = _joint(data_set, {"epsilon": "solve", "delta": privacy.delta}, phases)
    instance, engine, budget = compile_document(whole).at(), Engine(), limit_of(data_set)
    bounds = instance.composed()
    question = Question(None, asked_at(bounds, privacy.delta), COMPOSED_TOLERANCE)
    answer = engine.ask(bounds, question)
    if answer.upper > budget:
        # What takes longer is asked only if the budget depends on it.
        bounds = instance.bounds()
        answer = engine.ask(bounds, question)
    if answer.lower <= budget < answer.upper:
        # The interval of ε contains the budget, so ask for δ at the budget itself.
        at_budget = engine.ask(bounds, Question(budget, None, COMPOSED_TOLERANCE))
        if at_budget.upper <= privacy.delta:
            return Total(budget, budget, privacy.delta)
    return Total(answer.upper, answer.upper, privacy.delta)


def _attacked(data_set: DataSet, phases: Phases) -> Total:
    """Return the total of a limit on attacks, which a certificate measures."""
    from pyaccount.running import compile_document

    risk = data_set.privacy.risk
    assert risk is not None
    joint = _joint(data_set, {"risk": risk.model_dump(exclude_none=True)}, phases)
    certificate = compile_document(joint).run().data
    assert certificate.risk is not None
    value = certificate.risk.value
    if value is None:
        # No bound on the measure is known, so nothing fits.
        value = math.inf
    return Total(value, certificate.guarantee.epsilon, certificate.guarantee.delta)


def _joint(data_set: DataSet, target: dict[str, Any], phases: Phases) -> Document:
    return load(
        {
            "pyaccount": VERSION,
            "name": "fixed entries and whole filters",
            "privacy": data_set.privacy_mapping() | target,
            "phases": phases,
        }
    )


def merged(phases: Phases) -> Phases:
    """Return the phases without names, equal ones as one that is run several times. Their composition is the same."""
    kept: Phases = []
    counts: dict[str, int] = {}
    bodies: dict[str, dict[str, Any]] = {}
    for phase in phases:
        body = {key: value for key, value in copy.deepcopy(phase).items() if key not in ("name", "count")}
        key = canonical(body)
        if any(word in key for word in _DRAWN_FOR_EACH):
            kept.append(body | {key: phase[key] for key in ("count",) if key in phase})
            continue
        bodies[key] = body
        counts[key] = counts.get(key, 0) + int(phase.get("count", 1))
    return [*kept, *(body if counts[key] == 1 else body | {"count": counts[key]} for key, body in bodies.items())]


#: A phase that is run several times has the same parts, strata and clients each time, and two phases need not.
_DRAWN_FOR_EACH = ('"parallel"', '"strata"', '"clients"')


def total_words(data_set: DataSet, total: Total) -> str:
    """Return a total in words, rounded up: `ε ≤ 3.2 at δ = 1e-6`."""
    if data_set.privacy.risk is None:
        return f"ε ≤ {up(total.value)} at δ = {up(total.delta)}"
    return f"{SYMBOLS[measure_of(data_set)]} ≤ {up(total.value)}"


def limits(budget: Mapping[str, Any]) -> list[tuple[str, float]]:
    """Return the numbers of a filter's budget, each with its name: ε and δ, ρ, μ, or one divergence for each order."""
    if "renyi" in budget:
        # The filter counts in the order of its orders.
        points = sorted(budget["renyi"], key=lambda point: float(point["order"]))
        return [(f"D_{point['order']:g}", float(point["epsilon"])) for point in points]
    if "epsilon" in budget:
        return [("ε", float(budget["epsilon"])), ("δ", float(budget.get("delta", 0.0)))]
    return [("μ", float(budget["mu"]))] if "mu" in budget else [("ρ", float(budget["rho"]))]


def measured(budget: Mapping[str, Any], cost: EntryCost, *, left: bool = False) -> list[tuple[str, float]]:
    """Return the costs of a filter in the terms of its budget, each with its name.

    A filter of μ adds squares, so its square root is returned, rounded up, or down if it is what is left.
    """
    names = [name for name, _ in limits(budget)]
    return list(zip(names, [_root(cost[0], left=left)] if "mu" in budget else cost, strict=True))


def _root(square: float, *, left: bool) -> float:
    root, exact = math.sqrt(square), Fraction(square)
    if left and Fraction(root) ** 2 > exact:
        return math.nextafter(root, 0.0)
    return math.nextafter(root, math.inf) if not left and Fraction(root) ** 2 < exact else root


def spent_words(budget: Mapping[str, Any], cost: EntryCost, *, left: bool = False) -> str:
    """Return a cost in words, such as `μ = 0.3`: rounded up, or down if it is what is left."""
    rounded = down if left else up
    parts: Sequence[str] = [f"{name} = {rounded(value, 4)}" for name, value in measured(budget, cost, left=left)]
    return ", ".join(parts if len(parts) <= 3 else (parts[0], "…", parts[-1]))


def shares(budget: Mapping[str, Any], cost: EntryCost) -> list[float]:
    """Return the part of a filter's budget that a cost takes in each of its terms, rounded up. They add up over entries."""
    parts = []
    for value, (_, limit) in zip(cost, limits(budget), strict=True):
        # The decimal that the document states, as the filter reads it.
        exact = Fraction(repr(limit)) ** 2 if "mu" in budget else Fraction(repr(limit))
        parts.append(rounded_up(Fraction(value) / exact) if exact else 0.0 if not value else 1.0)
    return parts

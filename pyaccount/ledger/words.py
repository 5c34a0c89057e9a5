"""What is spent in a filter, in words: in the terms of its budget, rounded in the direction that keeps the statement true."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from pyaccount.document.mechanisms.base import rounded_up
from pyaccount.ledger.state import EntryCost
from pyaccount.rounding import down, up


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

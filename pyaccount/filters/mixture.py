"""A filter for one (ε, δ) that weighs several Rényi orders, and the choice of a filter for a budget.

**Proof.** The filter admits an entry if, with it, the odometer's ε at the time of stopping is at most ε at δ: the condition
is Σ_j (w_j/κ_j) exp((a_j − 1)(ε − R(a_j))) ≥ 1/δ, in the costs alone, which are known before the entry is released. So it
holds whenever everything ends, and then E_P[(1 − e^{ε−L_τ})_+] ≤ δ (`odometer`). That is (ε, δ)-DP, for both directions. ∎

Against the best of the orders, chosen by an oracle, the mean costs at most ln(1/w_j)/(a_j − 1) in ε. A Rényi filter with a
budget for each order, by contrast, stops for the order that is used up first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from pyaccount.filters.base import Filter
from pyaccount.filters.odometer import Odometer
from pyaccount.filters.sums import left_down
from pyaccount.rounding import shortest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyaccount.certificate.certificate import Certificate
    from pyaccount.document.document import Document


@dataclass(frozen=True, slots=True)
class MixtureFilter(Filter):
    """Admit entries while the weighted mean over Rényi orders proves (ε, δ). What is spent is R(a) for each order, in nats."""

    epsilon: float
    delta: float
    odometer: Odometer
    called: ClassVar[str] = "the filter of several Rényi orders"

    @property
    def terms(self) -> tuple[str, ...]:
        """Return the orders, in words."""
        return tuple(f"ε of order {shortest(order)}" for order in self.odometer.orders)

    @property
    def nothing(self) -> tuple[float, ...]:
        """Return what is spent before the first entry: 0 at every order."""
        return self.odometer.nothing

    def cost(self, entry: Document | Certificate) -> tuple[float, ...]:
        """Return upper bounds on the divergences of an entry at the orders, in nats. Raises as `Filter.cost`."""
        return self.odometer.cost(entry)

    def admits(self, spent: tuple[float, ...], cost: tuple[float, ...]) -> bool:
        """Return whether (ε, δ) is proven with another entry."""
        return self.odometer.keeps(self.after(spent, cost), self.epsilon, self.delta)

    def remaining(self, spent: tuple[float, ...]) -> tuple[float, ...]:
        """Return by how much ε exceeds the odometer's ε at δ, rounded down: one number for all orders together."""
        return (left_down(self.epsilon, self.odometer.stopped(spent, self.delta)),)

    def phase(self) -> dict[str, Any]:
        """Return a mechanism that is (ε, δ)-DP."""
        return {"mechanism": {"kind": "stated", "epsilon": self.epsilon, "delta": self.delta}}

    def mapping(self) -> dict[str, Any]:
        """Return the budget with its orders and weights, as `mixture_of` reads it."""
        orders, weights = list(self.odometer.orders), list(self.odometer.weights)
        return {"epsilon": self.epsilon, "delta": self.delta, "orders": orders, "weights": weights}


def mixture_of(mapping: Mapping[str, Any]) -> MixtureFilter:
    """Return the filter that `MixtureFilter.mapping` describes.

    Raises `KeyError`, `TypeError` and `ValueError` (`DomainError` is one) for another mapping.
    """
    odometer = Odometer(tuple(map(float, mapping["orders"])), tuple(map(float, mapping["weights"])))
    return MixtureFilter(float(mapping["epsilon"]), float(mapping["delta"]), odometer)

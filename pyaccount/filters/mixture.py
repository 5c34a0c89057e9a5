"""A filter for one (ε, δ) that weighs several Rényi orders, and the choice of a filter for a budget.

**Proof.** The filter admits an entry if, with it, the odometer's ε at the time of stopping is at most ε at δ: the condition
is Σ_j (w_j/κ_j) exp((a_j − 1)(ε − R(a_j))) ≥ 1/δ, in the costs alone, which are known before the entry is released. So it
holds whenever everything ends, and then E_P[(1 − e^{ε−L_τ})_+] ≤ δ (`odometer`). That is (ε, δ)-DP, for both directions. ∎

Against the best of the orders, chosen by an oracle, the mean costs at most ln(1/w_j)/(a_j − 1) in ε. A Rényi filter with a
budget for each order, by contrast, stops for the order that is used up first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pyaccount.certificate.certificate import Certificate
from pyaccount.document.document import Document
from pyaccount.errors import DomainError
from pyaccount.filters.base import Filter, left_down
from pyaccount.filters.cut import cut_costs
from pyaccount.filters.odometer import Odometer
from pyaccount.rounding import shortest


@dataclass(frozen=True, slots=True)
class MixtureFilter(Filter):
    """Admit entries while the weighted mean over Rényi orders proves (ε, δ). What is spent is R(a) for each order, in nats.

    With a `cut`, losses above it are cut off, and their probabilities may add up to `cut_delta`, which is a part of δ (`cut`).
    The probability that was spent is then the last number.
    """

    epsilon: float
    delta: float
    odometer: Odometer
    cut: float | None = None
    cut_delta: float = 0.0
    called: ClassVar[str] = "the filter of several Rényi orders"

    def __post_init__(self) -> None:
        if not 0.0 <= self.cut_delta < self.delta or (self.cut is None) != (self.cut_delta == 0.0):
            raise DomainError(
                f"cut_delta = {self.cut_delta!r} is a part of delta = {self.delta!r}, and belongs to a cut"
            )

    @property
    def terms(self) -> tuple[str, ...]:
        """Return the orders, in words."""
        orders = (f"ε of order {shortest(order)}" for order in self.odometer.orders)
        return (*orders,) if self.cut is None else (*orders, "δ of large losses")

    @property
    def nothing(self) -> tuple[float, ...]:
        """Return what is spent before the first entry: 0 at every order."""
        return self.odometer.nothing if self.cut is None else (*self.odometer.nothing, 0.0)

    def cost(self, entry: Document | Certificate) -> tuple[float, ...]:
        """Return upper bounds on the divergences of an entry at the orders, in nats. Raises as `Filter.cost`."""
        return self.odometer.cost(entry) if self.cut is None else cut_costs(entry, self.odometer.orders, self.cut)

    def admits(self, spent: tuple[float, ...], cost: tuple[float, ...]) -> bool:
        """Return whether (ε, δ) is proven with another entry."""
        after = self.after(spent, cost)
        if self.cut is not None and after[-1] > self.cut_delta:
            return False
        return self.odometer.keeps(self._divergences(after), self.epsilon, self._rest(self.delta))

    def remaining(self, spent: tuple[float, ...]) -> tuple[float, ...]:
        """Return by how much ε exceeds the odometer's ε at δ, rounded down: one number for all orders together."""
        return (left_down(self.epsilon, self.stopped(spent, self.delta)),)

    def stopped(self, spent: tuple[float, ...], delta: float) -> float:
        """Return an ε such that what was released is (ε, δ)-DP in the sense of `Odometer.stopped`, whenever it ends.

        ∞ for a δ of which the losses that are cut off leave nothing.
        """
        rest = self._rest(delta)
        return self.odometer.stopped(self._divergences(spent), rest) if rest > 0.0 else math.inf

    def _rest(self, delta: float) -> float:
        """Return the part of δ that is not for losses that are cut off, rounded down."""
        return delta if self.cut is None else math.nextafter(delta - self.cut_delta, 0.0)

    def _divergences(self, spent: tuple[float, ...]) -> tuple[float, ...]:
        return spent if self.cut is None else spent[:-1]

    def phase(self) -> dict[str, Any]:
        """Return a mechanism that is (ε, δ)-DP."""
        return {"mechanism": {"kind": "stated", "epsilon": self.epsilon, "delta": self.delta}}

    def mapping(self) -> dict[str, Any]:
        """Return the budget with its orders and weights, as `mixture_of` reads it."""
        orders, weights = list(self.odometer.orders), list(self.odometer.weights)
        more = {} if self.cut is None else {"cut": self.cut, "cut_delta": self.cut_delta}
        return {"epsilon": self.epsilon, "delta": self.delta, "orders": orders, "weights": weights, **more}


def mixture_of(mapping: Mapping[str, Any]) -> MixtureFilter:
    """Return the filter that `MixtureFilter.mapping` describes.

    Raises `KeyError`, `TypeError` and `ValueError` (`DomainError` is one) for another mapping.
    """
    odometer = Odometer(tuple(map(float, mapping["orders"])), tuple(map(float, mapping["weights"])))
    cut, cut_delta = mapping.get("cut"), float(mapping.get("cut_delta", 0.0))
    return MixtureFilter(
        float(mapping["epsilon"]), float(mapping["delta"]), odometer, None if cut is None else float(cut), cut_delta
    )

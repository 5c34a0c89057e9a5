"""Odometers: ε at any time, for entries that are chosen adaptively, without a limit that was fixed beforehand.

Let L_t be the loss of the first t entries, P against Q, let ρ_i(a) bound the divergence D_a of the i-th entry given the
past, and let R_t(a) = Σ_{i≤t} ρ_i(a). For orders a_j and weights w_j that are fixed beforehand, Σ w_j = 1,

    M_t = Σ_j w_j exp((a_j − 1)(L_t − R_t(a_j)))

is a supermartingale under P with M_0 = 1, whatever the entries depend on: each term is (`renyi`), and sums are.

**At any time, simultaneously** (`always`; Whitehouse, Ramdas, Rogers & Wu 2023, arXiv:2203.05481). By Ville's inequality
P(M_t ≥ 1/δ for some t) ≤ δ. M_t is increasing in L_t, so with P-probability at least 1 − δ, for *all* t at once, L_t < ε_t,
where ε_t solves Σ_j w_j exp((a_j − 1)(ε_t − R_t(a_j))) = 1/δ. ε_t depends on costs alone. This is what Rogers, Roth, Ullman
& Vadhan 2016 (arXiv:1605.08294) ask of an odometer: whoever stops at a time τ of their own choice, looking at results and at
ε_t, has P(L_τ > ε_τ) ≤ δ, and hence P(B) ≤ E_Q[e^{ε_τ}; B] + δ for every event B: if ε_τ ≤ ε always, what was released until
τ is (ε, δ)-DP.

**At the time of stopping** (`stopped`). For the last statement less is needed: E_P[(1 − e^{ε_τ − L_τ})_+] ≤ δ. For every
order a, (1 − e^{−x})_+ ≤ κ_a·e^{(a−1)x} for all x, κ_a = (a−1)^{a−1}/a^a (the largest value of u^{a−1}(1 − u) for u in [0,
1]; Canonne, Kamath & Steinke 2020, arXiv:2004.00010). So with v_j = w_j/κ_j, Σ_j v_j exp((a_j−1)(L − R(a_j))) ≥ (1 −
e^{ε−L})_+·Σ_j v_j κ_j … more exactly, where ε solves Σ_j (w_j/κ_j)·exp((a_j − 1)(ε − R(a_j))) = 1/δ, every L has Σ_j w_j
exp((a_j − 1)(L − R(a_j))) ≥ (1 − e^{ε−L})_+·Σ_j (w_j/κ_j) exp((a_j − 1)(ε − R(a_j))) = (1 − e^{ε−L})_+/δ. Hence E_P[(1 −
e^{ε_τ−L_τ})_+] ≤ δ·E_P M_τ ≤ δ by optional stopping: for every event B, P(B) ≤ E_Q[e^{ε_τ}; B] + δ. This ε is smaller, as
κ_a < 1. It says nothing about all times at once: the same results, looked at later at another time, have another statement
of their own.

Both hold with P and Q exchanged, as ρ_i bounds both directions. Entries that are (ε_i, δ_i)-DP have no such odometer here:
for them Σ ε_i holds at Σ δ_i (`basic`), and Σ δ_i is no number that is fixed beforehand.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from pyaccount.certificate.certificate import Certificate
from pyaccount.document.document import Document
from pyaccount.errors import DomainError
from pyaccount.filters.base import log_sum, sum_up
from pyaccount.filters.renyi import divergences_of

#: A relative margin for logarithms of weights and factors and for their sum, which is far above their rounding.
_MARGIN = 2.0**-44
#: Bisection steps: enough for every digit of a double.
_STEPS = 70


@dataclass(frozen=True, slots=True)
class Odometer:
    """Orders greater than 1 with weights that sum to at most 1. What is spent is R(a) for each order, in nats."""

    orders: tuple[float, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        fits = len(self.orders) == len(self.weights) > 0 and min(self.orders) > 1.0 and min(self.weights) > 0.0
        if not fits or math.fsum(self.weights) > 1.0:
            raise DomainError(
                "an odometer has orders greater than 1, each with a positive weight; the weights sum to at most 1"
            )

    @property
    def nothing(self) -> tuple[float, ...]:
        """Return what is spent before the first entry."""
        return (0.0,) * len(self.orders)

    def cost(self, entry: Document | Certificate) -> tuple[float, ...]:
        """Return upper bounds on the divergences of an entry at the orders. Raises as `Filter.cost`."""
        return divergences_of(entry, self.orders)

    def after(self, spent: tuple[float, ...], cost: tuple[float, ...]) -> tuple[float, ...]:
        """Return what is spent after another entry, rounded up."""
        return tuple(map(sum_up, spent, cost))

    def always(self, spent: tuple[float, ...], delta: float) -> float:
        """Return an ε that the loss exceeds at no time, with probability at least 1 − δ over all times together.

        ∞ if every divergence is infinite. Raises `DomainError` for a δ outside (0, 1).
        """
        return self._solved(spent, delta, [0.0] * len(self.orders))

    def stopped(self, spent: tuple[float, ...], delta: float) -> float:
        """Return an ε such that what was released is (ε, δ)-DP in the sense P(B) ≤ E_Q[e^ε; B] + δ, whenever it ends.

        ∞ if every divergence is infinite. Raises `DomainError` for a δ outside (0, 1).
        """
        return self._solved(spent, delta, [_log_gain(order) for order in self.orders])

    def keeps(self, spent: tuple[float, ...], epsilon: float, delta: float) -> bool:
        """Return whether `stopped` is proven to be at most ε."""
        gains = [_log_gain(order) for order in self.orders]
        return self._at_least(spent, epsilon, -math.log(delta), gains)

    def _at_least(self, spent: tuple[float, ...], epsilon: float, wanted: float, gains: list[float]) -> bool:
        """Return whether the logarithm of the weighted mean at ε is proven to be at least `wanted`."""
        terms, size = [], 1.0 + abs(wanted)
        for order, weight, used, gain in zip(self.orders, self.weights, spent, gains, strict=True):
            if used == math.inf:
                continue
            exponent = (order - 1.0) * (epsilon - used)
            error = (order - 1.0) * (epsilon + used) * 2.0**-50
            terms.append(math.log(weight) + gain + exponent - error)
            size = max(size, abs(gain) + abs(math.log(weight)))
        return bool(terms) and log_sum(terms) - _MARGIN * size >= wanted

    def _solved(self, spent: tuple[float, ...], delta: float, gains: list[float]) -> float:
        """Return the least double found at which the mean is proven to be at least 1/δ."""
        if not 0.0 < delta < 1.0:
            raise DomainError(f"delta = {delta!r} is outside its domain: greater than 0 and less than 1")
        wanted = -math.log(delta)
        # One order alone reaches 1/δ there.
        ends = [
            used + max(0.0, wanted - math.log(weight) - gain) / (order - 1.0)
            for order, weight, used, gain in zip(self.orders, self.weights, spent, gains, strict=True)
        ]
        low, high = 0.0, min(ends) * (1.0 + _MARGIN) + _MARGIN
        if high == math.inf:
            return math.inf
        while not self._at_least(spent, high, wanted, gains):
            low, high = high, high * (1.0 + 2.0**-20) + 2.0**-40
        if self._at_least(spent, low, wanted, gains):
            return low
        for _ in range(_STEPS):
            middle = low + (high - low) / 2.0
            if not low < middle < high:
                break
            low, high = (low, middle) if self._at_least(spent, middle, wanted, gains) else (middle, high)
        return high


def _log_gain(order: float) -> float:
    """Return ln(1/κ_a) = a·ln a − (a − 1)·ln(a − 1), at most that."""
    return order * math.log(order) - (order - 1.0) * math.log(order - 1.0)

"""The choice of a filter and of an odometer for a budget (ε, δ), by the first round.

The first round was described before anything was released, so that whatever follows from its description and from the budget
is fixed beforehand. No choice made here can make a promise false; it decides how much fits into the budget.

**Gaussian noise without sampling**: the Gaussian filter with the largest μ whose profile keeps the budget, δ_μ(ε) ≤ δ. It is
exact, and nothing is lost by choosing adaptively.

**Everything else**: the mean over Rényi orders (`mixture`). For rounds like the first one, with the divergences ρ(a), order
a alone admits (ε − ln(κ_a/δ)/(a − 1))/ρ(a) rounds. The order that admits most gets three quarters of the weight, and the
other orders equal parts of the rest. They are spread geometrically around it, by a factor of four, so that entries of
another kind find a nearly best order too. Against the best of these orders, chosen by an oracle, the mean costs at most
ln(1/w)/(a − 1) in ε.

**Cuts** (`cut`): where large losses that hardly ever occur use up the budget, a part of δ is set aside for them. Some cuts
and parts are tried, by the same count of rounds, and one is used if it admits a tenth more than the best order without a
cut.

**δ = 0**: the filter in (ε, δ) terms, which adds ε.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction

from pyaccount.document.document import Document
from pyaccount.document.mechanisms.base import rounded_up
from pyaccount.document.ranges import MECHANISM_MU
from pyaccount.errors import DocumentError
from pyaccount.filters.base import Filter, released
from pyaccount.filters.basic import BasicFilter
from pyaccount.filters.cut import cut_costs
from pyaccount.filters.gaussian import INSTEAD, GaussianFilter
from pyaccount.filters.mixture import MixtureFilter
from pyaccount.filters.odometer import Odometer
from pyaccount.filters.renyi import divergences_of
from pyaccount.risk.gaussian import gaussian_terms

#: The weight of the best order; how far the rest is from it, as a factor of a − 1, and how many orders are on each side.
_BEST, _SPREAD, _SIDE = 0.75, 4.0, 4
#: How far from a first guess orders are tried, as a factor of a − 1, and how many on each side.
_TRIED, _TRIALS = 8.0, 12
#: The largest order that is tried.
_LARGEST = 1024.0
#: The cuts that are tried, in nats, and the parts of δ that are set aside for larger losses.
_CUTS = tuple(0.05 * 1.3**k for k in range(20))
_SHARES = (0.1, 0.3)
#: A cut is used only if it admits more rounds by this factor.
_WORTH = 1.1
#: The relative precision of μ.
_PRECISE = 1e-10


def filter_for(first: Document, epsilon: float, delta: float) -> Filter:
    """Return a filter for the budget (ε, δ) and rounds like the first one. Raises as `Filter.cost`."""
    if delta == 0.0:
        return BasicFilter(epsilon, 0.0)
    sides = [side for phase in released(first, INSTEAD) for _, side in phase.compositions()]
    if all(part.closed for side in sides for part, _ in side):
        mu = largest_mu(epsilon, delta)
        if mu in MECHANISM_MU:
            return GaussianFilter(mu)
    plain, rounds = _without_cut(first, epsilon, delta)
    cut, cut_rounds = _with_cut(first, epsilon, delta)
    if cut is not None and (plain is None or cut_rounds > _WORTH * rounds):
        return cut
    if plain is None:
        # This raises why no order has a bound.
        divergences_of(first, (2.0,))
        raise AssertionError("some order has a bound")
    return plain


def largest_mu(epsilon: float, delta: float) -> float:
    """Return nearly the largest μ, from below, with δ_μ(ε) ≤ δ: N(μ, 1) against N(0, 1) is (ε, δ)-DP.

    It is below the largest one by a relative 1e-9 at most, and below the range of documents if every μ there is too large.
    """
    low, high = 0.0, float(MECHANISM_MU.maximum)
    if gaussian_terms(high, epsilon).most <= delta:
        return high
    while high - low > _PRECISE * high and high > MECHANISM_MU.minimum:
        middle = (low + high) / 2.0
        low, high = (middle, high) if gaussian_terms(middle, epsilon).most <= delta else (low, middle)
    # Rounded down: with twelve digits, documents show the number itself.
    return float(f"{low * (1.0 - 5e-10):.12g}")


def _without_cut(first: Document, epsilon: float, delta: float) -> tuple[MixtureFilter | None, float]:
    """Return a filter for a budget and rounds like the first one, and how many its best order admits; None without bounds."""
    known: dict[float, float] = {}

    def available(order: float) -> bool:
        if order not in known:
            with suppress(DocumentError):
                (known[order],) = divergences_of(first, (order,))
        return order in known

    tried = [order for order in _tried(epsilon, delta) if available(order)]
    if not tried:
        return None, 0.0
    rounds = {order: _rounds(order, known[order], epsilon, delta) for order in tried}
    best = max(tried, key=lambda order: rounds[order])
    return MixtureFilter(epsilon, delta, _weighted(best, available)), rounds[best]


def _with_cut(first: Document, epsilon: float, delta: float) -> tuple[MixtureFilter | None, float]:
    """Return the filter with the best of some cuts, and how many rounds like the first one its best order admits."""
    orders = tuple(_tried(epsilon, delta))
    found: tuple[MixtureFilter | None, float] = None, 0.0
    for cut in _CUTS:
        try:
            *divergences, large = cut_costs(first, orders, cut)
        except DocumentError:
            return None, 0.0
        for share in _SHARES:
            reserved = share * delta
            most = reserved / large if large > 0.0 else math.inf
            for order, cost in zip(orders, divergences, strict=True):
                rounds = min(most, _rounds(order, cost, epsilon, delta - reserved))
                if rounds > found[1]:
                    odometer = _weighted(order, lambda _: True)
                    found = MixtureFilter(epsilon, delta, odometer, cut, reserved), rounds
    return found


def _tried(epsilon: float, delta: float) -> list[float]:
    """Return the orders that are tried, around the one that is best for a Gaussian mechanism of little noise."""
    return _around(1.0 + 2.0 * math.log(1.0 / delta) / max(epsilon, 1e-6), _TRIED, _TRIALS)


def gaussian_odometer(epsilon: float, delta: float) -> Odometer:
    """Return orders and weights for Gaussian entries, D_a = aμ²/2, and a budget with δ > 0."""
    mu = max(largest_mu(epsilon, delta), float(MECHANISM_MU.minimum))
    return _weighted(_whole(1.0 + math.sqrt(2.0 * math.log(1.0 / delta)) / mu), lambda _: True)


def gaussian_divergences(odometer: Odometer, square: float) -> tuple[float, ...]:
    """Return the divergences aμ²/2 of Gaussian entries with this Σ μ_i², rounded up."""
    return tuple(rounded_up(Fraction(repr(order)) * Fraction(square) / 2) for order in odometer.orders)


def _weighted(best: float, available: Callable[[float], bool]) -> Odometer:
    """Return the odometer of an order and of those around it."""
    further = [order for order in _around(best, _SPREAD, _SIDE) if order != best and available(order)]
    if not further:
        return Odometer((best,), (1.0,))
    # Rounded down, so that the weights do not exceed 1 together.
    share = math.nextafter((1.0 - _BEST) / len(further), 0.0)
    orders = sorted([best, *further])
    return Odometer(tuple(orders), tuple(_BEST if order == best else share for order in orders))


def _around(middle: float, factor: float, side: int) -> list[float]:
    """Return orders around one, in geometric steps of a − 1 up to a factor."""
    return sorted({_whole(1.0 + (middle - 1.0) * factor ** (k / side)) for k in range(-side, side + 1)})


def _whole(order: float) -> float:
    """Return a whole order near one, at most the largest that is tried; an eighth below 2."""
    if order < 1.9375:
        return max(1.125, round(order * 8.0) / 8.0)
    return min(_LARGEST, float(max(2, round(order))))


def _rounds(order: float, cost: float, epsilon: float, delta: float) -> float:
    """Return how many rounds of this cost an order alone admits: an estimate, for the choice of orders only."""
    log_kappa = (order - 1.0) * math.log(order - 1.0) - order * math.log(order)
    room = epsilon - max(0.0, log_kappa - math.log(delta)) / (order - 1.0)
    return room / max(cost, 1e-300)

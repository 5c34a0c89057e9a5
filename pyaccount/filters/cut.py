"""Rényi divergences of rounds whose largest losses are cut off and paid for with δ.

At the orders that a small ε needs, the divergence of a sampled round may be dominated by losses that hardly ever occur. Let
η bound the probability of a loss above τ, and let ρ(a) bound ln E_P[e^{(a−1)L}; L ≤ τ]/(a − 1).

**Proof** that a filter may add η and ρ(a) (the approximate filters of Whitehouse, Ramdas, Rogers & Wu 2023,
arXiv:2203.05481). By Blackwell's theorem each entry is, given the past, a randomised function of an outcome of its
dominating pair; the adversary is given that outcome, which only helps. Call an entry cut if its outcome has a loss above τ.
While no entry was cut, M_t = Σ_j w_j exp((a_j − 1)(L_t − R_t(a_j))), and 0 from the first cut on, is a supermartingale under
P, as in `odometer`. The probability under P that an entry is ever cut is at most E_P Σ η_i, over the entries until then, and
Σ η_i ≤ δ_0 if the filter keeps it below δ_0 whatever is released. So at the end E_P[(1 − e^{ε−L})_+] ≤ δ_0 + E_P[(1 −
e^{ε−L})_+; no cut] ≤ δ_0 + δ_1, where the mean over orders keeps (ε, δ_1). ∎ For an odometer the same holds at δ_0 + δ_1,
within a filter that keeps Σ η_i ≤ δ_0.

**The law of the losses.** Between nodes t_i = e^{x_i} the chords of upper bounds on H_t, and among them their lower convex
hull, are a convex function above H_t: the profile of a pair whose ratio P/Q has the values t_i, with Q-masses q_i that are
the changes of its slope, and P-masses t_i q_i. It dominates the round. E_P[e^{(a−1)L}; L ≤ τ] is Σ q_i t_i^a over t_i ≤ e^τ,
and beyond a node with the slope −s of the hull on its right, η = H + t·s. An error e_i of a slope changes Σ q_i t_i^a by at
most e_i·(t_{i+1}^a − t_i^a), or, for the last slope, by e_i·t_N^a; these are added.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

from pyaccount.certificate.certificate import Certificate
from pyaccount.document.document import Document
from pyaccount.document.mechanisms.base import rounded_up
from pyaccount.filters.base import PricedPhase, log_sum, released, sum_up, words_of
from pyaccount.filters.renyi import INSTEAD, divergence
from pyaccount.profiles import ProfileKind

#: The spacing of nodes, absolutely, and relative to the distance from 0 or to the usual loss.
_SPACING, _FINE = 5e-4, 0.02
#: The nodes reach from here, and to this far beyond the cut.
_FIRST, _BEYOND = -12.0, 0.5
#: The largest cut.
LARGEST = 10.0
#: The rounding of a node of the hull, relatively, and a relative margin for exponentials and sums.
_UNITS, _MARGIN = 2.0**-50, 2.0**-40


@dataclass(frozen=True, slots=True)
class _Law:
    """A pair of finite laws that dominates a round: the hull of its profile at nodes of ln(P/Q)."""

    nodes: tuple[float, ...]
    heights: tuple[float, ...]
    #: −slope of the hull right of each node but the last.
    slopes: tuple[float, ...]

    def cut(self, order: float, last: int) -> float:
        """Return an upper bound on ln E_P[e^{(a−1)L}; L ≤ x], x the node with this index."""
        powers = [order * x for x in self.nodes[: last + 1]]
        terms = [
            math.log(mass) + power
            for mass, power in ((self._mass(index), power) for index, power in enumerate(powers))
            if mass > 0.0
        ]
        # Errors of slopes, by parts.
        for index, (below, above) in enumerate(pairwise(powers)):
            terms.append(math.log(self._error(index)) + above + math.log1p(-math.exp(below - above)))
        terms.append(math.log(self._error(last)) + powers[-1])
        return log_sum(terms) + _MARGIN * (1.0 + abs(powers[-1]))

    def beyond(self, last: int) -> float:
        """Return an upper bound on P(L > x), x the node with this index."""
        if self.heights[last] == 0.0:
            return 0.0
        x = math.exp(self.nodes[last])
        return min(1.0, (self.heights[last] + x * (self.slopes[last] + self._error(last))) * (1.0 + _MARGIN))

    def _mass(self, index: int) -> float:
        """Return the mass of Q at a node: the change of the slope there. Left of the first one the chord from (0, 1) goes on."""
        before = self.slopes[index - 1] if index else (1.0 - self.heights[0]) / math.exp(self.nodes[0])
        return max(0.0, before - self.slopes[index])

    def _error(self, index: int) -> float:
        """Return a bound on the rounding of the slope right of a node."""
        step = math.exp(self.nodes[index]) * math.expm1(self.nodes[index + 1] - self.nodes[index])
        return _UNITS * (self.heights[index] + self.heights[index + 1]) / step + 1e-300


@lru_cache(maxsize=64)
def _law_of(part: ProfileKind) -> _Law:
    """Return a law that dominates a profile."""
    profile = part.build()
    usual = max(1e-6, profile.delta(0.0)[1])

    def steps(end: float) -> list[float]:
        nodes = [0.0]
        while nodes[-1] < end:
            nodes.append(nodes[-1] + min(_SPACING * (1.0 + nodes[-1] * 20.0), _FINE * max(usual, nodes[-1])))
        return nodes

    nodes = [-x for x in reversed(steps(-_FIRST))] + steps(LARGEST + _BEYOND)[1:]
    points: list[tuple[float, float, float]] = []
    for x in nodes:
        t, height = math.exp(x), min(1.0, profile.delta(x)[1])
        while len(points) > 1 and _above(points[-2], points[-1], (t, height)):
            points.pop()
        points.append((t, height, x))
    slopes = tuple((a[1] - b[1]) / (b[0] - a[0]) for a, b in pairwise(points))
    return _Law(tuple(point[2] for point in points), tuple(point[1] for point in points), slopes)


def _above(first: tuple[float, float, float], middle: tuple[float, float, float], last: tuple[float, float]) -> bool:
    """Return whether the middle point is on or above the chord of its neighbours, so that the hull leaves it out."""
    return (middle[1] - first[1]) * (last[0] - first[0]) >= (last[1] - first[1]) * (middle[0] - first[0])


@lru_cache(maxsize=1024)
def _cut(part: ProfileKind, orders: tuple[float, ...], cut: float) -> tuple[float, tuple[float, ...]] | None:
    """Return η and ρ(a) at each order for a round whose losses above `cut` are cut off: upper bounds, in its direction.

    η is 0 if the divergences without a cut are no larger. None if no bound is implemented.
    """
    known = [divergence(part, order) for order in orders]
    whole = tuple(math.nextafter(float(one), math.inf) for one in known if one is not None)
    if not part.has_losses:
        return (0.0, whole) if len(whole) == len(orders) else None
    try:
        law = _law_of(part)
    except AttributeError:  # the core has no profile for parts that stand for several
        return None
    last = max((index for index, x in enumerate(law.nodes[:-1]) if x <= cut), default=0)
    rho = tuple(max(0.0, law.cut(order, last)) / (order - 1.0) * (1.0 + _MARGIN) for order in orders)
    if len(whole) == len(orders) and all(one <= 1.01 * other for one, other in zip(whole, rho, strict=True)):
        return 0.0, whole
    return law.beyond(last), rho


def cut_costs(entry: Document | Certificate, orders: tuple[float, ...], cut: float) -> tuple[float, ...]:
    """Return ρ(a) of an entry at each order, in nats, and η as the last number: upper bounds for both directions.

    Raises as `Filter.cost`.
    """
    phases = [_worst(phase, orders, cut) for phase in released(entry, INSTEAD)]
    return tuple(sum_up(*terms) for terms in zip(*phases, strict=True))


def _worst(phase: PricedPhase, orders: tuple[float, ...], cut: float) -> tuple[float, ...]:
    """Return the same of a phase: for each number the worst kind of record and direction."""
    worst = [0.0] * (len(orders) + 1)
    for _, side in phase.compositions():
        totals = [Fraction(0)] * len(worst)
        for part, count in side:
            known = _cut(part, orders, cut)
            if known is None:
                raise phase.refused(
                    f"no bound is implemented for the losses of {words_of(part, phase.node)} in this filter. {INSTEAD}"
                )
            for index, number in enumerate((*known[1], known[0])):
                totals[index] += count * Fraction(number)
        worst = [max(one, rounded_up(other)) for one, other in zip(worst, totals, strict=True)]
    return tuple(worst)

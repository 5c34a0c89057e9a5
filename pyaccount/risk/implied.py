"""What points of a privacy profile prove about δ at every other ε, since δ(ε) is decreasing and convex in e^ε.

Write h(x) = H_x(P‖Q) = sup_S P(S) − x Q(S) for x ≥ 0. Each set S gives a non-increasing line in x, so the supremum is
convex and non-increasing, and h(0) = 1. A point (ε, δ) of the direction *remove* says h(e^ε) ≤ δ. One of *add* says
Q(S) − e^ε P(S) ≤ δ for every S, and with P(S) = 1 − P(Sᶜ) and Q(S) = 1 − Q(Sᶜ)

    h(e^{−ε}) = sup_S P(S) − e^{−ε} Q(S) = 1 − e^{−ε} + e^{−ε} sup_S (Q(Sᶜ) − e^ε P(Sᶜ)) ≤ 1 − e^{−ε} + e^{−ε} δ.

So δ at ε is at most the bound of any point at a smaller x, and at most the chord, **in x and not in ε**, between two
points on either side of e^ε (a chord in ε would be too low). With P and Q exchanged the same holds for *add*.

If each point holds only with some probability, a bound holds if all points that it uses do: two for a chord.

**Rounding.** The weights of a chord are positive factors of differences d of exponents: e^d is off by |d| units more
than its own rounding, 1 − e^d by fewer than three, and there are some ten other roundings. Values are moved up by
`SLACK`, which is 32 units, for each nat of the longest difference and for four more.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from pyaccount.risk.tradeoff import SLACK, Bound


class _Node(NamedTuple):
    """An upper bound `height` on h at x = e^`place`."""

    place: float
    height: float


def implied(own: Iterable[Bound], other: Iterable[Bound], epsilon: float) -> float:
    """Return a proven upper bound on δ at `epsilon` ≥ 0 in one direction, from points of this direction and the other.

    It is rounded up, and 1 if the points prove nothing.
    """
    nodes = [_Node(-math.inf, 1.0), *map(_Node._make, own)]
    # This is 1 − e^{−ε}(1 − δ) as a sum of positive terms.
    nodes += [_Node(-place, (-math.expm1(-place) + math.exp(-place) * delta) * (1.0 + SLACK)) for place, delta in other]
    left = [node for node in nodes if node.place <= epsilon]
    best = min(node.height for node in left)
    for low in left:
        for high in nodes:
            if high.place > epsilon and high.height < best:
                best = min(best, _chord(low, high, epsilon))
    return min(1.0, best)


def _chord(low: _Node, high: _Node, place: float) -> float:
    """Return the height of the chord at e^place; the weight of its right end is (x − x_low)/(x_high − x_low)."""
    whole = -math.expm1(low.place - high.place)
    # The weights are (x_high − x)/x_high and (x − x_low)/x_high, each divided by (x_high − x_low)/x_high.
    right = math.exp(place - high.place) * -math.expm1(low.place - place) / whole
    left = -math.expm1(place - high.place) / whole
    return (left * low.height + right * high.height) * (1.0 + (4.0 + high.place - place) * SLACK)

"""Bounds every attack: the trade-off between the two errors of a test, from points of the privacy profile.

Let P be the law of the outcome with the sensitive records and Q that without them. An attacker sees the outcome and
says "they took part" on a set S. The false-positive rate is α = Q(S), the true-positive rate P(S), the false-negative
rate β = 1 − P(S).

**The two constraints.** A point (ε, δ) of the direction *remove* says H_{e^ε}(P‖Q) ≤ δ, that is, P(S) ≤ e^ε Q(S) + δ
for every S. A point of the direction *add* says H_{e^ε}(Q‖P) ≤ δ, and the complement of S gives 1 − α = Q(Sᶜ) ≤ e^ε
P(Sᶜ) + δ = e^ε β + δ. So

    β ≥ 1 − δ − e^ε α          for the points of *remove*,
    β ≥ e^{−ε} (1 − δ − α)     for the points of *add*

(Wasserman & Zhou 2010, Theorem 2.4; Dong, Roth & Su 2022, Propositions 2.5 and 2.12, where both directions share a
profile). A randomised test mixes sets, and both constraints are linear, so they also hold for it. The maximum of all
these lines and 0 is convex, decreasing and at most 1 − α: a trade-off function below that of every neighbouring pair.
Points between two given ones would add nothing, since δ is convex in e^ε and the line of a point on a chord is a
mixture of the lines at its ends.

**Rounding.** The lines are written with positive terms only, so a few roundings cost a few units in the last place.
Each value is moved by `SLACK`, which is more, in the direction that keeps it a bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from pyaccount.arguments import number_of
from pyaccount.forks import cached_property

#: A bound on the relative rounding of any value here: five roundings and two exponentials.
SLACK = 2.0**-48
#: The largest ε for which e^ε is a double.
OVERFLOW = 709.0


class Bound(NamedTuple):
    """An upper bound `delta` on δ at this ε."""

    epsilon: float
    delta: float


class Line(NamedTuple):
    """The bound `slope`·α + `intercept` on the true-positive rate; `excess` is slope − 1 without cancellation."""

    slope: float
    intercept: float
    excess: float


@dataclass(frozen=True)
class TradeOff:
    """The certified trade-off function of a run, for a test for "the records took part".

    `remove` and `add` are points of the privacy profile in each direction: upper bounds on δ.
    """

    remove: tuple[Bound, ...]
    add: tuple[Bound, ...]

    @property
    def swapped(self) -> TradeOff:
        """The trade-off function for a test for "the records were absent": P and Q, and the directions, exchanged."""
        return TradeOff(self.add, self.remove)

    @property
    def symmetric(self) -> bool:
        """Whether the certified bounds for presence and for absence are equal."""
        return set(self.remove) == set(self.add)

    def true_positive_rate(self, alpha: float) -> float:
        """Return an upper bound on the true-positive rate at the false-positive rate `alpha` in [0, 1].

        It is min(1, min_remove e^ε α + δ, min_add 1 − e^{−ε}(1 − δ − α)): proven, rounded up. Raises `DomainError`.
        """
        alpha = number_of("alpha", alpha, "from 0 to 1", 0.0, math.nextafter(1.0, 2.0))
        if alpha == 0.0:
            # At α = 0 an infinite slope does not matter.
            least = min(line.intercept for line in self._lines)
        else:
            least = min([intercept + slope * alpha for slope, intercept, _ in self._lines])
        return min(1.0, least * (1.0 + SLACK))

    def false_negative_rate(self, alpha: float) -> float:
        """Return the trade-off function: a lower bound on the false-negative rate β at the false-positive rate `alpha`.

        `alpha` is in [0, 1]. The result is 1 minus the bound on the true-positive rate, so its absolute error is below
        1e-14: proven, rounded down. Raises `DomainError`.
        """
        return max(0.0, math.nextafter(1.0 - self.true_positive_rate(alpha), -1.0))

    def advantage(self) -> float:
        """Return an upper bound on the membership advantage: the largest true-positive minus false-positive rate.

        This is the maximum over S of P(S) − Q(S), the total variation δ(0). A line of *remove* and one of *add*, less
        α, cross at height

            (b δ_r + a c)/(a + b),  a = e^{ε_r} − 1,  b = 1 − e^{−ε_a},  c = b + e^{−ε_a} δ_a,

        which is an upper bound, as c alone is. Any pair of lines gives a bound; the largest gap of the certified curve
        is where its slope passes 1, so the lines next to that point give the best bound. Proven, rounded up.
        """
        lines = _envelope(self._lines)
        best = min(line.intercept for line in lines if line.excess <= 0.0)
        position = next(k for k, line in enumerate(lines) if line.excess <= 0.0)
        if position > 0:
            a, delta, b, c = (
                lines[position - 1].excess,
                lines[position - 1].intercept,
                -lines[position].excess,
                lines[position].intercept,
            )
            # Written as a weighted mean, so that products of the smallest doubles do not vanish.
            best = min(best, b / (a + b) * delta + a / (a + b) * c)
        return min(1.0, best * (1.0 + SLACK))

    def vertices(self) -> list[tuple[float, float]]:
        """Return the corners of the certified curve by rising α: (false-positive rate, bound on true-positive rate)."""
        lines = _envelope(self._lines)
        corners = [(right.intercept - left.intercept) / (left.excess - right.excess) for left, right in pairwise(lines)]
        inside = [alpha for alpha in corners if 0.0 < alpha < 1.0]
        return [(alpha, self.true_positive_rate(alpha)) for alpha in (0.0, *inside, 1.0)]

    @cached_property
    def _lines(self) -> list[Line]:
        lines = [Line(0.0, 1.0, -1.0)]
        for epsilon, delta in self.remove:
            # A line of infinite slope says nothing except at α = 0.
            steep = epsilon >= OVERFLOW
            lines.append(
                Line(math.inf if steep else math.exp(epsilon), delta, math.inf if steep else math.expm1(epsilon))
            )
        for epsilon, delta in self.add:
            shrink, fall = math.exp(-epsilon), -math.expm1(-epsilon)
            # This is 1 − e^{−ε}(1 − δ) as a sum of positive terms.
            lines.append(Line(shrink, fall + shrink * delta, -fall))
        return lines


def _envelope(lines: Sequence[Line]) -> list[Line]:
    """Return the lines that form the minimum of all lines, from left to right, that is, by falling slopes."""
    best: dict[float, Line] = {}
    for line in lines:
        if math.isfinite(line.slope) and line.intercept < best.get(line.excess, Line(0.0, math.inf, 0.0)).intercept:
            best[line.excess] = line
    kept: list[Line] = []
    for line in sorted(best.values(), key=lambda line: -line.excess):
        while len(kept) > 1 and _useless(kept[-2], kept[-1], line):
            kept.pop()
        kept.append(line)
    return kept


def _useless(left: Line, middle: Line, right: Line) -> bool:
    """Return whether `middle` is above the crossing of its neighbours; slopes fall from `left` to `right`."""
    one = (right.intercept - left.intercept) * (left.excess - middle.excess)
    other = (middle.intercept - left.intercept) * (left.excess - right.excess)
    return one <= other

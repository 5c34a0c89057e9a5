"""The curve of the phases that compose, with which every sample of the other phases is weighed.

Let (P₀, Q₀) be the product of dominating pairs of the composed phases and D(x) = H_{e^x}(P₀‖Q₀). The core needs D at
nodes on both sides of 0. To the right, D(x) is the composed δ(x) of the same direction. To the left, D(x) = 1 − e^x +
e^x·H_{e^−x}(Q₀‖P₀), with the composed δ(−x) of the other direction.

One pair serves both directions: each phase's profile in one direction and the reflection of its profile in the other
bound the mechanism for every α, so the largest convex function below both does too, and that is the profile of a pair.
Products of such pairs dominate the phases in any order, adaptively chosen (Zhu, Dong & Wang 2022, Theorem 10), and
composition is monotone, so the composition in either direction lies above them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from pyaccount import _core
from pyaccount.directions import DIRECTIONS, Direction
from pyaccount.execute.engine import Engine, Question, finite
from pyaccount.plan.common import given
from pyaccount.plan.rounds import DirectedBounds, reversed_rounds
from pyaccount.profiles import Rounds
from pyaccount.profiles.base import Recipe

#: Nodes on each side of 0.
NODES = 1024
#: The relative width of the bounds on D at the nodes.
TOLERANCE = 1e-3
#: The curve ends where D is below this share of δ; its mass beyond that is added to δ.
IGNORED_SHARE = 1e-6
#: The same if δ is not known beforehand, as a share of δ of the composed phases alone; and the least δ resolved.
UNKNOWN_SHARE, LEAST_IGNORED = 1e-4, 1e-40
#: The least and the largest reach of the curve.
REACH = (1e-6, 500.0)

#: (lower, upper) bounds.
Pair = tuple[float, float]


@dataclass(frozen=True, slots=True)
class ComposedProfile:
    """The curve in each direction that is sampled, with its reach, spacing and cost."""

    curves: dict[Direction, Recipe[_core.ComposedCurve]]
    reach: float
    spacing: float
    compositions: int

    @property
    def nodes(self) -> int:
        """The number of nodes of one curve."""
        return 2 * NODES + 1

    @property
    def tail_mass(self) -> float:
        """The mass of D beyond the curve, in the worse direction."""
        return max(curve.core.tail_mass for curve in self.curves.values())

    @property
    def relative_gap(self) -> float:
        """The largest relative distance between the bounds on D at a node."""
        return max(curve.core.gap for curve in self.curves.values())


def ignored(engine: Engine, bounds: DirectedBounds, *, epsilon: float | None, delta: float | None) -> float:
    """Return the δ at which the curve ends, for a claim of which one of ε and δ is given."""
    if delta is not None:
        return max(IGNORED_SHARE * delta, 1e-270)
    # δ is never smaller than that of the composed phases alone.
    alone = engine.ask(bounds, Question(given(epsilon), None, 0.1)).lower
    return min(max(UNKNOWN_SHARE * alone, LEAST_IGNORED), IGNORED_SHARE)


def composed_profile(
    engine: Engine, bounds: DirectedBounds, directions: tuple[Direction, ...], end: float
) -> ComposedProfile:
    """Return the curves of the composed phases, up to where their δ is `end`. Raises `LimitError`, `NumericsError`."""
    reach = finite(engine.ask(bounds, Question(None, end, 0.1))).upper
    spacing = _rounded(min(max(reach, REACH[0]), REACH[1]) / NODES)
    epsilons = [k * spacing for k in range(NODES + 1)]
    wanted: dict[tuple[Rounds, ...], int] = {}
    for direction in DIRECTIONS:
        upper, lower = bounds[direction].upper, bounds[direction].lower
        for rounds in (upper, lower, reversed_rounds(lower)):
            if rounds is not None:
                wanted.setdefault(rounds, len(wanted))
    found = engine.curves([(rounds, epsilons) for rounds in wanted], TOLERANCE, end)

    def points(rounds: tuple[Rounds, ...]) -> list[Pair]:
        return found[wanted[rounds]].points

    def above(direction: Direction) -> list[float]:
        other: Direction = "add" if direction == "remove" else "remove"
        right, left = points(bounds[direction].upper), points(bounds[other].upper)
        return [most for _, most in _joined(epsilons, right, lambda k: _reflected(epsilons[k], left[k]))]

    def below(direction: Direction) -> list[Pair]:
        rounds = bounds[direction].lower
        right, reversal = points(rounds), reversed_rounds(rounds)
        if reversal is not None:
            left = points(reversal)
            return _joined(epsilons, right, lambda k: _reflected(epsilons[k], left[k]))
        # A convex function with D(e^−∞) = 1 lies between 1 − α and its chord to α = 1; no more is known of it.
        return _joined(epsilons, right, lambda k: _reflected(epsilons[k], (0.0, right[0][1])))

    def curve(direction: Direction) -> Recipe[_core.ComposedCurve]:
        if direction == "replace":
            # Either a record or its replacement may be the first; the sampled pair is the same both ways.
            most = [max(pair) for pair in zip(above("remove"), above("add"), strict=True)]
            least = below("remove")
        else:
            most, least = above(direction), below(direction)
        return Recipe("ComposedCurve", (-NODES * spacing, spacing, tuple(most), tuple(least)))

    compositions = sum(curve.compositions for curve in found)
    return ComposedProfile({d: curve(d) for d in directions}, NODES * spacing, spacing, compositions)


def _rounded(spacing: float) -> float:
    """Return the spacing, rounded up to 20 bits, so that its multiples are exact and nodes lie where δ was composed."""
    mantissa, exponent = math.frexp(spacing)
    return math.ldexp(math.ceil(math.ldexp(mantissa, 20)), exponent - 20)


def _joined(epsilons: list[float], right: list[Pair], left: Callable[[int], Pair]) -> list[Pair]:
    """Return values at the nodes from left to right."""
    return [*(left(k) for k in range(len(epsilons) - 1, 0, -1)), *right]


def _reflected(epsilon: float, other: Pair) -> Pair:
    """Return bounds on 1 − α + αδ for α = e^−ε, widened for three roundings of terms that are not negative."""
    shrink, rest = math.exp(-epsilon), -math.expm1(-epsilon)
    below, above = (rest + shrink * delta for delta in other)
    return below * (1.0 - 1e-15), min(1.0, above * (1.0 + 1e-15))

"""Bound the risk of a composition from points of its profile; points are added where they matter until it is narrow."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyaccount.directions import DIRECTIONS, Direction
from pyaccount.plan.rounds import DirectedBounds, alternatives_of, reversed_rounds
from pyaccount.risk.budget import Budget, Enclosure, Points, attained_at_least

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyaccount.execute.engine import Engine
    from pyaccount.profiles import Rounds

#: The largest number of passes that add points, and the width of δ at them relative to the width asked for.
PASSES, SHARE = 12, 0.25
#: Adding points goes on while it narrows the interval to at most this share of its width before.
STALLED = 0.8
#: A measure that is at least this many times the limit need not be known more precisely.
HOPELESS = 4.0


@dataclass(frozen=True, slots=True)
class MeasuredRisk:
    """A proven interval for a measure of risk."""

    budget: Budget
    lower: float
    upper: float
    #: Whether the interval is as narrow as asked for.
    within_tolerance: bool


def risk_of_bound(engine: Engine, bounds: DirectedBounds, budget: Budget, tolerance: float) -> MeasuredRisk:
    """Return the risk of the rounds that bound the mechanism from above; its upper end bounds the mechanism's risk.

    If records are of several kinds, it is the largest risk of one kind: an attack is about records of one kind.
    """
    found = [
        _narrowed(engine, {side: one[side].upper for side in DIRECTIONS}, budget, tolerance, budget.at_least)
        for one in alternatives_of(bounds)
    ]
    worst = max(found, key=lambda risk: (risk.upper, risk.lower))
    return replace(worst, lower=max(risk.lower for risk in found))


def risk_attained(engine: Engine, bounds: DirectedBounds, budget: Budget, tolerance: float) -> float:
    """Return a lower bound on the mechanism's risk: that of two data sets, or of the bound itself if it is attained."""
    return max(_attained(engine, one, budget, tolerance) for one in alternatives_of(bounds))


def _attained(engine: Engine, bounds: DirectedBounds, budget: Budget, tolerance: float) -> float:
    """Return a lower bound on the risk for records of one kind."""
    rounds = {side: bounds[side].lower for side in DIRECTIONS}

    def at_least(points: Points) -> float:
        # If both directions are about the same two data sets, the points of both can be used together.
        one_pair = reversed_rounds(rounds["remove"]) == rounds["add"]
        return budget.at_least(points) if one_pair else attained_at_least(budget, points)

    return _narrowed(engine, rounds, budget, tolerance, at_least).lower


def _narrowed(
    engine: Engine,
    rounds: Mapping[Direction, tuple[Rounds, ...]],
    budget: Budget,
    tolerance: float,
    at_least: Callable[[Points], float],
) -> MeasuredRisk:
    known: dict[Direction, dict[float, Enclosure]] = {side: {} for side in DIRECTIONS}
    wanted, width = dict.fromkeys(DIRECTIONS, budget.places()), math.inf
    for _ in range(PASSES):
        # Directions with the same composition share their points.
        asked = list(dict.fromkeys((rounds[side], wanted[side]) for side in wanted))
        found = dict(zip(asked, engine.curves(asked, SHARE * tolerance, budget.negligible), strict=True))
        for side, epsilons in wanted.items():
            for epsilon, (lower, upper) in zip(epsilons, found[rounds[side], epsilons].points, strict=True):
                known[side][epsilon] = Enclosure(epsilon, lower, min(1.0, upper))
        points = {side: [known[side][epsilon] for epsilon in sorted(known[side])] for side in DIRECTIONS}
        least, most = at_least(points), budget.at_most(points)
        if least > HOPELESS * budget.limit:
            return MeasuredRisk(budget, min(least, most), most, within_tolerance=False)
        width, before = most - least, width
        within = width <= tolerance * most
        # If more points hardly narrow the interval, its width comes from that of δ at the points themselves.
        wanted = {} if within or width > STALLED * before else budget.finer(points, tolerance)
        if not wanted:
            break
    return MeasuredRisk(budget, min(least, most), most, within)

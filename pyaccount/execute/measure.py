"""The risk of a composition: points of its profile, more and more where they decide, until the interval is narrow."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyaccount.directions import DIRECTIONS
from pyaccount.plan.rounds import reversed_rounds
from pyaccount.risk.budget import Enclosure, attained_at_least

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyaccount.directions import Direction
    from pyaccount.execute.engine import Engine
    from pyaccount.plan.rounds import DirectedBounds, Rounds
    from pyaccount.risk.budget import Budget, Points

#: How often points are added, and the width of δ at them relative to that asked for.
PASSES, SHARE = 12, 0.25
#: More points are worth their price while they narrow the interval to this share of what it was.
STALLED = 0.8
#: A measure that is so many times the limit need not be known more closely.
HOPELESS = 4.0


@dataclass(frozen=True, slots=True)
class MeasuredRisk:
    """A proven interval of a measure."""

    budget: Budget
    lower: float
    upper: float
    #: Whether it is as narrow as asked for.
    within_tolerance: bool


def risk_of_bound(engine: Engine, bounds: DirectedBounds, budget: Budget, tolerance: float) -> MeasuredRisk:
    """The measure of what bounds the mechanism from above, to a relative width: its upper end is one for the mechanism."""
    rounds = {side: bounds[side].upper for side in DIRECTIONS}
    return _narrowed(engine, rounds, budget, tolerance, budget.at_least)


def risk_attained(engine: Engine, bounds: DirectedBounds, budget: Budget, tolerance: float) -> float:
    """The measure of the mechanism is at least this: that of two data sets, or of the bound itself where it is attained."""
    rounds = {side: bounds[side].lower for side in DIRECTIONS}

    def at_least(points: Points) -> float:
        # Of the same two data sets in both directions all that is known can be used together.
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
        # Directions that are one composition share their points.
        asked = list(dict.fromkeys((rounds[side], wanted[side]) for side in wanted))
        found = dict(zip(asked, engine.curves(asked, SHARE * tolerance, budget.negligible), strict=True))
        for side, places in wanted.items():
            for place, (lower, upper) in zip(places, found[rounds[side], places][0], strict=True):
                known[side][place] = Enclosure(place, lower, min(1.0, upper))
        points = {side: [known[side][place] for place in sorted(known[side])] for side in DIRECTIONS}
        least, most = at_least(points), budget.at_most(points)
        if least > HOPELESS * budget.limit:
            return MeasuredRisk(budget, min(least, most), most, within_tolerance=False)
        width, before = most - least, width
        within = width <= tolerance * most
        # What more points hardly narrow is as wide as δ is at the points themselves.
        wanted = {} if within or width > STALLED * before else budget.finer(points, tolerance)
        if not wanted:
            break
    return MeasuredRisk(budget, min(least, most), most, within)

"""Compute more points of a composed profile, so close that the chords between them cannot be seen in a picture.

Between two points of a profile their chord is an upper bound, since δ is convex in x = e^ε. Where δ decreases like
x^{−s}, a chord over a distance h in ε lies above δ by up to s(s + 1)h²/8, relatively, and in ln δ by no more than δ
falls, sh. The distance is chosen for the smaller of the two. Where the points lie affects only the picture: each point
is a bound of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from pyaccount.directions import DIRECTIONS, Direction
from pyaccount.execute.engine import Engine
from pyaccount.plan.rounds import DirectedBounds
from pyaccount.rounding import up

#: How far a chord may lie above the profile: as a share of the height of a picture of ln δ, and in ln δ where the
#: picture of attacks shows it, that is, for error rates of at least `SEEN`.
SHARE, NEAR, SEEN = 5e-4, 0.02, 1e-7
#: Up to this ε the lines of slopes e^ε of the trade-off curve can be seen; neighbouring ε differ by at most `TURN`.
SLOPES, TURN = 3.0, 0.1
#: How much further down a picture goes where a profile ends, because δ is 0 from the largest loss on.
BELOW = 1e-3
#: The largest number of points of one direction, and the significant digits of ε and δ.
MOST, EPSILON_DIGITS, DELTA_DIGITS = 300, 4, 6


class CurvePoint(NamedTuple):
    """An upper bound on δ at this ε."""

    epsilon: float
    delta: float


def curves(
    engine: Engine, bounds: DirectedBounds, known: Mapping[Direction, Sequence[CurvePoint]], tolerance: float
) -> dict[Direction, tuple[CurvePoint, ...]]:
    """Return each direction's points between the `known` ones of its profile: upper bounds, rounded up, decreasing."""
    floor, places = places_of_points(known)
    asked = list(dict.fromkeys((bounds[side].upper, places[side]) for side in DIRECTIONS if places[side]))
    found = dict(zip(asked, engine.curves(asked, tolerance, floor), strict=True)) if asked else {}
    return {
        side: curve_points(
            places[side], found[bounds[side].upper, places[side]].points if places[side] else [], known.get(side, ())
        )
        for side in DIRECTIONS
    }


def places_of_points(
    known: Mapping[Direction, Sequence[CurvePoint]],
) -> tuple[float, dict[Direction, tuple[float, ...]]]:
    """Return the least δ that the pictures show, and each direction's ε at which to compute more points."""
    floor = max((lowest(points) for points in known.values() if points), default=1.0)
    return floor, {side: points_between(known.get(side, ()), floor) for side in DIRECTIONS}


def curve_points(
    places: Sequence[float], answers: Sequence[tuple[float, float]], known: Sequence[CurvePoint]
) -> tuple[CurvePoint, ...]:
    """Return the points at these ε, from (lower, upper) bounds on δ there, none above a known point to its left."""
    points = [CurvePoint(epsilon, upper) for epsilon, (_, upper) in zip(places, answers, strict=True)]
    return tuple(_falling(points, known))


def lowest(points: Sequence[CurvePoint]) -> float:
    """Return the least δ that a picture of these points shows: the least positive one, or less if the last one is 0."""
    positive = [point.delta for point in points if point.delta > 0.0]
    return max(1e-300, min(positive, default=1.0) * (1.0 if len(positive) == len(points) else BELOW))


def points_between(points: Sequence[CurvePoint], floor: float) -> tuple[float, ...]:
    """Return each ε at which to compute a point, down to δ = `floor`; the module's docstring explains the distances."""
    ordered = [CurvePoint(epsilon, delta) for epsilon, delta in sorted(dict(points).items())]
    places = list(_places(ordered, floor, 1.0))
    if len(places) > MOST:
        # At twice the distance a chord lies four times as far above the profile.
        places = list(_places(ordered, floor, len(places) / MOST))
    taken = {point.epsilon for point in ordered}
    return tuple(sorted({float(f"{epsilon:.{EPSILON_DIGITS}g}") for epsilon in places} - taken))


def _places(points: Sequence[CurvePoint], floor: float, wider: float) -> Iterator[float]:
    coarse = max(NEAR, SHARE * -math.log(floor))
    falls = [_fall(left, right, floor) for left, right in pairwise(points)]
    for (left, right), fall, following in zip(pairwise(points), falls, [*falls[1:], *falls[-1:]], strict=True):
        # ln δ usually bends downwards, so at its right end it falls about as fast as the mean of this part and the next.
        steep = max(fall, 0.5 * (fall + following))
        if left.delta <= floor or steep <= 0.0:
            continue
        epsilon = left.epsilon
        while True:
            seen = left.delta * math.exp(-fall * (epsilon - left.epsilon)) >= SEEN
            above = NEAR if seen else coarse
            step = wider * max(math.sqrt(8.0 * above / (steep * (steep + 1.0))), above / steep)
            step = min(step, TURN) if seen and epsilon < SLOPES else step
            # Each part gets at most MOST points, also beside one that falls much faster, and no step is below a
            # double's.
            step = max(step, (right.epsilon - left.epsilon) / MOST)
            if epsilon + step == epsilon or epsilon + step > right.epsilon - 0.5 * step:
                break
            epsilon += step
            yield epsilon


def _fall(left: CurvePoint, right: CurvePoint, floor: float) -> float:
    """Return how fast ln δ falls between two points, in the picture."""
    above, below = max(left.delta, floor), max(right.delta, floor)
    return (math.log(above) - math.log(below)) / (right.epsilon - left.epsilon)


def _falling(points: Sequence[CurvePoint], known: Sequence[CurvePoint]) -> Iterator[CurvePoint]:
    """Yield the points, none above what is known at smaller ε, since δ decreases."""
    least, own = 1.0, set(points)
    for point in sorted([*points, *known]):
        if point in own:
            rounded = float(up(point.delta, DELTA_DIGITS))
            yield CurvePoint(point.epsilon, min(least, rounded))
            least = min(least, rounded)
        else:
            least = min(least, point.delta)

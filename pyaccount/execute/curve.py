"""More points of a composed profile: so many, and placed so, that nobody sees the chords between them in a picture.

What holds between two points of a profile is their chord, since δ is convex in x = e^ε. Where δ falls like x^{−s} a chord over a
distance h in ε lies above it by up to s(s + 1)h²/8, relatively, and in ln δ by no more than it falls, sh; the distance is chosen
for the smaller. Where the points lie is nothing but a choice: each is a bound by itself.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from pyaccount.directions import DIRECTIONS
from pyaccount.rounding import up

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyaccount.directions import Direction
    from pyaccount.execute.engine import Engine
    from pyaccount.plan.rounds import DirectedBounds

#: How far a chord may lie above the profile: as a share of the height of a picture of ln δ, and in ln δ where attacks that are
#: wrong at least as often as `SEEN` look at it.
SHARE, NEAR, SEEN = 5e-4, 0.02, 1e-7
#: Up to this ε the slopes e^ε of the trade-off curve's lines are seen by themselves, and differ by this factor at most.
SLOPES, TURN = 3.0, 0.1
#: How much further down a picture goes where a profile ends: from a largest loss on δ is 0.
BELOW = 1e-3
#: The most points of one direction, and their digits.
MOST, EPSILON_DIGITS, DELTA_DIGITS = 300, 4, 6


class CurvePoint(NamedTuple):
    """δ at most, at this ε."""

    epsilon: float
    delta: float


def curves(
    engine: Engine, bounds: DirectedBounds, known: Mapping[Direction, Sequence[CurvePoint]], tolerance: float
) -> dict[Direction, tuple[CurvePoint, ...]]:
    """For each direction the points between the `known` ones of its profile: proven, rounded up, falling."""
    floor, places = placed(known)
    asked = list(dict.fromkeys((bounds[side].upper, places[side]) for side in DIRECTIONS if places[side]))
    found = dict(zip(asked, engine.curves(asked, tolerance, floor), strict=True)) if asked else {}
    return {
        side: drawn(
            places[side], found[bounds[side].upper, places[side]][0] if places[side] else [], known.get(side, ())
        )
        for side in DIRECTIONS
    }


def placed(known: Mapping[Direction, Sequence[CurvePoint]]) -> tuple[float, dict[Direction, tuple[float, ...]]]:
    """Return how far down the pictures go, and where to look between the known points of each direction."""
    floor = max((lowest(points) for points in known.values() if points), default=1.0)
    return floor, {side: between(known.get(side, ()), floor) for side in DIRECTIONS}


def drawn(
    places: Sequence[float], answers: Sequence[tuple[float, float]], known: Sequence[CurvePoint]
) -> tuple[CurvePoint, ...]:
    """Return the points at these places from (lower, upper) bounds on δ there, each at most what is known left of it."""
    points = [CurvePoint(place, upper) for place, (_, upper) in zip(places, answers, strict=True)]
    return tuple(_falling(points, known))


def lowest(points: Sequence[CurvePoint]) -> float:
    """How far down a picture of these points goes: to the least δ that is not 0, and further where the last one is 0."""
    positive = [point.delta for point in points if point.delta > 0.0]
    return max(1e-300, min(positive, default=1.0) * (1.0 if len(positive) == len(points) else BELOW))


def between(points: Sequence[CurvePoint], floor: float) -> tuple[float, ...]:
    """Where to look between points of a profile, down to `floor`; see the head of this file."""
    ordered = [CurvePoint(epsilon, delta) for epsilon, delta in sorted(dict(points).items())]
    places = list(_places(ordered, floor, 1.0))
    if len(places) > MOST:
        # Twice as far apart, four times as far above.
        places = list(_places(ordered, floor, len(places) / MOST))
    taken = {point.epsilon for point in ordered}
    return tuple(sorted({float(f"{place:.{EPSILON_DIGITS}g}") for place in places} - taken))


def _places(points: Sequence[CurvePoint], floor: float, wider: float) -> Iterator[float]:
    coarse = max(NEAR, SHARE * -math.log(floor))
    falls = [_fall(left, right, floor) for left, right in pairwise(points)]
    for (left, right), fall, following in zip(pairwise(points), falls, [*falls[1:], *falls[-1:]], strict=True):
        # ln δ bends down, so at its right end it falls about as the mean of this part and the next.
        steep = max(fall, 0.5 * (fall + following))
        if left.delta <= floor or steep <= 0.0:
            continue
        place = left.epsilon
        while True:
            seen = left.delta * math.exp(-fall * (place - left.epsilon)) >= SEEN
            above = NEAR if seen else coarse
            step = wider * max(math.sqrt(8.0 * above / (steep * (steep + 1.0))), above / steep)
            step = min(step, TURN) if seen and place < SLOPES else step
            # Beside a part that falls much faster no more points than all may be; and no double lies between neighbours.
            step = max(step, (right.epsilon - left.epsilon) / MOST)
            if place + step == place or place + step > right.epsilon - 0.5 * step:
                break
            place += step
            yield place


def _fall(left: CurvePoint, right: CurvePoint, floor: float) -> float:
    """How fast ln δ falls between two points, in the picture."""
    above, below = max(left.delta, floor), max(right.delta, floor)
    return (math.log(above) - math.log(below)) / (right.epsilon - left.epsilon)


def _falling(points: Sequence[CurvePoint], known: Sequence[CurvePoint]) -> Iterator[CurvePoint]:
    """The points, each at most what is known at smaller ε: δ falls."""
    least, own = 1.0, set(points)
    for point in sorted([*points, *known]):
        if point in own:
            rounded = float(up(point.delta, DELTA_DIGITS))
            yield CurvePoint(point.epsilon, min(least, rounded))
            least = min(least, rounded)
        else:
            least = min(least, point.delta)

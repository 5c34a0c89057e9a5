"""Points of a profile that are read off few compositions: each serves its neighbours, as far as it is narrow there.

That is done where compositions are many or costly: where the rounds above a mechanism and those below it are not the same,
and where rounds are of many kinds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyaccount import _core
from pyaccount.directions import DIRECTIONS
from pyaccount.errors import NumericsError
from pyaccount.execute.engine import Answer, DirectedAnswer, Engine, Question

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyaccount.plan.rounds import DirectedBounds, Rounds

    #: (lower, upper) bounds on δ of laws, at each ε.
    Curves = Mapping[tuple[Rounds, ...], Mapping[float, tuple[float, float]]]


#: From so many kinds of rounds on a composition is costly.
MANY = 32


def shared(bounds: DirectedBounds) -> bool:
    """Return whether the points of a profile share their compositions."""
    return any(bounds[side].upper != bounds[side].lower or len(bounds[side].upper) >= MANY for side in DIRECTIONS)


def points_of(engine: Engine, bounds: DirectedBounds, points: Sequence[float], tolerance: float) -> tuple[Answer, ...]:
    """Return δ at each of these ε, to a relative width.

    Points that do not share their compositions are asked for one by one, side by side.
    """
    if not shared(bounds):
        return tuple(engine.ask_all([(bounds, Question(point, None, tolerance)) for point in points]))
    places = sorted(set(points))
    laws = [law for side in DIRECTIONS for law in (bounds[side].upper, bounds[side].lower)]
    read = read_laws(engine, dict.fromkeys(laws, places), tolerance)
    return tuple(answer_of(bounds, point, tolerance, read, read) for point in points)


def read_laws(engine: Engine, wanted: Mapping[tuple[Rounds, ...], Sequence[float]], tolerance: float) -> Curves:
    """Return the (lower, upper) bounds on δ of some laws at some ε each, ascending."""
    found = engine.curves(list(wanted.items()), tolerance, 0.0)
    return {
        law: dict(zip(places, curve, strict=True))
        for (law, places), (curve, _) in zip(wanted.items(), found, strict=True)
    }


def answer_of(bounds: DirectedBounds, epsilon: float, tolerance: float, lower: Curves, upper: Curves) -> Answer:
    """Return δ at ε, at least by the laws below and at most by those above."""
    directions = {}
    for side in DIRECTIONS:
        laws = bounds[side]
        # The laws below stand for those above while these are not read.
        above = upper[laws.upper if laws.upper in upper else laws.lower][epsilon]
        directions[side] = _between(lower[laws.lower][epsilon], above)
    return Answer(Question(epsilon, None, tolerance), directions)


def _between(below: tuple[float, float], above: tuple[float, float]) -> DirectedAnswer:
    """The lower end of what lies below, and the upper end of what lies above."""
    lower, upper = below[0], above[1]
    if lower > upper:
        raise NumericsError(f"the bounds cross ({lower!r} above {upper!r}): this is a defect, nothing is certified")
    return DirectedAnswer(lower, upper, _core.ProvenInterval.proven(*above), _core.ProvenInterval.proven(*below))

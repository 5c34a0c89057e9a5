"""Read points of a profile off few compositions: each also serves neighbouring points where its interval is narrow."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyaccount import _core
from pyaccount.directions import DIRECTIONS
from pyaccount.errors import NumericsError
from pyaccount.execute.engine import Answer, DirectedAnswer, Engine, Question

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyaccount.plan.rounds import DirectedBounds
    from pyaccount.profiles import Rounds

    #: (lower, upper) bounds on δ at each ε, for each law.
    Curves = Mapping[tuple[Rounds, ...], Mapping[float, tuple[float, float]]]


#: A δ below this part of the certified one is not resolved: nobody decides by it, and laws that are resolved around the certified
#: δ hardly say anything of it.
NEGLIGIBLE = 1e-6


def points_of(
    engine: Engine, bounds: DirectedBounds, points: Sequence[float], tolerance: float, ignored: float
) -> tuple[Answer, ...]:
    """Return δ at each of these ε, to a relative width where it is above `ignored`."""
    epsilons = sorted(set(points))
    laws = [law for side in DIRECTIONS for law in (bounds[side].upper, bounds[side].lower)]
    read = read_laws(engine, dict.fromkeys(laws, epsilons), tolerance, ignored)
    return tuple(answer_of(bounds, point, tolerance, read, read) for point in points)


def at_its_upper_end(engine: Engine, bounds: DirectedBounds, found: Answer, tolerance: float, ignored: float) -> Answer:
    """Return δ at the upper end of an answer for ε, to a relative width where it is above `ignored`.

    The laws of each direction are composed for the ε of this direction. Where it is far below the other one, that serves it too.
    """
    wanted: dict[tuple[Rounds, ...], set[float]] = {}
    for side in DIRECTIONS:
        for law in (bounds[side].upper, bounds[side].lower):
            wanted.setdefault(law, {found.upper}).add(found.directions[side].upper)
    asked = [(law, sorted(epsilons)) for law, epsilons in wanted.items()]
    curves = engine.curves(asked, tolerance, ignored)
    read = {
        law: dict(zip(epsilons, one.points, strict=True)) for (law, epsilons), one in zip(asked, curves, strict=True)
    }
    return replace(answer_of(bounds, found.upper, tolerance, read, read), work=sum(one.work for one in curves))


def read_laws(
    engine: Engine, wanted: Mapping[tuple[Rounds, ...], Sequence[float]], tolerance: float, ignored: float = 0.0
) -> Curves:
    """Return (lower, upper) bounds on δ for each law, at its ascending values of ε, to a relative width above `ignored`."""
    found = engine.curves(list(wanted.items()), tolerance, ignored)
    return {
        law: dict(zip(epsilons, curve.points, strict=True))
        for (law, epsilons), curve in zip(wanted.items(), found, strict=True)
    }


def answer_of(bounds: DirectedBounds, epsilon: float, tolerance: float, lower: Curves, upper: Curves) -> Answer:
    """Return the interval for δ at ε: its lower end from the laws below, its upper end from the laws above."""
    directions = {}
    for side in DIRECTIONS:
        laws = bounds[side]
        # Until the laws above are read, those below take their place (in a sketch).
        above = upper[laws.upper if laws.upper in upper else laws.lower][epsilon]
        directions[side] = _between(lower[laws.lower][epsilon], above)
    return Answer(Question(epsilon, None, tolerance), directions)


def _between(below: tuple[float, float], above: tuple[float, float]) -> DirectedAnswer:
    """Return the interval from the lower bound of the law below to the upper bound of the law above."""
    lower, upper = below[0], above[1]
    if lower > upper:
        raise NumericsError(
            f"the lower bound {lower!r} is above the upper bound {upper!r}: this is a defect, nothing is certified"
        )
    return DirectedAnswer(lower, upper, _core.ProvenInterval.proven(*above), _core.ProvenInterval.proven(*below))

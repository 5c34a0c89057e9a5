"""Read points of a profile off few compositions: each also serves neighbouring points where its interval is narrow.

**Long schedules**, with hundreds of kinds of rounds, are composed in groups: rounds that are nearly alike are bounded by the
worst (`pyaccount.plan.alike`). The rounds above the theorem's and those below it are composed separately. Their answers enclose
the exact one, and are narrowed until they are as close to one another as the tolerance requires.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pyaccount import _core
from pyaccount.directions import DIRECTIONS, Direction
from pyaccount.errors import NumericsError
from pyaccount.execute.curve import CurvePoint, curve_points, places_of_points
from pyaccount.execute.engine import Answer, DirectedAnswer, Engine, Question
from pyaccount.plan.alike import composed_alike
from pyaccount.plan.common import number
from pyaccount.plan.compiled import Instance
from pyaccount.plan.rounds import DirectedBounds
from pyaccount.profiles import Rounds
from pyaccount.risk.budgets import budget_of

if TYPE_CHECKING:
    Curves = Mapping[tuple[Rounds, ...], Mapping[float, tuple[float, float]]]
    Known = Mapping[Direction, Sequence[CurvePoint]]

#: A δ below this part of the certified one is not resolved: nobody decides by it, and laws that are resolved around the certified
#: δ hardly say anything of it.
NEGLIGIBLE = 1e-6


def points_of(
    engine: Engine, bounds: DirectedBounds, points: Sequence[float], tolerance: float, ignored: float
) -> tuple[Answer, ...]:
    """Return δ at each of these ε, to a relative width where it is above `ignored`."""
    epsilons = sorted(set(points))
    laws = [law for side in DIRECTIONS for law in (bounds[side].upper, bounds[side].lower)]
    read = _read_laws(engine, dict.fromkeys(laws, epsilons), tolerance, ignored)
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


def _read_laws(
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


#: The relative width of the δ intervals of a profile.
PROFILE_TOLERANCE = 1e-2
#: The share of the tolerance that the groups may use, and the tolerance of the groups' own compositions relative to it.
SHARE, FINER = 0.7, 0.4
#: How many widths of groups are tried before the rounds are composed without groups.
ATTEMPTS = 3
#: The width of δ in a profile per width of ε (δ changes by about this factor more, relatively), and the largest width.
STEEPNESS, COARSEST = 20.0, 0.1


def composable(
    instance: Instance, engine: Engine, tolerance: float, known: Answer | None
) -> tuple[DirectedBounds, Answer | None]:
    """Return the rounds to compose for a certificate, and the answer to its question if that is known.

    Long schedules are grouped as coarsely as the tolerance allows, or not at all if no grouping meets the tolerance.

    Args:
        instance: A plan that is not sampled.
        engine: The engine that composes.
        tolerance: The relative width of the interval for the ε or δ that is asked for.
        known: An earlier answer. It is returned as it is, and the width of groups is then only estimated, not checked.
    """
    if budget_of(instance.document) is not None:
        return instance.bounds(), known
    width = SHARE * tolerance
    question = asked(instance, tolerance)
    for _ in range(ATTEMPTS):
        bounds = instance.bounds(width)
        if known is not None or not composed_alike(bounds):
            return bounds, known
        answer = engine.ask(bounds, replace(question, tolerance=FINER * tolerance))
        if narrow(answer, tolerance):
            return bounds, answer
        width *= 0.7 * tolerance * answer.upper / (answer.upper - answer.lower)
    return instance.bounds(), None


def asked(instance: Instance, tolerance: float) -> Question:
    """Return the question that the claim answers: ε at the document's δ, or δ at its ε."""
    privacy = instance.document.privacy
    if privacy.delta != "solve" and (privacy.epsilon == "solve" or privacy.epsilon > 0.0):
        return Question(None, privacy.delta, tolerance)
    return Question(number(privacy.epsilon), None, tolerance)


def narrow(answer: Answer, tolerance: float) -> bool:
    """Return whether an interval is at most this wide, relative to its upper end."""
    return answer.upper - answer.lower <= tolerance * answer.upper


def profile_tolerance(bounds: DirectedBounds, tolerance: float) -> float:
    """Return the relative width of δ to ask for in a profile, for rounds that were composed to this tolerance for ε."""
    if not composed_alike(bounds):
        return PROFILE_TOLERANCE
    return max(PROFILE_TOLERANCE, min(COARSEST, STEEPNESS * tolerance))


def read_profile(
    engine: Engine,
    bounds: DirectedBounds,
    points: Sequence[float],
    known: Callable[[Sequence[Answer]], Known],
    tolerance: float,
) -> tuple[tuple[Answer, ...], dict[Direction, tuple[CurvePoint, ...]]]:
    """Return δ at each of these ε, and the points of the curves between them, for grouped rounds, by few compositions.

    Args:
        engine: The engine that composes.
        bounds: Rounds in groups.
        points: Each ε of the profile.
        known: Returns the known points of each direction's curve, given a profile.
        tolerance: The relative width asked for.
    """
    epsilons = sorted(set(points))
    lower = _read_laws(engine, {bounds[side].lower: epsilons for side in DIRECTIONS}, tolerance)
    # The curve is close to the one from the lower rounds, which shows where more points are needed.
    sketch = [answer_of(bounds, point, tolerance, lower, lower) for point in points]
    more = places_of_points(known(sketch))[1]
    wanted: dict[tuple[Rounds, ...], set[float]] = {}
    for side in DIRECTIONS:
        wanted.setdefault(bounds[side].upper, set(epsilons)).update(more[side])
    upper = _read_laws(engine, {law: sorted(all_places) for law, all_places in wanted.items()}, tolerance)
    profile = tuple(answer_of(bounds, point, tolerance, lower, upper) for point in points)
    ends = known(profile)
    lines = {
        side: curve_points(
            more[side], [upper[bounds[side].upper][epsilon] for epsilon in more[side]], ends.get(side, ())
        )
        for side in DIRECTIONS
    }
    return profile, lines

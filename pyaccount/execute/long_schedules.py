"""Group the rounds of long schedules: bound those that are nearly alike by the worst, as far as this is accurate.

Documents with hundreds of kinds of rounds need this. The rounds of `pyaccount.plan.alike` that lie above the theorem's
and those that lie below it are composed separately. Their answers enclose the exact one, and are narrowed until they
are as close to one another as the tolerance requires.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyaccount.directions import DIRECTIONS, Direction
from pyaccount.execute.curve import CurvePoint, curve_points, places_of_points
from pyaccount.execute.engine import Answer, Engine, Question
from pyaccount.execute.shared_points import answer_of, read_laws
from pyaccount.plan.alike import composed_alike
from pyaccount.plan.common import number
from pyaccount.risk.budgets import budget_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyaccount.plan.compiled import Instance
    from pyaccount.plan.rounds import DirectedBounds
    from pyaccount.profiles import Rounds

    #: The known points of each direction's curve.
    Known = Mapping[Direction, Sequence[CurvePoint]]

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
    lower = read_laws(engine, {bounds[side].lower: epsilons for side in DIRECTIONS}, tolerance)
    # The curve is close to the one from the lower rounds, which shows where more points are needed.
    sketch = [answer_of(bounds, point, tolerance, lower, lower) for point in points]
    more = places_of_points(known(sketch))[1]
    wanted: dict[tuple[Rounds, ...], set[float]] = {}
    for side in DIRECTIONS:
        wanted.setdefault(bounds[side].upper, set(epsilons)).update(more[side])
    upper = read_laws(engine, {law: sorted(all_places) for law, all_places in wanted.items()}, tolerance)
    profile = tuple(answer_of(bounds, point, tolerance, lower, upper) for point in points)
    ends = known(profile)
    lines = {
        side: curve_points(
            more[side], [upper[bounds[side].upper][epsilon] for epsilon in more[side]], ends.get(side, ())
        )
        for side in DIRECTIONS
    }
    return profile, lines

"""Documents with hundreds of kinds of rounds: how far those that are nearly alike are bounded by the worst of them.

The rounds of `pyaccount.plan.alike` that lie above the theorem's and those that lie below it are composed separately. Their
answers enclose the exact one, and are asked for until they are as close to one another as the tolerance says.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyaccount.directions import DIRECTIONS
from pyaccount.execute.curve import drawn, placed
from pyaccount.execute.engine import Answer, Engine, Question
from pyaccount.execute.shared_points import answer_of, read_laws
from pyaccount.plan.alike import composed_alike
from pyaccount.risk.budgets import budget_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyaccount.directions import Direction
    from pyaccount.execute.curve import CurvePoint
    from pyaccount.plan.compiled import Instance
    from pyaccount.plan.rounds import DirectedBounds, Rounds

    #: Points that are known of each direction's curve.
    Known = Mapping[Direction, Sequence[CurvePoint]]

#: The relative width of the δ intervals of a profile.
PROFILE_TOLERANCE = 1e-2
#: What part of the tolerance is for the groups, and how much narrower their own compositions are asked to be than the tolerance.
SHARE, FINER = 0.7, 0.4
#: Widths of groups that are tried before the rounds are composed as they are.
ATTEMPTS = 3
#: δ changes relatively by so many times the relative change of ε, roughly, and a profile is no finer; at most.
STEEPNESS, COARSEST = 20.0, 0.1


def composable(
    instance: Instance, engine: Engine, tolerance: float, known: Answer | None
) -> tuple[DirectedBounds, Answer | None]:
    """Return the rounds to compose for a certificate, and the answer to its question where that is known.

    Long schedules are grouped as coarsely as keeps the interval within the tolerance, and not at all where no groups do.

    Args:
        instance: A plan that is not sampled.
        engine: What is asked.
        tolerance: The relative width of the interval for the ε or δ that is asked for.
        known: An answer that was found before. It stands, and groups are as wide as is estimated to be right.
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
    """Return the question of which the claim is the answer: ε at the document's δ, or δ at its ε."""
    privacy = instance.document.privacy
    if privacy.delta != "solve" and (privacy.epsilon == "solve" or privacy.epsilon > 0.0):
        return Question(None, privacy.delta, tolerance)
    assert privacy.epsilon != "solve"
    return Question(privacy.epsilon, None, tolerance)


def narrow(answer: Answer, tolerance: float) -> bool:
    """Return whether an interval is as narrow as this, relatively to its upper end."""
    return answer.upper - answer.lower <= tolerance * answer.upper


def profile_tolerance(bounds: DirectedBounds, tolerance: float) -> float:
    """Return the relative width that δ is asked for at the points of a profile, of rounds composed to a tolerance for ε."""
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
    """Return δ at each of these ε, and the points between them, of rounds in groups: all of a law is read off few compositions.

    Args:
        engine: What is asked.
        bounds: Rounds in groups.
        points: Each ε of the profile.
        known: What is known of each direction's curve, with a profile.
        tolerance: The relative width asked for.
    """
    places = sorted(set(points))
    lower = read_laws(engine, {bounds[side].lower: places for side in DIRECTIONS}, tolerance)
    # The curve goes through the same region as the one below, which shows where points are needed.
    sketch = [answer_of(bounds, point, tolerance, lower, lower) for point in points]
    more = placed(known(sketch))[1]
    wanted: dict[tuple[Rounds, ...], set[float]] = {}
    for side in DIRECTIONS:
        wanted.setdefault(bounds[side].upper, set(places)).update(more[side])
    upper = read_laws(engine, {law: sorted(all_places) for law, all_places in wanted.items()}, tolerance)
    profile = tuple(answer_of(bounds, point, tolerance, lower, upper) for point in points)
    ends = known(profile)
    lines = {
        side: drawn(more[side], [upper[bounds[side].upper][place] for place in more[side]], ends.get(side, ()))
        for side in DIRECTIONS
    }
    return profile, lines

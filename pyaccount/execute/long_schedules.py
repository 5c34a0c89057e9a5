"""Documents with hundreds of kinds of rounds: how far those that are nearly alike are bounded by the worst of them.

The rounds of `pyaccount.plan.alike` that lie above the theorem's and those that lie below it are composed separately. Their
answers enclose the exact one, and are asked for until they are as close to one another as the tolerance says.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyaccount import _core
from pyaccount.directions import DIRECTIONS
from pyaccount.errors import NumericsError
from pyaccount.execute.engine import Answer, DirectedAnswer, Engine, Question
from pyaccount.plan.alike import composed_alike
from pyaccount.risk.budgets import budget_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyaccount.plan.compiled import Instance
    from pyaccount.plan.reduction import DirectedBounds

#: The relative width of the δ intervals of a profile.
PROFILE_TOLERANCE = 1e-2
#: What part of the tolerance is for the groups, and how much narrower their own compositions are asked to be than the tolerance.
SHARE, FINER = 0.7, 0.4
#: Widths of groups that are tried before the rounds are composed as they are.
ATTEMPTS = 3
#: ln δ changes by so many times the relative change of ε, roughly, so that δ at an ε is not known more finely; and the most of it.
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


def asked_profile(
    engine: Engine, bounds: DirectedBounds, points: Sequence[float], tolerance: float
) -> tuple[Answer, ...]:
    """Return δ at each of these ε. Of long schedules all points of one curve are read off a few compositions."""
    questions = [Question(point, None, tolerance) for point in points]
    if not composed_alike(bounds):
        return tuple(engine.ask_all([(bounds, question) for question in questions]))
    places = sorted(set(points))
    laws = list(dict.fromkeys(law for side in DIRECTIONS for law in (bounds[side].upper, bounds[side].lower)))
    read = engine.curves([(law, places) for law in laws], tolerance, 0.0)
    found = {law: dict(zip(places, curve, strict=True)) for law, (curve, _) in zip(laws, read, strict=True)}
    return tuple(
        Answer(
            question,
            {
                side: _between(found[bounds[side].lower][point], found[bounds[side].upper][point])
                for side in DIRECTIONS
            },
        )
        for point, question in zip(points, questions, strict=True)
    )


def _between(below: tuple[float, float], above: tuple[float, float]) -> DirectedAnswer:
    """The lower end of what lies below, and the upper end of what lies above."""
    lower, upper = below[0], above[1]
    if lower > upper:
        raise NumericsError(
            f"the bounds cross ({lower!r} above {upper!r}): this is a defect, nothing is certified"
        )
    return DirectedAnswer(
        lower, upper, _core.ProvenInterval.proven(*above), _core.ProvenInterval.proven(*below)
    )

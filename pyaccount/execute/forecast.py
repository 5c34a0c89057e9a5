"""Predict how long a certificate takes: composed plans are timed on a few compositions, sampled ones by the pilot."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyaccount.directions import DIRECTIONS
from pyaccount.execute.choose import Pricing, choose
from pyaccount.execute.curve import CurvePoint, curves
from pyaccount.execute.engine import Answer, Engine, Question
from pyaccount.execute.group_lemma import group_lemma
from pyaccount.execute.long_schedules import PROFILE_TOLERANCE, composable, profile_tolerance, read_profile
from pyaccount.execute.shared_points import points_of, share_compositions
from pyaccount.execute.solve import ROUGH, decide, solve
from pyaccount.plan.alike import composed_alike
from pyaccount.plan.common import default_profile, number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyaccount.directions import Direction
    from pyaccount.execute.options import RunOptions
    from pyaccount.execute.sampling.forecast import Forecast
    from pyaccount.plan.compiled import CompiledDocument, Instance
    from pyaccount.plan.rounds import DirectedBounds

#: The number of candidates that a search still tries at the final tolerance once it knows the blank to `ROUGH`.
STEPS_LEFT = 5


@dataclass(frozen=True, slots=True)
class Price:
    """The seconds that a certificate will take on this machine, by stage; with the pilot's estimates if sampled."""

    #: The plan with its choices made.
    plan: CompiledDocument
    stages: dict[str, float]
    sampled: Forecast | None = None

    @property
    def seconds(self) -> float:
        """The seconds of all stages together."""
        return sum(self.stages.values())


def price(plan: CompiledDocument, options: RunOptions) -> Price:
    """Return the price of a plan's certificate on this machine. Raises as `run` does."""
    with options.begun(plan.document) as begun:
        return _price(plan, begun)


def _price(plan: CompiledDocument, options: RunOptions) -> Price:
    """Return the price of a plan's certificate; the time limit of these options counts already."""
    stages: dict[str, float] = {}
    if plan.candidates:
        began = time.monotonic()
        pricing = Pricing()
        plan = choose(plan, replace(options, seed=plan.document.accounting.seed or 0), pricing)
        # Certifying makes the choice too, but does not price any tests.
        stages["choice"] = time.monotonic() - began - pricing.seconds
    if not plan.sampled:
        return Price(plan, stages | _composed(plan, options))
    from pyaccount.execute.sampling.forecast import forecast  # that room imports this one's engine

    found = forecast(plan, options)
    return Price(plan, stages | found.stages, found)


def _composed(plan: CompiledDocument, options: RunOptions) -> dict[str, float]:
    """Time a rough search for the blank, one question at the tolerance asked for, and points of the profile."""
    engine = Engine(threads=options.threads, time_limit=options.remaining)
    stages: dict[str, float] = {}
    if plan.blank is None:
        instance = plan.at()
    else:
        began = time.monotonic()
        instance = solve(plan, engine, options.report, tolerance=ROUGH).instance
        rough = time.monotonic() - began
        began = time.monotonic()
        decide(instance, engine, plan.tolerance)
        stages["search"] = rough + STEPS_LEFT * (time.monotonic() - began)
    document = instance.document
    began = time.monotonic()
    bounds, epsilon = _guarantee(instance, engine, plan.tolerance)
    stages["guarantee"] = 2.0 * (time.monotonic() - began)
    points = document.accounting.profile
    points = default_profile(epsilon) if points is None else points
    if points:
        stages |= _profile(bounds, engine, points, plan.tolerance)
    if document.privacy.group_size != 1 and document.privacy.delta != "solve":
        began = time.monotonic()
        group_lemma(document, engine, document.privacy.delta)
        stages["group lemma"] = time.monotonic() - began
    return stages


def _profile(bounds: DirectedBounds, engine: Engine, points: Sequence[float], tolerance: float) -> dict[str, float]:
    """Time some points of the profile and one direction's curve; if rounds are grouped, all points and both curves."""
    began = time.monotonic()
    if composed_alike(bounds):
        read_profile(engine, bounds, points, _known, profile_tolerance(bounds, tolerance))
        return {"profile": time.monotonic() - began}
    # The time for a point differs along the profile, so the last point of each quarter is timed.
    some = points[:: -max(1, len(points) // 4)]
    answers = points_of(engine, bounds, some, PROFILE_TOLERANCE)
    asked = time.monotonic()
    curves(engine, bounds, {DIRECTIONS[0]: _known(answers)[DIRECTIONS[0]]}, PROFILE_TOLERANCE)
    more = len(points) / len(some)
    if share_compositions(bounds):
        # Neighbouring points share compositions: the number of these grows by a factor between 1 and `more`.
        more = math.sqrt(more)
    return {"profile": (asked - began) * more, "curve": 2.0 * (time.monotonic() - asked)}


def _known(answers: Sequence[Answer]) -> dict[Direction, list[CurvePoint]]:
    """Return the points of a profile for each direction, ascending in ε."""
    return {
        side: sorted(CurvePoint(one.question.epsilon or 0.0, min(1.0, one.directions[side].upper)) for one in answers)
        for side in DIRECTIONS
    }


def _guarantee(instance: Instance, engine: Engine, tolerance: float) -> tuple[DirectedBounds, float]:
    """Ask one question of the guarantee; return the rounds that were composed for it, and its ε."""
    privacy = instance.document.privacy
    bounds, answer = composable(instance, engine, tolerance, None)
    if privacy.delta != "solve":
        answer = answer or engine.ask(bounds, Question(None, privacy.delta, tolerance))
        return bounds, privacy.epsilon if privacy.epsilon == 0.0 else answer.upper
    epsilon = number(privacy.epsilon)
    if answer is None:
        engine.ask(bounds, Question(epsilon, None, tolerance))
    return bounds, epsilon

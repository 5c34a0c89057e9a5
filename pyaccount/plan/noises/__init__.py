"""The kinds of noise in the plan room: which theorem analyses a body, and the worst case without sampling.

Each kind is a module with a class. `PLANS` has one object for each kind that documents may name; other code asks these
objects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyaccount.plan.noises import gaussian, laplace
from pyaccount.plan.noises.base import NoisePlan
from pyaccount.plan.scheduled_rounds import composed

if TYPE_CHECKING:
    from pyaccount.document.document import Document
    from pyaccount.document.views import Body
    from pyaccount.plan.rounds import DirectedBounds

__all__ = ["PLANS", "NoisePlan", "conventions", "noise_plan", "public_rounds"]

PLANS: dict[str, NoisePlan] = {"gaussian": gaussian.PLAN, "laplace": laplace.PLAN}


def noise_plan(body: Body) -> NoisePlan:
    """Return the plan object for the noise of a body."""
    return PLANS[body.noise.kind]


def public_rounds(document: Document, body: Body) -> DirectedBounds:
    """Return the rounds of a body if participations are public and as bad as they can be, whatever its schedules."""
    one = noise_plan(body).public
    return composed(document, body, one) if body.schedules() else one(document, body)


def conventions(document: Document) -> str:
    """Return the sentences that state the units of a document's multipliers."""
    present = {body.noise.kind for body in document.bodies}
    return " ".join(plan.convention(document) for word, plan in PLANS.items() if word in present)

"""The kinds of noise, as the plan room knows them: which theorem analyses a body, and what it costs without sampling.

A noise is a module with a class; `PLANS` has one for each kind that documents may name, and everything else asks it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyaccount.plan.noises import gaussian, laplace
from pyaccount.plan.noises.base import NoisePlan

if TYPE_CHECKING:
    from pyaccount.document import Body, Document

__all__ = ["PLANS", "NoisePlan", "conventions", "noise_plan"]

PLANS: dict[str, NoisePlan] = {"gaussian": gaussian.PLAN, "laplace": laplace.PLAN}


def noise_plan(body: Body) -> NoisePlan:
    """What is known of the noise of a body."""
    return PLANS[body.noise.kind]


def conventions(document: Document) -> str:
    """In which units the multipliers of a document are."""
    present = {body.noise.kind for body in document.bodies}
    return " ".join(plan.convention(document) for word, plan in PLANS.items() if word in present)

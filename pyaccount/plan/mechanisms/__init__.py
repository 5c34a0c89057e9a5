"""The mechanisms in the plan room: which profile bounds them, what they assume, and what no theorem covers.

Each kind is a class; `PLANS` has one object for each kind that documents may name. `additive` has noise that is added to
numbers, `selections` the mechanisms that select a candidate.
"""

from __future__ import annotations

from typing import Any

from pyaccount.document import mechanisms as kinds
from pyaccount.plan.mechanisms import additive, mixture, randomized_response, selections, stated
from pyaccount.plan.mechanisms.base import MechanismPlan
from pyaccount.reading.kinds import Section

#: The plan object of each class of mechanisms.
PLANS: dict[type[Section], MechanismPlan[Any]] = {
    kinds.Stated: stated.PLAN,
    kinds.GaussianMechanism: additive.GaussianMechanismPlan(),
    kinds.MixtureOfGaussians: mixture.PLAN,
    kinds.LaplaceMechanism: additive.LaplaceMechanismPlan(),
    kinds.DiscreteGaussian: additive.DiscreteGaussianPlan(),
    kinds.DiscreteLaplace: additive.DiscreteLaplacePlan(),
    kinds.RandomizedResponse: randomized_response.PLAN,
    kinds.Exponential: selections.ExponentialPlan(),
    kinds.PermuteAndFlip: selections.PermuteAndFlipPlan(),
    kinds.ReportNoisyMax: selections.ReportNoisyMaxPlan(),
}

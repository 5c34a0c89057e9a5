"""The mechanisms in the plan room: which profile bounds them, what they assume, and what no theorem covers.

Each kind is a class in `PLANS`. `additive` has noise that is added to
numbers, `selections` the mechanisms that select a candidate, `partitions` those that select groups of a table.
"""

from __future__ import annotations

from typing import Any

from pyaccount.document import mechanisms as kinds
from pyaccount.plan.mechanisms import additive, partitions, selections, stated
from pyaccount.plan.mechanisms.base import MechanismPlan
from pyaccount.reading.kinds import Section

#: The theorem of each kind of mechanism.
PLANS: dict[type[Section], type[MechanismPlan[Any]]] = {
    kinds.Stated: stated.StatedPlan,
    kinds.GaussianMechanism: additive.GaussianMechanismPlan,
    kinds.MixtureOfGaussians: additive.MixtureOfGaussiansPlan,
    kinds.LaplaceMechanism: additive.LaplaceMechanismPlan,
    kinds.DiscreteGaussian: additive.DiscreteGaussianPlan,
    kinds.DiscreteLaplace: additive.DiscreteLaplacePlan,
    kinds.Skellam: additive.SkellamPlan,
    kinds.DistributedDiscreteGaussian: additive.DistributedDiscreteGaussianPlan,
    kinds.RandomizedResponse: selections.RandomizedResponsePlan,
    kinds.Exponential: selections.ExponentialPlan,
    kinds.PermuteAndFlip: selections.PermuteAndFlipPlan,
    kinds.ReportNoisyMax: selections.SelectionPlan,
    kinds.PartitionSelection: partitions.PartitionSelectionPlan,
}

"""The samplers in the plan room: which theorem analyses each, and the worst participations of a record.

Each kind is a class, and `PLANS` has it for each kind that documents may name. Shared parts have modules of
their own: `whole_run` and `renewal` for samplers that are analysed by sampling, `fixed_draws` for batches of a fixed number of
draws, `truncated` for the words of batches that are cut to a size (`poisson` has their rounds), and `shared_records` for the
bound for users who share records.
"""

from __future__ import annotations

from typing import Any

from pyaccount.plan.protection import RunCase
from pyaccount.plan.samplers import (
    b_min_sep,
    balls_in_bins,
    cyclic_poisson,
    deterministic,
    fixed_draws,
    fixed_size,
    poisson,
    random_allocation,
)
from pyaccount.plan.samplers.base import SamplerPlan, Worst

__all__ = ["PLANS", "SamplerPlan", "Worst", "sampler_plan"]

PLANS: dict[str, type[SamplerPlan[Any]]] = {
    "poisson": poisson.PoissonPlan,
    "fixed-size": fixed_size.FixedSizePlan,
    "with-replacement": fixed_draws.WithReplacementPlan,
    "must-ow": fixed_draws.MustOWPlan,
    "must-wo": fixed_draws.MustWOPlan,
    "must-ww": fixed_draws.MustWWPlan,
    "b-min-sep": b_min_sep.BMinSepPlan,
    "user-b-min-sep": b_min_sep.UserBMinSepPlan,
    "random-allocation": random_allocation.RandomAllocationPlan,
    "balls-in-bins": balls_in_bins.BallsInBinsPlan,
    "cyclic-poisson": cyclic_poisson.CyclicPoissonPlan,
    "none": deterministic.DeterministicPlan,
}


def sampler_plan(case: RunCase) -> SamplerPlan[Any]:
    """Return what follows from the sampler of a training run."""
    return PLANS[case.node.sampler.kind](case.asked, case.node)

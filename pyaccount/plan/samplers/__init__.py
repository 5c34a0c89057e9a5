"""The samplers in the plan room: which theorem analyses each, and the worst participations of a record.

Each kind is a module with a class. `PLANS` has one object for each kind that documents may name; other code asks these
objects. Shared parts have modules of their own: `whole_run` and `renewal` for samplers that are analysed by sampling,
`fixed_draws` for batches of a fixed number of draws, `truncated` for the words of batches that are cut to a size
(`poisson` has their rounds), and `shared_records` for the bound for users who share records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyaccount.plan.samplers import (
    b_min_sep,
    balls_in_bins,
    cyclic_poisson,
    deterministic,
    fixed_size,
    must,
    poisson,
    random_allocation,
    user_b_min_sep,
    with_replacement,
)
from pyaccount.plan.samplers.base import SamplerPlan, Worst

if TYPE_CHECKING:
    from pyaccount.document.views import Body

__all__ = ["PLANS", "SamplerPlan", "Worst", "sampler_plan"]

PLANS: dict[str, SamplerPlan] = {
    "poisson": poisson.PLAN,
    "fixed-size": fixed_size.PLAN,
    "with-replacement": with_replacement.PLAN,
    "must-ow": must.OW,
    "must-wo": must.WO,
    "must-ww": must.WW,
    "b-min-sep": b_min_sep.PLAN,
    "user-b-min-sep": user_b_min_sep.PLAN,
    "random-allocation": random_allocation.PLAN,
    "balls-in-bins": balls_in_bins.PLAN,
    "cyclic-poisson": cyclic_poisson.PLAN,
    "none": deterministic.PLAN,
}


def sampler_plan(body: Body) -> SamplerPlan:
    """Return the plan object for the sampler of a body."""
    return PLANS[body.sampler.kind]

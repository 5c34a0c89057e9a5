"""Sampling with replacement: batches of a fixed number of independent draws."""

from __future__ import annotations

from typing import ClassVar

from pyaccount.document.samplers import WithReplacement
from pyaccount.plan.samplers.fixed_draws import FixedDrawsPlan


class WithReplacementPlan(FixedDrawsPlan[WithReplacement]):
    """Batches of independent uniform draws."""

    states_probability: ClassVar[bool] = False
    scheduled_rates: ClassVar[tuple[str, ...]] = ("expected_batch_size",)
    called: ClassVar[str] = "batches drawn with replacement"
    symbols: ClassVar[str] = "Bin(j; {m}, {k}/{n})"
    drawn: ClassVar[str] = (
        "Every batch is {m} independent, uniformly random draws from the whole data set; a record drawn j times counts j times."
    )

"""Sampling without replacement."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pyaccount.document.samplers.fixed_draws import FixedDraws


class FixedSize(FixedDraws):
    """Sampling without replacement: each round draws a uniformly random batch of a fixed number of records.

    The size of the batch is `training.expected_batch_size`, out of `training.dataset_size` records.
    """

    aliases = "uniform-without-replacement sampled-without-replacement"

    kind: Literal["fixed-size"] = Field(description="Each round draws a uniformly random batch of a fixed size.")

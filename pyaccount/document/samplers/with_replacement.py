"""Sampling with replacement."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pyaccount.document.samplers.fixed_draws import Repeating


class WithReplacement(Repeating):
    """Sampling with replacement: each round makes a fixed number of independent, uniformly random draws.

    A record may be drawn several times, and then it counts as many times. The number of draws is
    `training.expected_batch_size`, out of `training.dataset_size` records.
    """

    aliases = "wr replacement sampled-with-replacement"

    kind: Literal["with-replacement"] = Field(
        description="Each round draws records independently and uniformly, some of them several times."
    )

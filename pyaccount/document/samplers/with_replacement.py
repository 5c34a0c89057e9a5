"""Sampling with replacement."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pyaccount.document.samplers.fixed_draws import Repeating


class WithReplacement(Repeating):
    """Sampling with replacement: every round draws a batch of independent, uniformly random records.

    A record may be drawn several times, and then counts as often. The number of draws is `training.expected_batch_size`, out of
    `training.dataset_size` records.
    """

    aliases = "wr bootstrap replacement"

    kind: Literal["with-replacement"] = Field(description="Every round draws independent uniform records, some twice.")

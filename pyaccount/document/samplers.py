"""The samplers: how the records of each round are drawn."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pyaccount.document.fields import Number
from pyaccount.document.kinds import Kinds, Section
from pyaccount.document.ranges import PARTICIPATIONS, SEPARATION


class Poisson(Section):
    """Poisson sampling: every record joins every round independently, with the sampling probability.

    The rate is given under `training`; for Poisson sampling the participation rate is the sampling probability.
    """

    kind: Literal["poisson"] = Field(description="Every record joins every round independently.")


class FixedSize(Section):
    """Sampling without replacement: every round draws a uniformly random batch of a fixed number of records.

    The batch is `training.expected_batch_size`, out of `training.dataset_size` records.
    """

    kind: Literal["fixed-size"] = Field(description="Every round draws a uniform batch of a fixed size.")


class Deterministic(Section):
    """No sampling: records take part in an order that is not secret, so that nothing is amplified."""

    kind: Literal["none"] = Field(description="A deterministic order; no amplification by sampling.")
    max_participations: Annotated[int | None, Number(PARTICIPATIONS, whole=True)] = Field(
        default=None, description="The most rounds that any record takes part in. Omitted: it may take part in all."
    )
    min_separation: Annotated[int | None, Number(SEPARATION, whole=True)] = Field(
        default=None, description="The least distance, in rounds, between two participations of a record."
    )


Sampler = Annotated[Poisson | FixedSize | Deterministic, Kinds("sampler", (Poisson, FixedSize, Deterministic))]

"""The samplers: how the records of each round are drawn."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pyaccount.document.fields import Choice, Number
from pyaccount.document.kinds import Kinds, Section
from pyaccount.document.ranges import BINS, PARTICIPATIONS, PARTITIONS, SEPARATION


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


class BMinSep(Section):
    """b-min-sep sampling: after a participation a record sits out the next b − 1 rounds; while available, it joins each
    round with the sampling probability.

    The sampling probability is conditional on availability. The participation rate, the long-run share of rounds that a
    record takes part in, is 1/(b − 1 + 1/p); it is at most 1/b.
    """

    kind: Literal["b-min-sep"] = Field(description="A record joins at random, at least b rounds after its last time.")
    min_separation: Annotated[int | None, Number(SEPARATION, whole=True)] = Field(
        default=None, description="b: the least distance, in rounds, between two participations. Omitted: the bands."
    )
    start: Annotated[Literal["warm", "cold"], Choice(("warm", "cold"))] = Field(
        default="warm",
        description="Whether the process is in its stationary state in the first round (warm), or every record is "
        "available in it (cold).",
    )


class BallsInBins(Section):
    """Balls in bins: every record is put in one of T bins at random, once; round i uses bin i mod T."""

    kind: Literal["balls-in-bins"] = Field(description="Every record is put in one of T batches, which take turns.")
    bins: Annotated[int | None, Number(BINS, whole=True)] = Field(
        default=None, description="T: the number of batches. Omitted: 1/participation rate, which must be whole."
    )


class CyclicPoisson(Section):
    """Cyclic Poisson sampling: the data set is cut into b parts, by a rule that ignores the records' contents; round i samples
    part i mod b, every record of it with the sampling probability.

    The participation rate is the sampling probability over b.
    """

    kind: Literal["cyclic-poisson"] = Field(description="Poisson sampling from b fixed parts that take turns.")
    partitions: Annotated[int | None, Number(PARTITIONS, whole=True)] = Field(
        default=None, description="b: the number of parts. Omitted: the bands of the matrix."
    )


class Deterministic(Section):
    """No sampling: records take part in an order that is not secret, so that nothing is amplified."""

    kind: Literal["none"] = Field(description="A deterministic order; no amplification by sampling.")
    max_participations: Annotated[int | None, Number(PARTICIPATIONS, whole=True)] = Field(
        default=None, description="The most rounds that any record takes part in. Omitted: it may take part in all."
    )
    min_separation: Annotated[int | None, Number(SEPARATION, whole=True)] = Field(
        default=None, description="The least distance, in rounds, between two participations of a record."
    )


Sampler = Annotated[
    Poisson | FixedSize | BMinSep | BallsInBins | CyclicPoisson | Deterministic,
    Kinds("sampler", (Poisson, FixedSize, BMinSep, BallsInBins, CyclicPoisson, Deterministic)),
]

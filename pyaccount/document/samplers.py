"""The samplers: how the records of each round are drawn."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pyaccount.document.fields import Choice, Number
from pyaccount.document.kinds import Kinds, Section
from pyaccount.document.ranges import (
    BINS,
    LARGEST_BATCH,
    PARTICIPATIONS,
    PARTITIONS,
    RECORDS_PER_USER,
    ROUNDS_PER_SUBSET,
    SEPARATION,
    SUBSET_SIZE,
)
from pyaccount.document.shuffling import NOT_AMPLIFIED, SHUFFLE


class _Truncatable(Section):
    """A sampler whose batches vary in size, so that large ones may be truncated."""

    truncate_to: Annotated[int | None, Number(LARGEST_BATCH, whole=True)] = Field(
        default=None,
        description="B: of a batch with more records, B are kept at random (and smaller ones may be padded). What is dropped "
        "counts as drawn. Omitted: no batch is truncated.",
    )


class Poisson(_Truncatable):
    """Poisson sampling: every record joins every round independently, with the sampling probability.

    The rate is given under `training`; for Poisson sampling the participation rate is the sampling probability.
    """

    kind: Literal["poisson"] = Field(description="Every record joins every round independently.")


class FixedSize(Section):
    """Sampling without replacement: every round draws a uniformly random batch of a fixed number of records.

    The batch is `training.expected_batch_size`, out of `training.dataset_size` records.
    """

    kind: Literal["fixed-size"] = Field(description="Every round draws a uniform batch of a fixed size.")


class WithReplacement(Section):
    """Sampling with replacement: every round draws a batch of independent, uniformly random records.

    A record may be drawn several times, and then counts as often. The number of draws is `training.expected_batch_size`, out of
    `training.dataset_size` records.
    """

    kind: Literal["with-replacement"] = Field(description="Every round draws independent uniform records, some twice.")


class _TwoStages(Section):
    """Every round draws a subset first, and then its batch from that subset."""

    subset_size: Annotated[int, Number(SUBSET_SIZE, whole=True)] = Field(
        description="b: how many records (or draws) the subset of a round has, from which its batch is drawn."
    )
    rounds_per_subset: Annotated[int, Number(ROUNDS_PER_SUBSET, whole=True)] = Field(
        default=1,
        description="How many rounds draw from one subset. Only 1 can be analysed: a fresh one for each round.",
    )


class MustOW(_TwoStages):
    """MUST.OW: a uniformly random subset of distinct records, then draws from it with replacement.

    The number of draws is `training.expected_batch_size`.
    """

    kind: Literal["must-ow"] = Field(description="A subset without replacement, then a batch from it with replacement.")


class MustWO(_TwoStages):
    """MUST.WO: a subset drawn with replacement, then a batch of its draws without replacement.

    The same as sampling with replacement, whatever the subset's size.
    """

    kind: Literal["must-wo"] = Field(description="A subset with replacement, then a batch from it without replacement.")


class MustWW(_TwoStages):
    """MUST.WW: a subset drawn with replacement, then draws from it with replacement.

    The number of draws is `training.expected_batch_size`.
    """

    kind: Literal["must-ww"] = Field(description="A subset with replacement, then a batch from it with replacement.")


class BMinSep(_Truncatable):
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


class UserBMinSep(_Truncatable):
    """b-min-sep sampling of users: while none of a user's records sits out, each is drawn with the sampling probability; after a
    round in which any was drawn, all of the user's records sit out the next b − 1 rounds.

    The sampling probability is that of one record. What is protected is a user, with at most `records_per_user` records.
    """

    kind: Literal["user-b-min-sep"] = Field(
        description="b-min-sep sampling in which all of a user's records wait together."
    )
    records_per_user: Annotated[int, Number(RECORDS_PER_USER, whole=True)] = Field(
        description="k: the most records of one user."
    )
    attribution: Annotated[Literal["single", "shared"], Choice(("single", "shared"))] = Field(
        description="Whether every record belongs to a single user, or records may be shared between users."
    )
    min_separation: Annotated[int | None, Number(SEPARATION, whole=True)] = Field(
        default=None, description="b: the least distance, in rounds, between two participations. Omitted: the bands."
    )
    start: Annotated[Literal["warm", "cold"], Choice(("warm", "cold"))] = Field(
        default="warm",
        description="Whether the process is in its stationary state in the first round (warm), or everyone is available "
        "in it (cold).",
    )
    waits_after: Annotated[Literal["draw", "participation"], Choice(("draw", "participation"))] = Field(
        default="draw",
        description="What makes records wait: that one of the user's was drawn, or that one took part. The same unless records "
        "are shared, where a record that was drawn may be left out because of another of its users.",
    )


class BallsInBins(_Truncatable):
    """Balls in bins: every record is put in one of T bins at random, once; round i uses bin i mod T."""

    kind: Literal["balls-in-bins"] = Field(description="Every record is put in one of T batches, which take turns.")
    bins: Annotated[int | None, Number(BINS, whole=True)] = Field(
        default=None, description="T: the number of batches. Omitted: 1/participation rate, which must be whole."
    )


class CyclicPoisson(_Truncatable):
    """Cyclic Poisson sampling: the data set is cut into b parts, by a rule that ignores the records' contents; round i samples
    part i mod b, every record of it with the sampling probability.

    The participation rate is the sampling probability over b.
    """

    kind: Literal["cyclic-poisson"] = Field(description="Poisson sampling from b fixed parts that take turns.")
    partitions: Annotated[int | None, Number(PARTITIONS, whole=True)] = Field(
        default=None, description="b: the number of parts. Omitted: the bands of the matrix."
    )
    phase: Annotated[Literal["fixed", "random"], Choice(("fixed", "random"))] = Field(
        default="fixed",
        description="Whether the parts are fixed and may be known, or every record is put in a part at random, independently "
        "of the others, in secret and for this run only.",
    )


class Deterministic(Section):
    """No sampling: records take part in an order that is not secret, so that nothing is amplified."""

    kind: Literal["none"] = Field(description="A deterministic order, or a shuffled one; no amplification by sampling.")
    max_participations: Annotated[int | None, Number(PARTICIPATIONS, whole=True)] = Field(
        default=None,
        description="The most rounds that any record takes part in; where each epoch's records are shuffled and dealt into "
        "batches, the number of epochs. Omitted: it may take part in all.",
    )
    min_separation: Annotated[int | None, Number(SEPARATION, whole=True)] = Field(
        default=None, description="The least distance, in rounds, between two participations of a record."
    )


#: The samplers whose batches have a fixed number of draws.
FIXED_DRAWS = (FixedSize, WithReplacement, MustOW, MustWO, MustWW)

#: Kinds that people ask for and that have no bound to offer, each with the reason and what is near it.
REFUSED = {SHUFFLE: NOT_AMPLIFIED}

Sampler = Annotated[
    Poisson
    | FixedSize
    | WithReplacement
    | MustOW
    | MustWO
    | MustWW
    | BMinSep
    | UserBMinSep
    | BallsInBins
    | CyclicPoisson
    | Deterministic,
    Kinds(
        "sampler",
        (
            Poisson,
            FixedSize,
            WithReplacement,
            MustOW,
            MustWO,
            MustWW,
            BMinSep,
            UserBMinSep,
            BallsInBins,
            CyclicPoisson,
            Deterministic,
        ),
        refused=REFUSED,
    ),
]

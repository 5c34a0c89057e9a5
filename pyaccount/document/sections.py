"""The sections of a document, and the two shapes a document can have: one body, or a list of phases."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import ConfigDict, Field

from pyaccount.document import ranges
from pyaccount.document.fields import Choice, Duration, Items, Number, Solve
from pyaccount.document.kinds import Section
from pyaccount.document.words import ADJACENCY_MEANINGS, Adjacency

Method = Literal["auto", "pld", "monte-carlo", "renyi"]
VerificationMethod = Literal["betting", "fixed-sample"]

_EPOCHS_UNSOLVED = (
    "epochs are given, not solved for, since it is whole rounds that are added until no more fit: write `iterations: solve` "
    "instead; so many times expected_batch_size / dataset_size are the epochs"
)
_MEANINGS = [f"{meaning} ({word})" for word, meaning in ADJACENCY_MEANINGS.items()]


class Risk(Section):
    """A budget on attacks, instead of ε and δ: one of advantage, true_positive_rate at a false_positive_rate, and gaussian_mu."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {"required": ["advantage"]},
                {"required": ["true_positive_rate", "false_positive_rate"]},
                {"required": ["gaussian_mu"]},
            ]
        },
    )

    advantage: Annotated[float | None, Number(ranges.ADVANTAGE)] = Field(
        default=None,
        description="The largest membership advantage that is allowed: true- minus false-positive rate of any attack.",
    )
    true_positive_rate: Annotated[float | None, Number(ranges.RATE)] = Field(
        default=None,
        description="The largest true-positive rate that is allowed at false_positive_rate, of any attack.",
    )
    false_positive_rate: Annotated[float | None, Number(ranges.RATE)] = Field(
        default=None, description="The false-positive rate at which true_positive_rate is allowed."
    )
    gaussian_mu: Annotated[float | None, Number(ranges.GAUSSIAN_MU)] = Field(
        default=None,
        description="μ: no attack may tell more than between N(μ, 1) and N(0, 1), at every ε at which these two have a δ of at "
        "least report_delta.",
    )
    report_delta: Annotated[float | None, Number(ranges.DELTA)] = Field(
        default=None,
        description="The δ at which the certificate tells ε, and down to which gaussian_mu is kept. Omitted: the largest power "
        "of ten below 1/dataset_size, or 1e-6.",
    )


class Privacy(Section):
    """What is protected, and how well: the claim of the document, or its blank."""

    model_config = ConfigDict(
        json_schema_extra={"anyOf": [{"required": ["epsilon", "delta"]}, {"required": ["risk"]}]},
    )

    adjacency: Annotated[Adjacency, Choice(get_args(Adjacency))] = Field(
        description=f"Which data sets are neighbours: {', '.join(_MEANINGS[:-1])}, or {_MEANINGS[-1]}."
    )
    group_size: Annotated[int | Solve, Number(ranges.GROUP_SIZE, whole=True, blank=True)] = Field(
        default=1, description="k: the number of records that are protected together."
    )
    # Neither is None in a document without problems: where risk is given, `Document` asks for ε at the δ to be told.
    epsilon: Annotated[float | Solve, Number(ranges.EPSILON, blank=True)] = Field(
        default=None,  # type: ignore[arg-type]
        description="ε of (ε, δ) differential privacy. Required unless risk is given.",
    )
    delta: Annotated[float | Solve, Number(ranges.DELTA_OR_ZERO, blank=True)] = Field(
        default=None,  # type: ignore[arg-type]
        description="δ of (ε, δ) differential privacy; 0 for pure differential privacy, which needs Laplace noise in every "
        "phase. Required unless risk is given.",
    )
    # None where ε and δ are given.
    risk: Risk = Field(  # type: ignore[assignment]
        default=None,
        description="Instead of ε and δ: how well any attack may do. The blank is solved so that none does better.",
    )


class Training(Section):
    """The rounds, and how often a record takes part in them."""

    model_config = ConfigDict(
        json_schema_extra={"anyOf": [{"required": ["iterations"]}, {"required": ["epochs"]}]},
    )

    dataset_size: Annotated[int | None, Number(ranges.DATASET_SIZE, whole=True)] = Field(
        default=None, description="The number of records in the data set."
    )
    expected_batch_size: Annotated[float | Solve | None, Number(ranges.EXPECTED_BATCH_SIZE, blank=True)] = Field(
        default=None,
        description="The expected number of records in a round, over all of its draws and on all ranks together; the number of "
        "draws where that is fixed.",
    )
    sampling_probability: Annotated[float | None, Number(ranges.PROBABILITY)] = Field(
        default=None,
        description="The probability with which a record that is available joins a round; with several draws_per_iteration, one "
        "of the draws.",
    )
    participation_rate: Annotated[float | None, Number(ranges.PROBABILITY)] = Field(
        default=None, description="The long-run share of rounds that a record takes part in."
    )
    # Never None in a document without problems: where epochs are given, `Document` works the iterations out.
    iterations: Annotated[int | Solve, Number(ranges.ITERATIONS, whole=True, blank=True)] = Field(
        default=None,  # type: ignore[arg-type]
        description="The number of rounds: noisy steps of training. Required unless epochs are given.",
    )
    epochs: Annotated[float | None, Number(ranges.EPOCHS, unsolved=_EPOCHS_UNSOLVED)] = Field(
        default=None,
        description="Instead of iterations: in an epoch a record takes part once in the mean. Iterations are epochs times "
        "dataset_size / expected_batch_size (1/participation_rate, or the bins), rounded up.",
    )


class Accounting(Section):
    """How the answer is computed."""

    method: Annotated[Method, Choice(get_args(Method))] = Field(
        default="auto",
        description="The engine: the best that applies (auto), privacy loss distributions (pld), sampling of the privacy loss "
        "(monte-carlo), or moments of the likelihood ratio, that is Rényi divergences, without a failure probability (renyi).",
    )
    verification: Annotated[VerificationMethod, Choice(get_args(VerificationMethod))] = Field(
        default="betting",
        description="How samples certify a claim: by betting against it (betting), or by the mean of a number of plain "
        "samples fixed beforehand (fixed-sample).",
    )
    tolerance: Annotated[float | None, Number(ranges.TOLERANCE)] = Field(
        default=None,
        description="The width of the answer's interval, relative to the answer. Omitted: 1e-4, or 0.01 for sampling.",
    )
    seed: Annotated[int | None, Number(ranges.SEED, whole=True)] = Field(
        default=None, description="The seed of everything that is sampled."
    )
    profile: Annotated[tuple[Annotated[float, Number(ranges.EPSILON)], ...] | None, Items(ranges.PROFILE_LENGTH)] = (
        Field(default=None, description="The values of ε at which the certificate gives δ.")
    )
    time_limit: Annotated[float | None, Duration(ranges.TIME_LIMIT)] = Field(
        default=None, description="The longest time the computation may take: `30 s`, `10 min`, `2 h`, or seconds."
    )

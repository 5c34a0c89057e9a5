"""The sections of a mechanism document about privacy, risk, training and accounting."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import ConfigDict, Field

from pyaccount.document import ranges
from pyaccount.document.own_probabilities import OwnProbabilities, ProbabilityOrMapping
from pyaccount.document.schedules import NumberOrMapping, ScheduledBatch, ScheduledProbability
from pyaccount.document.words import ADJACENCIES, Adjacency
from pyaccount.reading.fields import Choice, Duration, Items, Number, Solve
from pyaccount.reading.kinds import Section

Method = Literal["auto", "pld", "monte-carlo", "renyi"]
VerificationMethod = Literal["betting", "fixed-sample"]

_EPOCHS_UNSOLVED = (
    "epochs cannot be solved for, because the search adds whole rounds: write `iterations: solve` instead; the result "
    "times expected_batch_size / dataset_size is the number of epochs"
)
_MEANINGS = [f"{word}: {words.meaning}" for word, words in ADJACENCIES.items()]


class Risk(Section):
    """A budget of risk: a limit on attacks, instead of ε and δ. It is one of advantage, true_positive_rate together with
    false_positive_rate, and gaussian_mu.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {"required": ["advantage"]},
                {"required": ["true_positive_rate", "false_positive_rate"]},
                {"required": ["gaussian_mu"]},
            ]
        }
    )

    advantage: Annotated[float | None, Number(ranges.ADVANTAGE)] = Field(
        default=None,
        description="The maximum membership advantage of every attack: its true-positive rate minus its "
        "false-positive rate.",
    )
    true_positive_rate: Annotated[float | None, Number(ranges.RATE)] = Field(
        default=None,
        description="The maximum true-positive rate of every attack whose false-positive rate is false_positive_rate.",
    )
    false_positive_rate: Annotated[float | None, Number(ranges.RATE)] = Field(
        default=None, description="The false-positive rate to which true_positive_rate applies."
    )
    gaussian_mu: Annotated[float | None, Number(ranges.GAUSSIAN_MU)] = Field(
        default=None,
        description="The maximum μ of Gaussian differential privacy. δ(ε) must be at most the δ of N(μ, 1) against "
        "N(0, 1), at every ε at which the latter is at least report_delta.",
    )
    report_delta: Annotated[float | None, Number(ranges.DELTA)] = Field(
        default=None,
        description="The δ at which the certificate reports ε; with gaussian_mu, also the δ down to which the limit "
        "applies. Default: the largest power of ten below 1/dataset_size, or 1e-6 if dataset_size is not given.",
    )


class Privacy(Section):
    """What is protected, and the target: ε and δ, or a budget of risk."""

    model_config = ConfigDict(json_schema_extra={"anyOf": [{"required": ["epsilon", "delta"]}, {"required": ["risk"]}]})

    adjacency: Annotated[Adjacency, Choice(get_args(Adjacency))] = Field(
        description=f"Which two data sets are neighbours. {'; '.join(_MEANINGS)}."
    )
    group_size: Annotated[int | Solve, Number(ranges.GROUP_SIZE, whole=True, blank=True)] = Field(
        default=1, description="The number k of records that are protected together."
    )
    # Neither is None in a document without problems: if risk is given, `Document` makes ε the blank, at the δ of the
    # report.
    epsilon: Annotated[float | Solve, Number(ranges.EPSILON, blank=True)] = Field(
        default=None,  # type: ignore[arg-type]
        description="ε of (ε, δ)-differential privacy, in nats. Required unless risk is given.",
    )
    delta: Annotated[float | Solve, Number(ranges.DELTA_OR_ZERO, blank=True)] = Field(
        default=None,  # type: ignore[arg-type]
        description="δ of (ε, δ)-differential privacy. 0 means pure differential privacy, which requires Laplace "
        "noise in every phase. Required unless risk is given.",
    )
    # None if ε and δ are given.
    risk: Risk = Field(  # type: ignore[assignment]
        default=None,
        description="A budget of risk, instead of ε and δ: a limit on the success of every attack. The blank is "
        "solved so that no attack exceeds it.",
    )


class Training(Section):
    """The number of rounds, and how often a record takes part in them."""

    model_config = ConfigDict(json_schema_extra={"anyOf": [{"required": ["iterations"]}, {"required": ["epochs"]}]})

    dataset_size: Annotated[int | None, Number(ranges.DATASET_SIZE, whole=True)] = Field(
        default=None,
        description="The number of records in the data set. Under add-remove, if batches have a fixed "
        "number of draws: a public lower bound on the size of the larger data set.",
    )
    expected_batch_size: Annotated[
        float | Solve | ScheduledBatch | None,
        NumberOrMapping(ranges.EXPECTED_BATCH_SIZE, blank=True, shapes={"a schedule": ScheduledBatch}),
    ] = Field(
        default=None,
        description="The expected number of records in a round, over all of its draws and on all ranks together. For "
        "samplers with a fixed number of draws: that number. A mapping with a `schedule` gives each round its own.",
    )
    sampling_probability: Annotated[
        float | ScheduledProbability | OwnProbabilities | None,
        ProbabilityOrMapping(
            ranges.PROBABILITY,
            shapes={"a schedule": ScheduledProbability, "max": OwnProbabilities, "strata": OwnProbabilities},
        ),
    ] = Field(
        default=None,
        description="The probability that an available record joins a round. For cyclic-poisson: a record of the "
        "current part. With several draws_per_iteration: the probability of joining one of the draws. A mapping with a "
        "`schedule` gives each round its own; one with `max` or `strata` is for records with different probabilities.",
    )
    participation_rate: Annotated[float | None, Number(ranges.PROBABILITY)] = Field(
        default=None,
        description="The long-run share of rounds in which a record takes part. With several "
        "draws_per_iteration: the expected number of times that a record is drawn in a round.",
    )
    # Never None in a document without problems: if epochs are given, `Document` computes the iterations.
    iterations: Annotated[int | Solve, Number(ranges.ITERATIONS, whole=True, blank=True)] = Field(
        default=None,  # type: ignore[arg-type]
        description="The number of rounds, that is, of noisy steps of training. Required unless epochs is given.",
    )
    epochs: Annotated[float | None, Number(ranges.EPOCHS, unsolved=_EPOCHS_UNSOLVED)] = Field(
        default=None,
        description="The number of epochs, instead of iterations. An epoch is the number of rounds in which a record "
        "takes part once on average: dataset_size / expected_batch_size (or 1/participation_rate, or the number "
        "of bins). The number of iterations is the number of epochs times the rounds of an epoch, rounded up.",
    )


class Accounting(Section):
    """How the result is computed."""

    method: Annotated[Method, Choice(get_args(Method))] = Field(
        default="auto",
        description="The engine. auto: the best that applies; pld: privacy loss distributions are composed; "
        "monte-carlo: the privacy loss is sampled; renyi: moments of the likelihood ratio (Rényi divergences) "
        "are bounded, without a failure probability.",
    )
    verification: Annotated[VerificationMethod, Choice(get_args(VerificationMethod))] = Field(
        default="betting",
        description="How samples certify a claim. betting: by bets against the claim, as many samples as are needed; "
        "fixed-sample: by the mean of plain samples, whose number is fixed beforehand.",
    )
    tolerance: Annotated[float | None, Number(ranges.TOLERANCE)] = Field(
        default=None,
        description="The width of the interval for the answer, relative to the answer. Default: 1e-4, or 0.01 if the "
        "run is sampled.",
    )
    seed: Annotated[int | None, Number(ranges.SEED, whole=True)] = Field(
        default=None, description="The seed of all samples. Default: a random seed, which the certificate states."
    )
    profile: Annotated[tuple[Annotated[float, Number(ranges.EPSILON)], ...] | None, Items(ranges.PROFILE_LENGTH)] = (
        Field(
            default=None,
            description="The values of ε at which the certificate states δ. Default: 0 and several "
            "values around the certified ε. If the mechanism is sampled, values that are listed have estimates and "
            "sharper bounds, from samples of their own.",
        )
    )
    time_limit: Annotated[float | None, Duration(ranges.TIME_LIMIT)] = Field(
        default=None,
        description="The maximum time of the computation: `30 s`, `10 min`, `2 h`, or a number of "
        "seconds. Default: no limit.",
    )

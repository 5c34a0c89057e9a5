"""The base class of samplers: the questions that they answer, with the answers of a sampler that draws by a rate.

A sampler is a class in a module of its own, with its fields and the answers that differ from those here. `self` may
have fields that were reported as wrong already, which are neither numbers nor `None`; `stated.number_or_none` reads
them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from pyaccount.document.ranges import LARGEST_BATCH, RATE_AGREEMENT
from pyaccount.document.rates import epochs_of, epochs_text, exactly
from pyaccount.document.stated import RATE_FIELDS, StatedBody, number_or_none, stated_rates
from pyaccount.errors import Path, Problem, problem
from pyaccount.reading.fields import SOLVE, Choose, Number
from pyaccount.reading.kinds import Kind


class SamplerKind(Kind):
    """How the records of each round are drawn."""

    if TYPE_CHECKING:
        # These are fields of the samplers. Declared here, they would belong to all of them and come first in the
        # schema.

        @property
        def kind(self) -> str:
            """The word by which documents name the sampler."""

        @property
        def min_separation(self) -> int | Choose | None:
            """The field `min_separation` of a sampler that has one, for rooms that identify the sampler by its word."""

    #: The field to suggest for the share of the data set that joins a round.
    share_field = "sampling_probability"
    #: Whether all records have the same participation rate, so that an expected batch size and a data set determine it.
    common_rate = True
    #: Whether users are protected, each with all of their records.
    protects_users = False
    #: Whether the batches have a fixed number of draws.
    fixed_draws = False
    #: Why all records must be drawn with the same probability; empty if each record may have one of its own.
    one_probability = (
        "this sampler does not draw each record with a probability of its own in each round. Write one number, or draw every "
        "record independently of the others (kind: poisson)"
    )
    #: Whether the participation rate follows from a sampling probability.
    rate_follows = True
    #: The questions of `pyaccount init` about the rate, separated by spaces. If there are some, the sampling probability may be
    #: answered in their place, unless the number of draws is fixed.
    asked_rate = "dataset_size batch_size"
    #: To whom and when the sampling probability applies, in words.
    drawn = "for each record in each iteration"
    #: Whether a document of kind amplification may use this sampler.
    single_draw = False
    #: The field with the distance between a record's participations, if any, and whether the sampler always enforces
    #: it.
    spacing = ""
    spaced = False

    # ---- what it draws

    def draws(self, body: StatedBody) -> int | None:
        """Return how many batches are drawn independently for one round's sum; None if that was reported as wrong."""
        return 1

    def one_round(self, body: StatedBody, probability: Any) -> dict[str, Any] | None:
        """Return what a normal form says of a round, for samplers whose rounds compose without a matrix; None for others.

        `probability` is that of drawing as the form has it: a decimal, or those of strata.
        """
        return None

    def pattern(self, body: StatedBody, probability: Any) -> dict[str, Any] | None:
        """Return what a normal form says of how a record takes part in a run; None if there is no normal form for it.

        `every` is the length of what a run repeats, if it is not the run.
        """
        return None

    def most_drawn(self, records: float) -> float:
        """Return the maximum size of a round, with each of `records` records counted as often as it is drawn."""
        return records

    def rate_of(self, body: StatedBody, probability: float) -> float | None:
        """Return the participation rate at a sampling probability; None if there is none, or none yet."""
        return probability if self.rate_follows else None

    def participation_rate(self, body: StatedBody) -> float:
        """Return the long-run share of rounds in which a record takes part. Raises `ValueError` if none is known."""
        rates = stated_rates(body)
        if rates:
            # Several statements agree up to rounding; the largest one is the conservative choice.
            return max(rates.values())
        raise ValueError("the expected batch size is still to be solved")

    def chosen_of(self, asked: SamplerKind) -> dict[str, int]:
        """Return the values of the fields for which `asked`, the same sampler, has `choose:` lists, by field name."""
        open_fields = (name for name in type(asked).model_fields if isinstance(getattr(asked, name, None), Choose))
        return {name: getattr(self, name) for name in open_fields}

    def batch_share(self, body: StatedBody) -> float:
        """Return the average share of the records in a batch, by which runs with different batch sizes are compared."""
        return self.participation_rate(body)

    def sampling_probability(self, body: StatedBody) -> float:
        """Return the probability with which the sampler draws. Raises `ValueError` as `participation_rate` does."""
        return self.participation_rate(body)

    def user_probability(self, body: StatedBody) -> float:
        """Return the probability that the protected unit (a record, or a user) is drawn while it is available."""
        return self.sampling_probability(body)

    def separation(self, body: StatedBody) -> int | None:
        """Return the rounds from one chance of a record to the next; None while it is a choice, or without chances."""
        return None

    def usual_pattern(self, body: StatedBody, iterations: int) -> tuple[int, int]:
        """Return the usual distance of a protected unit's participations, in rounds, and how often it takes part."""
        apart = min(iterations, round((self.separation(body) or 1) - 1 + 1.0 / self.user_probability(body)))
        return apart, -(-iterations // apart)

    def most_participations(self, iterations: int) -> int:
        """Return the maximum number of rounds in which one record takes part, in a run of `iterations` rounds."""
        return iterations

    @property
    def needs_size(self) -> bool:
        """Whether its bound is for data sets of a fixed and public size: for fixed numbers of draws, and truncated batches."""
        return self.fixed_draws or getattr(self, "truncate_to", None) is not None

    @property
    def least_distance(self) -> int:
        """The least distance of two participations in an order that is fixed beforehand, in rounds."""
        return 1

    def without_limits(self) -> SamplerKind:
        """Return the sampler without limits on how often and how soon again a record takes part; most have none."""
        return self

    def batch_size(self, body: StatedBody) -> int:
        """Return the fixed number of draws in each batch. Raises `ValueError` if it is not fixed, or not yet known."""
        raise ValueError("this sampler has no fixed batch size")

    def bins_of(self, body: StatedBody) -> int:
        """Return the number of bins into which records are put. Raises `ValueError` if there are none, or none yet."""
        raise ValueError("this sampler has no bins")

    def truncation(self, body: StatedBody) -> int | None:
        """Return the size to which larger batches are truncated; None if no batch of the data set can be larger."""
        return None

    def epoch(self, body: StatedBody) -> Fraction | None:
        """Return the exact number of rounds of an epoch: 1/p₀, in which a record takes part once on average.

        Returns None if the body does not state it, or leaves it open. Several statements agree up to rounding; the
        sizes take precedence, then the participation rate, then the sampling probability.
        """
        training = body.training
        if training.expected_batch_size == SOLVE:
            return None
        records, batch = number_or_none(training.dataset_size), number_or_none(training.expected_batch_size)
        probability, rate = number_or_none(training.sampling_probability), number_or_none(training.participation_rate)
        if records is not None and batch is not None:
            return exactly(records) / exactly(batch)
        if rate is not None:
            return 1 / exactly(rate)
        if probability is None:
            return None
        return self.between_chances(body, 1 / ((self.draws(body) or 1) * exactly(probability)))

    def between_chances(self, body: StatedBody, chances: Fraction) -> Fraction | None:
        """Return the average rounds in which a record has `chances` chances; None if no probability is drawn."""
        return chances if self.rate_follows else None

    # ---- users with several records

    def for_users(self, records: int, *, shared: bool) -> dict[Path, object]:
        """Return the values, by path, for a document whose users have at most `records` records each.

        Here the records of a user are protected as a group. `shared` states whether a record may have several users,
        which makes no difference to a group of records.
        """
        return {("privacy", "group_size"): records}

    # ---- what is wrong with a document

    def problems(self, body: StatedBody) -> Iterator[Problem]:
        """Yield the problems with how a run draws its batches, in the order of reporting."""
        yield from self.draw_problems(body)
        yield from self.blank_batch_problems(body)

    def draw_problems(self, body: StatedBody) -> Iterator[Problem]:
        """Yield the problems of a single draw, which need not be part of a training run."""
        yield from self.rate_problems(body)
        yield from self.dataset_problems(body)
        yield from self.batch_problems(body)

    def rate_problems(self, body: StatedBody) -> Iterator[Problem]:
        """Report that nothing states which share of the data set joins a round."""
        training = body.training
        given = [training.expected_batch_size, *(getattr(training, field) for field in RATE_FIELDS)]
        if all(value is None for value in given):
            yield from self.rate_missing(body)

    def rate_missing(self, body: StatedBody) -> Iterator[Problem]:
        """Report a missing rate, with the fields that can state it."""
        fields = [self.share_field, *(field for field in RATE_FIELDS if field != self.share_field)]
        message = (
            f"{self.called} sampling needs its rate: give {', '.join(fields)}, or expected_batch_size together with "
            "dataset_size"
        )
        yield problem("missing-key", body.at("training", self.share_field), message)

    @property
    def called(self) -> str:
        """The name of the sampler in messages, before the word sampling."""
        return self.kind

    def dataset_problems(self, body: StatedBody) -> Iterator[Problem]:
        """Report a missing number of records where it is needed."""
        reason = self.dataset_reason(body)
        if reason is not None and body.training.dataset_size is None:
            message = f"dataset_size is required: {reason}"
            yield problem("missing-key", body.at("training", "dataset_size"), message)

    def dataset_reason(self, body: StatedBody) -> str | None:
        """Return why the number of records must be known, or None if it need not be."""
        batch = body.training.expected_batch_size
        if not self.common_rate or batch is None:
            return None
        if batch == SOLVE:
            return "an expected batch size can only be solved for if the number of records is known"
        if self.rate_is_stated(body):
            return None
        return "expected_batch_size gives the sampling rate only together with it"

    def rate_is_stated(self, body: StatedBody) -> bool:
        """Return whether the rate is stated by a field that needs no data set."""
        return any(getattr(body.training, field) is not None for field in RATE_FIELDS)

    def batch_problems(self, body: StatedBody) -> Iterator[Problem]:
        """Report a batch that is larger than the data set."""
        batch, records = number_or_none(body.training.expected_batch_size), number_or_none(body.training.dataset_size)
        if batch is not None and records is not None and batch > (most := self.most_drawn(records)):
            repeated = "" if most == records else f", drawn {most / records:.17g} times"
            message = f"a batch of {batch:.17g} is larger than the data set, which has {records:.17g} records{repeated}"
            path = body.at("training", "expected_batch_size")
            allowed = f"at most {most}; or a larger dataset_size"
            yield problem("contradiction", path, message, allowed=allowed)

    def agreeing_rates(self, body: StatedBody) -> dict[Path, float]:
        """Return the participation rates that a body states, which must agree, by the path of the statement."""
        return {body.at("training", field): rate for field, rate in stated_rates(body).items()}

    def blank_batch_problems(self, body: StatedBody) -> Iterator[Problem]:
        """Report fields that fix the expected batch size while it is to be solved."""
        if body.training.expected_batch_size == SOLVE:
            for path in self.fixing_batch(body):
                message = "expected_batch_size is to be solved, but this would fix it: leave this out"
                yield problem("contradiction", path, message)

    def fixing_batch(self, body: StatedBody) -> Iterator[Path]:
        """Yield the paths of the fields that determine the batch size without stating it."""
        for field in RATE_FIELDS:
            if number_or_none(getattr(body.training, field)) is not None:
                yield body.at("training", field)

    def epoch_problems(self, body: StatedBody) -> Iterator[Problem]:
        """Report why the length of an epoch is unknown, unless another rule asks for the missing value."""
        yield from ()

    # ---- notes on valid documents

    def on_epochs(self, body: StatedBody, epoch: Fraction, iterations: int) -> str | None:
        """Return a note on the document's epochs, given the rounds of an epoch and the total iterations, or None."""
        done = epochs_text(epochs_of(iterations, epoch))
        if done == epochs_text(body.epochs or 0.0):
            return None
        return f"an epoch has {float(epoch):.10g} rounds, so this is rounded up to {iterations:_} iterations, {done}"

    # ---- what `pyaccount init` asks

    @classmethod
    def questions(cls, answers: Collection[str], blank: str) -> set[str]:
        """Return the names of the questions of this sampler, given the answers so far and the name of the blank: by default its
        required keys, its rate, and the distance that it enforces.
        """
        rate = cls.asked_rate.split()
        if rate and "sampling_probability" in answers and not cls.fixed_draws:
            rate = ["sampling_probability"]
        return {*cls.required(), *rate, *([cls.spacing] if cls.spaced else [])}

    @classmethod
    def required(cls) -> set[str]:
        """Return the keys without a default, except the kind."""
        return {name for name, field in cls.model_fields.items() if field.is_required()} - {"kind"}


def disagreements(body: StatedBody, position: Callable[[Path], tuple[int, ...]]) -> Iterator[Problem]:
    """Report statements of the rate that contradict the first one; `position` says which is first in the document."""
    rates = body.sampler.agreeing_rates(body)
    paths = sorted(rates, key=position)
    for path in paths[1:]:
        first, rate = paths[0], rates[path]
        if not math.isclose(rate, rates[first], rel_tol=RATE_AGREEMENT):
            batch = " with dataset_size"
            message = (
                f"this gives a rate of {rate:.12g}{batch if path[-1] == 'expected_batch_size' else ''}, but "
                f"{first[-1]}{batch if first[-1] == 'expected_batch_size' else ''} gives {rates[first]:.12g}"
            )
            yield problem("contradiction", path, message)


class Truncatable(SamplerKind):
    """A sampler whose batches vary in size, so that large batches can be truncated."""

    truncate_to: Annotated[int | None, Number(LARGEST_BATCH, whole=True)] = Field(
        default=None,
        description="The maximum number B of records in a batch. If a batch has more, B of them are kept, at random. "
        "(Smaller batches may be padded.) Dropped records count as drawn. Default: batches are not truncated.",
    )

    def truncation(self, body: StatedBody) -> int | None:
        """Return the size to which larger batches are truncated; None if no batch of the data set can be larger, or if
        its size is not stated.
        """
        limit, records = self.truncate_to, body.training.dataset_size
        return limit if isinstance(limit, int) and isinstance(records, int) and limit < records else None

    def dataset_reason(self, body: StatedBody) -> str | None:
        """Return why the number of records must be known: it also determines how often batches are truncated."""
        if number_or_none(self.truncate_to) is not None:
            return "how often batches are truncated depends on the number of records, which is then public"
        return super().dataset_reason(body)


class UnreadSampler(SamplerKind):
    """Replaces a sampler that could not be read, which was reported. Only mistakes in `training` that are mistakes
    under every sampler are reported.
    """

    one_probability = ""

    def epoch(self, body: StatedBody) -> Fraction | None:
        """Return None, because the sampler is unknown."""
        return None

    def rate_problems(self, body: StatedBody) -> Iterator[Problem]:
        """Report nothing, because it is unknown which rate the sampler needs."""
        yield from ()

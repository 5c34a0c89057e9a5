"""What a sampler is asked, and the answers of one that draws by a rate.

A sampler is a class of its own module: its fields, and the answers that differ from those here. `self` may have fields that
were reported as wrong already, which are neither numbers nor `None`; `stated.number` reads them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from pyaccount.document.epochs import counted, epochs_of, exactly
from pyaccount.document.fields import SOLVE, Choose, Number
from pyaccount.document.kinds import Kind
from pyaccount.document.ranges import LARGEST_BATCH, RATE_AGREEMENT
from pyaccount.document.stated import RATE_FIELDS, number, stated_rates
from pyaccount.errors import Path, Problem

if TYPE_CHECKING:
    from fractions import Fraction

    from pyaccount.document.stated import StatedBody
    from pyaccount.document.written import Written


class SamplerKind(Kind):
    """How the records of each round are drawn."""

    if TYPE_CHECKING:
        # Fields of the samplers themselves: here they would come first in the schema, and belong to all.

        @property
        def kind(self) -> str:
            """The sampler's own word."""

        @property
        def min_separation(self) -> int | Choose | None:
            """Of a sampler that has one: for rooms that know it by its word."""

    #: The field that states best which share of the data set joins a round.
    share_field = "sampling_probability"
    #: Whether all records have one participation rate, which an expected batch of a data set then is.
    common_rate = True
    #: Whether users are protected, with all of their records.
    protects_users = False
    #: Whether the batches have a fixed number of draws.
    fixed_draws = False
    #: For whom, and when, the sampling probability is the probability of being drawn.
    drawn = "for each record in each iteration"
    #: Whether a document of kind amplification may be about one draw by it.
    single_draw = False
    #: The field that says how far apart a record's participations are, if there is one, and whether drawing always keeps them
    #: apart.
    spacing = ""
    spaced = False

    # ---- what it draws

    def draws(self, body: StatedBody) -> int | None:
        """How many batches are drawn, each by itself, for the sum of one round; None where that was reported as wrong."""
        return 1

    def most_drawn(self, records: float) -> float:
        """The most records of a data set of this size that a round can have, each counted as often as it is drawn."""
        return records

    def rate_of(self, body: StatedBody, probability: float) -> float | None:
        """The participation rate that goes with a sampling probability; None where none does, or where that is still open."""
        return probability

    def participation_rate(self, body: StatedBody) -> float:
        """The long-run share of rounds that a record takes part in. Raises `ValueError` if there is none, or none yet."""
        rates = stated_rates(body)
        if rates:
            # Several statements agree to rounding; the largest is safe.
            return max(rates.values())
        raise ValueError("the expected batch size is still to be solved")

    def chosen_of(self, asked: SamplerKind) -> dict[str, int]:
        """What it has of the fields that `asked`, the same sampler, leaves to `choose:` lists, by their names."""
        open_fields = (name for name in type(asked).model_fields if isinstance(getattr(asked, name, None), Choose))
        return {name: getattr(self, name) for name in open_fields}

    def batch_share(self, body: StatedBody) -> float:
        """The share of the records that a batch has in the mean: by this runs with batches of different sizes are compared."""
        return self.participation_rate(body)

    def sampling_probability(self, body: StatedBody) -> float:
        """What the sampler draws with. Raises `ValueError` as above."""
        return self.participation_rate(body)

    def user_probability(self, body: StatedBody) -> float:
        """The probability that whoever is protected is drawn while available: a record, unless this samples users."""
        return self.sampling_probability(body)

    def separation(self, body: StatedBody) -> int | None:
        """The rounds between two chances of a record. None while that is a choice, and for a sampler without chances."""
        return None

    def usual_pattern(self, body: StatedBody, iterations: int) -> tuple[int, int]:
        """How far apart whoever is protected usually takes part in so many rounds, and how often."""
        apart = min(iterations, round((self.separation(body) or 1) - 1 + 1.0 / self.user_probability(body)))
        return apart, -(-iterations // apart)

    def most_participations(self, iterations: int) -> int:
        """The largest number of so many rounds in which one record takes part."""
        return iterations

    def batch_size(self, body: StatedBody) -> int:
        """The number of draws in each batch, if that is fixed. Raises `ValueError` if it is not, or not yet known."""
        raise ValueError("this sampler has no fixed batch size")

    def bins_of(self, body: StatedBody) -> int:
        """The number of bins that records are put in. Raises `ValueError` if there are none, or if nothing states it."""
        raise ValueError("this sampler has no bins")

    def truncation(self, body: StatedBody) -> int | None:
        """The size that larger batches are cut to; None where no batch of the data set can be larger."""
        return None

    def epoch(self, body: StatedBody) -> Fraction | None:
        """Return the rounds of an epoch, exactly: 1/p₀, the rounds in which a record takes part once, in the long run.

        None where the body does not say it, or leaves it open. Of several statements, which agree to rounding, the sizes count
        first, then the participation rate, then the sampling probability.
        """
        training = body.training
        if training.expected_batch_size == SOLVE:
            return None
        records, batch = number(training.dataset_size), number(training.expected_batch_size)
        probability, rate = number(training.sampling_probability), number(training.participation_rate)
        if records is not None and batch is not None:
            return exactly(records) / exactly(batch)
        if rate is not None:
            return 1 / exactly(rate)
        if probability is None:
            return None
        return self.between_chances(body, 1 / ((self.draws(body) or 1) * exactly(probability)))

    def between_chances(self, body: StatedBody, chances: Fraction) -> Fraction | None:
        """Return the rounds until a record is drawn that needs so many chances on average; None where no probability is drawn."""
        return chances

    # ---- users with several records

    def for_users(self, records: int, *, shared: bool) -> dict[Path, object]:
        """What a document says, and where, of users with at most so many records each: that a group of records is protected.

        `shared` is whether a record may have several users, which to a group of records makes no difference.
        """
        return {("privacy", "group_size"): records}

    # ---- what is wrong with a document

    def problems(self, document: Written, body: StatedBody) -> Iterator[Problem]:
        """What is wrong with how a run draws its batches, in the order in which it is told."""
        yield from self.draw_problems(document, body)
        yield from self.blank_batch_problems(document, body)

    def draw_problems(self, document: Written, body: StatedBody) -> Iterator[Problem]:
        """The same of a single draw, which need not be part of a training run."""
        yield from self.rate_problems(document, body)
        yield from self.dataset_problems(document, body)
        yield from self.batch_problems(document, body)
        yield from self.disagreements(document, body)

    def rate_problems(self, document: Written, body: StatedBody) -> Iterator[Problem]:
        """Sampling needs to know how much of the data set joins a round."""
        training = body.training
        given = [training.expected_batch_size, *(getattr(training, field) for field in RATE_FIELDS)]
        if all(value is None for value in given):
            yield from self.rate_missing(document, body)

    def rate_missing(self, document: Written, body: StatedBody) -> Iterator[Problem]:
        """What to give where `training` says nothing of it."""
        fields = [self.share_field, *(field for field in RATE_FIELDS if field != self.share_field)]
        message = (
            f"{self.called} sampling needs its rate: give {', '.join(fields)}, or expected_batch_size together with "
            "dataset_size"
        )
        yield document.problem("missing-key", body.at("training", self.share_field), message)

    @property
    def called(self) -> str:
        """What a message calls the sampler, before the word sampling."""
        return self.kind

    def dataset_problems(self, document: Written, body: StatedBody) -> Iterator[Problem]:
        """A batch is a rate only in proportion to the data set."""
        reason = self.dataset_reason(document, body)
        if reason is not None and body.training.dataset_size is None:
            message = f"dataset_size is required: {reason}"
            yield document.problem("missing-key", body.at("training", "dataset_size"), message)

    def dataset_reason(self, document: Written, body: StatedBody) -> str | None:
        """Why the number of records must be known, if it must."""
        batch = body.training.expected_batch_size
        if not self.common_rate or batch is None:
            return None
        if batch == SOLVE:
            return "an expected batch size can be solved for only with a known number of records"
        if self.rate_is_stated(body):
            return None
        return "expected_batch_size gives the sampling rate only together with it"

    def rate_is_stated(self, body: StatedBody) -> bool:
        """Whether something says the rate that needs no data set."""
        return any(getattr(body.training, field) is not None for field in RATE_FIELDS)

    def batch_problems(self, document: Written, body: StatedBody) -> Iterator[Problem]:
        """No round has more records than there are."""
        batch, records = number(body.training.expected_batch_size), number(body.training.dataset_size)
        if batch is not None and records is not None and batch > (most := self.most_drawn(records)):
            repeated = "" if most == records else f", drawn {most / records:.17g} times"
            message = f"a batch of {batch:.17g} is larger than the data set, which has {records:.17g} records{repeated}"
            path = body.at("training", "expected_batch_size")
            allowed = f"at most {most}; or a larger dataset_size"
            yield document.problem("contradiction", path, message, allowed=allowed)

    def disagreements(self, document: Written, body: StatedBody) -> Iterator[Problem]:
        """A rate that is given in several ways is the same in all."""
        rates = {body.at("training", field): rate for field, rate in stated_rates(body).items()}
        paths = sorted(rates, key=document.position)
        for path in paths[1:]:
            first, rate = paths[0], rates[path]
            if not math.isclose(rate, rates[first], rel_tol=RATE_AGREEMENT):
                batch = " with dataset_size"
                message = (
                    f"this gives a rate of {rate:.12g}{batch if path[-1] == 'expected_batch_size' else ''}, but "
                    f"{first[-1]}{batch if first[-1] == 'expected_batch_size' else ''} gives {rates[first]:.12g}"
                )
                yield document.problem("contradiction", path, message)

    def blank_batch_problems(self, document: Written, body: StatedBody) -> Iterator[Problem]:
        """An expected batch size can be solved for if nothing else fixes it."""
        if body.training.expected_batch_size == SOLVE:
            for path in self.fixing_batch(body):
                message = "expected_batch_size is to be solved, which this would fix: leave this out"
                yield document.problem("contradiction", path, message)

    def fixing_batch(self, body: StatedBody) -> Iterator[Path]:
        """The places of what says how large a batch is without its size."""
        for field in RATE_FIELDS:
            if number(getattr(body.training, field)) is not None:
                yield body.at("training", field)

    def epoch_problems(self, document: Written, body: StatedBody) -> Iterator[Problem]:
        """Why it is not known how many rounds an epoch has, where no other rule asks for what says it."""
        yield from ()

    # ---- what its author may not have meant

    def on_epochs(self, body: StatedBody, epoch: Fraction, iterations: int) -> str | None:
        """What is worth a note about epochs that a document asks for, given the rounds of one and the iterations of all."""
        done = counted(epochs_of(iterations, epoch))
        if done == counted(body.epochs or 0.0):
            return None
        return f"an epoch has {float(epoch):.10g} rounds, so this is rounded up to {iterations:_} iterations, {done}"

    # ---- what `pyaccount init` asks

    @classmethod
    def questions(cls, answers: Collection[str], blank: str) -> set[str]:
        """The names of the questions that it raises beside those of every document, given what was answered and is left blank.

        Here the keys that it must have, and a rate: as a probability if that was said, or by the sizes of batch and data set.
        """
        rate = ("sampling_probability",) if "sampling_probability" in answers else ("dataset_size", "batch_size")
        return {*cls.required(), *rate}

    @classmethod
    def required(cls) -> set[str]:
        """The keys without a default, but for the kind."""
        return {name for name, field in cls.model_fields.items() if field.is_required()} - {"kind"}


class Truncatable(SamplerKind):
    """A sampler whose batches vary in size, so that large batches can be truncated."""

    truncate_to: Annotated[int | None, Number(LARGEST_BATCH, whole=True)] = Field(
        default=None,
        description="The maximum number B of records in a batch. If a batch has more, B of them are kept, at random. "
        "(Smaller batches may be padded.) Dropped records count as drawn. Default: batches are not truncated.",
    )

    def truncation(self, body: StatedBody) -> int | None:
        """The size that larger batches are cut to; None where none can be larger, and where it is not said how large."""
        limit, records = self.truncate_to, body.training.dataset_size
        return limit if isinstance(limit, int) and isinstance(records, int) and limit < records else None

    def dataset_reason(self, document: Written, body: StatedBody) -> str | None:
        """As above, and because of what is cut off."""
        if number(self.truncate_to) is not None:
            return "how often batches are truncated depends on the number of records, which is public then"
        return super().dataset_reason(document, body)


class UnreadSampler(SamplerKind):
    """Stands for a sampler that could not be read, which was reported: of what `training` says, only mistakes under any
    sampler are reported.
    """

    def epoch(self, body: StatedBody) -> Fraction | None:
        """Return None: nobody knows."""
        return None

    def rate_problems(self, document: Written, body: StatedBody) -> Iterator[Problem]:
        """Nothing is asked for."""
        yield from ()

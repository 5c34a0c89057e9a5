"""A mechanism is a tree of nodes, which are data: leaves, and what is made of others by running them together.

A leaf is a training run, or the release of a mechanism. Nodes run others one after the other (`Sequence`), on one sample
(`Sample`), on disjoint parts of the data (`Parts`), or a random number of times, of which the best run is released (`Best`).

How often a record takes part can be stated in three ways. The participation rate p₀ is the long-run share of rounds in
which a record takes part, for every sampler. The expected batch size is p₀ times the size of the data set. The sampling
probability p is the probability with which the sampler draws: for Poisson and fixed-size sampling it equals p₀; for
b-min-sep sampling it is conditional on availability, p₀ = 1/(b − 1 + 1/p); for cyclic Poisson sampling it applies
within the current part, p₀ = p/b. Balls in bins have no sampling probability: p₀ = 1/T. With replacement, and if a
round has several draws, p₀ is the expected number of times that a record is drawn in a round; for m draws p₀ = m·p.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

from pyaccount.document.rates import iterations_of
from pyaccount.document.schedules import (
    Scheduled,
    ScheduledBatch,
    ScheduledMultiplier,
    ScheduledProbability,
    ScheduleFile,
    readable,
)
from pyaccount.document.stated import number_or_none
from pyaccount.reading.fields import SOLVE, Solve

if TYPE_CHECKING:
    from collections.abc import Iterator
    from fractions import Fraction

    from pyaccount.document.matrices import MatrixKind
    from pyaccount.document.mechanisms import MechanismKind
    from pyaccount.document.noise import AnyNoise
    from pyaccount.document.own_probabilities import OwnProbabilities
    from pyaccount.document.samplers import SamplerKind
    from pyaccount.document.sections import Training
    from pyaccount.document.selection import RunsKind
    from pyaccount.document.workload import StatedWorkload
    from pyaccount.errors import Path


@dataclass(frozen=True, slots=True)
class Draw:
    """A Poisson sample of the records, or of the clients, that is drawn anew for each run of what is inside."""

    #: The probability of a record, or client; the largest one if they differ.
    probability: float
    #: Whether clients are drawn, each with records of its own, instead of records.
    clients: bool = False
    #: The probabilities of records that are not all drawn with the same one.
    own: OwnProbabilities | None = None

    @property
    def units(self) -> str:
        """What is drawn, in words."""
        return "clients" if self.clients else "records"


@dataclass(frozen=True, slots=True)
class Node:
    """One mechanism of a document; `path` is its document path, `()` at the top level or `("phases", index)`."""

    #: The key of the document under which the node states what it releases.
    key: ClassVar[str]

    path: Path
    name: str | None
    #: How often it is run.
    count: int

    @property
    def inner(self) -> tuple[Node, ...]:
        """The nodes that one run of this one consists of."""
        return ()

    @property
    def draw(self) -> Draw | None:
        """The sample that each run is on; None without one, and for training runs, which have samplers."""
        return None

    @property
    def own_probabilities(self) -> OwnProbabilities | None:
        """The probabilities of records that are not all drawn with the same one; None if they are."""
        return None if self.draw is None else self.draw.own

    @property
    def sampler_kind(self) -> str:
        """The word for how the records of each round, or run, are drawn."""
        return "none" if self.draw is None else "poisson"

    @property
    def protects_users(self) -> bool:
        """Whether users are protected, each with all of their records."""
        return False

    @property
    def rounds(self) -> int | Solve:
        """The number of rounds of one run: of a training run its iterations, and 1 of anything else."""
        return 1

    @property
    def bounded_loss(self) -> bool:
        """Whether the privacy loss of what the node itself releases is bounded for every output."""
        return True

    @property
    def released_kind(self) -> str:
        """The kind of noise, or of mechanism, of what is released."""
        return self.key

    def at(self, *path: str) -> Path:
        """Return the document path of something in this node."""
        return (*self.path, *path)

    def at_probability(self) -> Path:
        """Return the document path of the sampling probability."""
        return self.at("sampler", "sampling_probability")

    def contains(self, path: Path) -> bool:
        """Return whether something at a document path is in this node."""
        return path[: len(self.path)] == self.path

    def every(self) -> Iterator[Node]:
        """Yield the node, and the nodes inside of it, each followed by those that are inside it."""
        yield self
        for node in self.inner:
            yield from node.every()

    def runs(self) -> Iterator[TrainingNode]:
        """Yield the training runs, this one or inside, in the order of the document."""
        for node in self.inner:
            yield from node.runs()

    def schedules(self) -> dict[Path, Scheduled]:
        """Return what differs from round to round, by its document path."""
        return {}

    def files(self) -> dict[Path, str]:
        """Return the names of the files that the node names, by document path: a matrix, and schedules."""
        return {}

    def nameless(self) -> Node:
        """Return the node without its place and name, and likewise those inside of it, to compare nodes by."""
        return replace(self, path=(), name=None)


@dataclass(frozen=True, slots=True)
class TrainingNode(Node):
    """Rounds that release a sum over a batch, with noise."""

    key: ClassVar[str] = "training"

    training: Training
    sampler: SamplerKind
    matrix: MatrixKind
    #: The noise of each round, with the factor of all phases if there is one.
    noise: AnyNoise
    #: The name of the section with the rates: `sampling` in a document about a single draw, which has no training.
    rates: str = "training"
    #: The epochs that the document states, if any; `training` then has the corresponding iterations.
    epochs: float | None = None
    #: The workload for which errors are reported; None, also for one that could not be read, means prefix sums.
    workload: StatedWorkload | None = None
    #: The noise as the document states it, without the factor of all phases; None means that there is no such factor.
    stated_noise: AnyNoise | None = None
    #: The probabilities of records that are not all drawn with the same one. `training` then has the largest of them, unless the
    #: sampler needs one probability for all records.
    own_probabilities: OwnProbabilities | None = field(default=None)

    @property
    def sampler_kind(self) -> str:
        """The word for the sampler."""
        return self.sampler.kind

    @property
    def protects_users(self) -> bool:
        """Whether the sampler knows users."""
        return self.sampler.protects_users

    @property
    def rounds(self) -> int | Solve:
        """The number of iterations."""
        return self.training.iterations

    @property
    def bounded_loss(self) -> bool:
        """Whether that of the noise is; noise that was reported as wrong counts as bounded."""
        return getattr(self.noise, "bounded_loss", True)

    @property
    def released_kind(self) -> str:
        """The kind of the noise."""
        return str(getattr(self.noise, "kind", ""))

    def at(self, *path: str) -> Path:
        """Return the document path of something in this run."""
        return (*self.path, self.rates, *path[1:]) if path[0] == "training" else (*self.path, *path)

    def at_probability(self) -> Path:
        """Return the document path of the sampling probability."""
        return self.at("training", "sampling_probability")

    def runs(self) -> Iterator[TrainingNode]:
        """Yield this run."""
        yield self

    def schedules(self) -> dict[Path, Scheduled]:
        """Return what differs from round to round, by its document path."""
        values = {
            self.at("noise", "multiplier"): getattr(self.noise, "multiplier", None),
            self.at("training", "sampling_probability"): self.training.sampling_probability,
            self.at("training", "expected_batch_size"): self.training.expected_batch_size,
        }
        kinds = ScheduledMultiplier | ScheduledProbability | ScheduledBatch
        return {path: value for path, value in values.items() if isinstance(value, kinds)}

    def files(self) -> dict[Path, str]:
        """Return the names of the files that the body names, by document path: a matrix, and schedules."""
        named = {self.at("matrix", field): str(getattr(self.matrix, field)) for field in self.matrix.files}
        for path, scheduled in self.schedules().items():
            schedule = readable(scheduled)
            # A file that is no text is reported already.
            if isinstance(schedule, ScheduleFile) and isinstance(schedule.file, str):
                named[*path, "schedule", "file"] = schedule.file
        return named

    @property
    def rates_scheduled(self) -> bool:
        """Whether each round has a rate of its own, so that there is no single one."""
        rates = (self.training.sampling_probability, self.training.expected_batch_size)
        return any(isinstance(rate, ScheduledProbability | ScheduledBatch) for rate in rates)

    @property
    def has_one_rate(self) -> bool:
        """Whether all records take part equally often in all rounds. If not, rates of the body are the largest ones."""
        return not self.rates_scheduled and self.own_probabilities is None

    def separation(self) -> int | None:
        """Return the number of rounds from one chance of a record to be drawn to the next.

        It is b for b-min-sep and cyclic Poisson sampling (by default the number of bands), and 1 for Poisson sampling.
        It is None while it is a choice, and for samplers without such chances.
        """
        return self.sampler.separation(self)

    def participation_rate(self) -> float:
        """Return p₀, the long-run share of rounds in which a record takes part.

        Raises `ValueError` if there is none, because the order is deterministic, the users differ, or the batch is
        still a blank.
        """
        return self.sampler.participation_rate(self)

    def sampling_probability(self) -> float:
        """Return p, the probability with which the sampler draws. Raises `ValueError` as `participation_rate` does."""
        return self.sampler.sampling_probability(self)

    def draws_per_iteration(self) -> int:
        """Return how many batches are drawn independently for the sum of one round; 1 for most samplers."""
        return self.sampler.draws(self) or 1

    def participations(self) -> int:
        """Return the largest number of rounds in which one record takes part during one run: all, unless the order is fixed.

        Raises `ValueError` while the number of iterations is still a blank.
        """
        iterations = self.training.iterations
        if iterations == SOLVE:
            raise ValueError("the number of iterations is still to be solved")
        return self.sampler.most_participations(iterations)

    def epoch(self) -> Fraction | None:
        """Return the exact number of rounds of an epoch, or None if the body does not determine it."""
        return self.sampler.epoch(self) if self.own_probabilities is None else None

    def bins(self) -> int:
        """Return T of balls in bins. Raises `ValueError` if nothing states it."""
        return self.sampler.bins_of(self)

    def batch_size(self) -> int:
        """Return the number of draws in each batch of a sampler that has a fixed one.

        Raises `ValueError` if the sampler is another one, or if the batch is still a blank.
        """
        return self.sampler.batch_size(self)

    def expected_batch_size(self) -> float | None:
        """Return the expected number of records in a batch, or None if the body does not determine it."""
        training = self.training
        if training.expected_batch_size is not None:
            return number_or_none(training.expected_batch_size)
        if training.dataset_size is None or not self.sampler.common_rate or not self.has_one_rate:
            return None
        return self.participation_rate() * training.dataset_size

    def truncation(self) -> int | None:
        """Return the size B to which batches are truncated; None if no batch of the (known) data set can be larger."""
        return self.sampler.truncation(self)

    def in_iterations(self) -> TrainingNode:
        """Return the run with its epochs, if any, converted to iterations where they determine them."""
        asked = number_or_none(self.training.epochs)
        if asked is None:
            return self
        training, length = self.training, self.epoch()
        if training.iterations is None and length is not None:
            training = training.model_copy(update={"iterations": iterations_of(asked, length)})
        # The later rooms know only iterations.
        return replace(self, training=training.model_copy(update={"epochs": None}), epochs=asked)


@dataclass(frozen=True, slots=True)
class MechanismRelease(Node):
    """The release of a mechanism in place of training, of all records or of a sample."""

    key: ClassVar[str] = "mechanism"

    mechanism: MechanismKind
    draw: Draw | None = field(default=None)

    @property
    def bounded_loss(self) -> bool:
        """Whether that of the mechanism is."""
        return self.mechanism.bounded_loss

    @property
    def released_kind(self) -> str:
        """The kind of the mechanism."""
        return str(getattr(self.mechanism, "kind", ""))


@dataclass(frozen=True, slots=True)
class Combined(Node):
    """A node of which one run consists of those of others."""

    #: The key of the list of the nodes inside.
    list_key: ClassVar[str] = "phases"
    key: ClassVar[str] = "phases"

    inner: tuple[Node, ...] = field()

    def nameless(self) -> Node:
        """Return the node without its place and name, and likewise those inside of it, to compare nodes by."""
        return replace(self, path=(), name=None, inner=tuple(node.nameless() for node in self.inner))


@dataclass(frozen=True, slots=True)
class Sequence(Combined):
    """Nodes that are run one after the other."""


@dataclass(frozen=True, slots=True)
class Sample(Combined):
    """Nodes that are run one after the other on one sample."""

    draw: Draw | None = field()


@dataclass(frozen=True, slots=True)
class Parts(Combined):
    """Nodes that are run on disjoint parts of the data."""

    list_key: ClassVar[str] = "parallel"
    key: ClassVar[str] = "parallel"


@dataclass(frozen=True, slots=True)
class Best(Combined):
    """A random number of runs of nodes, of which the best one is released."""

    key: ClassVar[str] = "select"

    #: The law of the number of runs; None if it could not be read.
    law: RunsKind | None

    @property
    def bounded_loss(self) -> bool:
        """Whether a bound on that of the best run is implemented: for runs of one mechanism."""
        return len(self.inner) == 1 and self.inner[0].key == "mechanism" and self.inner[0].count == 1

"""The parts of a document as the later rooms read them.

How often a record takes part can be stated in three ways. The participation rate p₀ is the long-run share of rounds that a
record takes part in, whatever the sampler; the expected batch size is p₀ times the data set. The sampling probability p is what
the sampler itself draws with: the same number for Poisson and fixed-size sampling, conditional on availability for b-min-sep
sampling, p₀ = 1/(b − 1 + 1/p), and within the current part for cyclic Poisson sampling, p₀ = p/b. Balls in bins have none:
p₀ = 1/T. With replacement p₀ is the expected number of times that a record is drawn in a round, and so it is where a round has
several draws: p₀ = m·p.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from pyaccount.document.epochs import iterations_of
from pyaccount.document.fields import SOLVE
from pyaccount.document.matrices import MatrixKind
from pyaccount.document.models import Phase, PhasedDocument, SingleDocument
from pyaccount.document.nodes import REPORTED
from pyaccount.document.noise import AnyNoise
from pyaccount.document.samplers import SamplerKind, UnreadSampler
from pyaccount.document.sections import Accounting, Privacy, Training
from pyaccount.document.stated import number
from pyaccount.document.workload import StatedWorkload
from pyaccount.document.written import Written
from pyaccount.errors import Path

if TYPE_CHECKING:
    from fractions import Fraction

Model = SingleDocument | PhasedDocument


class HasSampler(Protocol):
    """A model with a sampler."""

    @property
    def sampler(self) -> SamplerKind:
        """How it draws."""


@dataclass(frozen=True, slots=True)
class Body:
    """One mechanism of a document; `path` is where it stands, `()` at the top level or `("phases", index)`."""

    path: Path
    name: str | None
    training: Training
    sampler: SamplerKind
    matrix: MatrixKind
    noise: AnyNoise
    count: int
    #: What the section of the rates is called: in a document about a single draw there is no training.
    rates: str = "training"
    #: The epochs that the document asks for, if it counts in them; `training` then has the iterations that these are.
    epochs: float | None = None
    #: What errors are of; None: prefix sums, and so where it could not be read.
    workload: StatedWorkload | None = None

    def at(self, *path: str) -> Path:
        """Return the document path of something in this body."""
        return (*self.path, self.rates, *path[1:]) if path[0] == "training" else (*self.path, *path)

    def bands(self) -> int | None:
        """Return the number of non-zero diagonals of the matrix; None while it is a choice, and for one that is not banded."""
        return self.matrix.diagonals()

    def separation(self) -> int | None:
        """Return the rounds between two chances of a record.

        That is b of b-min-sep and cyclic Poisson sampling, the number of bands unless said otherwise; 1 for Poisson sampling.
        None while it is a choice, and for samplers without chances.
        """
        return self.sampler.separation(self)

    def participation_rate(self) -> float:
        """Return p₀, the long-run share of rounds that a record takes part in.

        Raises `ValueError` if there is none: because the order is deterministic, because the users differ, or because the batch
        is still a blank.
        """
        return self.sampler.participation_rate(self)

    def sampling_probability(self) -> float:
        """Return what the sampler draws with; p₀ for Poisson and fixed-size sampling. Raises `ValueError` as above."""
        return self.sampler.sampling_probability(self)

    def draws_per_iteration(self) -> int:
        """Return how many batches are drawn independently for the sum of one round: 1 unless the sampler says otherwise."""
        return self.sampler.draws(self) or 1

    def user_probability(self) -> float:
        """Return the probability that an available user is drawn, by at least one of k records: 1 − (1 − p)^k."""
        return self.sampler.user_probability(self)

    def participations(self) -> int:
        """Return the largest number of rounds in which one record takes part during one run: all, unless the order is fixed.

        Raises `ValueError` while the number of iterations is still a blank.
        """
        iterations = self.training.iterations
        if iterations == SOLVE:
            raise ValueError("the number of iterations is still to be solved")
        return self.sampler.most_participations(iterations)

    def epoch(self) -> Fraction | None:
        """Return the rounds of an epoch, exactly; None where the body does not say it, or leaves it open."""
        return self.sampler.epoch(self)

    def bins(self) -> int:
        """Return T of balls in bins. Raises `ValueError` if nothing states it."""
        return self.sampler.bins_of(self)

    def batch_size(self) -> int:
        """Return the number of draws in each batch of a sampler that has a fixed one.

        Raises `ValueError` if the sampler is another one, or if the batch is still a blank.
        """
        return self.sampler.batch_size(self)

    def expected_batch_size(self) -> float | None:
        """Return the expected number of records in a batch, where the data set's size is known."""
        training = self.training
        if training.expected_batch_size is not None:
            return number(training.expected_batch_size)
        if training.dataset_size is None or not self.sampler.common_rate:
            return None
        return self.participation_rate() * training.dataset_size

    def truncation(self) -> int | None:
        """Return B of truncated batches; None where no batch can be larger, and where the data set's size is not given."""
        return self.sampler.truncation(self)

    def in_iterations(self) -> Body:
        """Return the body with its epochs, if it counts in them, as iterations; as it is where these do not follow."""
        asked = number(self.training.epochs)
        if asked is None:
            return self
        training, length = self.training, self.epoch()
        if training.iterations is None and length is not None:
            training = training.model_copy(update={"iterations": iterations_of(asked, length)})
        # The later rooms know iterations alone.
        return replace(self, training=training.model_copy(update={"epochs": None}), epochs=asked)


class Mechanism(Written):
    """What the rules read of a mechanism document, which may still break some of them."""

    name: str
    accounting: Accounting
    bodies: tuple[Body, ...]
    #: As the document states it; `privacy` asks for ε at a δ where there is a budget of risk.
    stated_privacy: Privacy
    privacy: Privacy


def bodies_of(model: Model) -> tuple[Body, ...]:
    """The bodies of a document, whatever its shape; none where the phases could not be read."""
    if isinstance(model, SingleDocument):
        return (_body_of(model, (), None),)
    if not isinstance(model.phases, tuple):
        return ()
    return tuple(_body_of(phase, ("phases", index), phase.name) for index, phase in enumerate(model.phases))


def _body_of(model: SingleDocument | Phase, path: Path, name: str | None) -> Body:
    # What could not be read was reported; the rules go on with a matrix of which nothing is known.
    matrix = model.matrix if _was_read(model.matrix) else MatrixKind()
    workload = model.workload if _was_read(model.workload) else None
    return Body(path, name, model.training, sampler_of(model), matrix, model.noise, model.count, workload=workload)


def sampler_of(model: HasSampler) -> SamplerKind:
    """The sampler of a model, or what stands for it where it could not be read."""
    return model.sampler if _was_read(model.sampler) else UnreadSampler()


def _was_read(value: object) -> bool:
    return value is not REPORTED

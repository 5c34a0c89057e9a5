"""The parts of a document as the later rooms read them.

How often a record takes part can be stated in three ways. The participation rate p₀ is the long-run share of rounds in
which a record takes part, for every sampler. The expected batch size is p₀ times the size of the data set. The sampling
probability p is the probability with which the sampler draws: for Poisson and fixed-size sampling it equals p₀; for
b-min-sep sampling it is conditional on availability, p₀ = 1/(b − 1 + 1/p); for cyclic Poisson sampling it applies
within the current part, p₀ = p/b. Balls in bins have no sampling probability: p₀ = 1/T. With replacement, and if a
round has several draws, p₀ is the expected number of times that a record is drawn in a round; for m draws p₀ = m·p.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from pyaccount.document.epochs import iterations_of
from pyaccount.document.matrices import Identity, MatrixKind
from pyaccount.document.mechanisms import MechanismKind
from pyaccount.document.mechanisms.base import OfParts, OfPhases
from pyaccount.document.models import (
    AnyDocument,
    AnyPart,
    AnyPhase,
    DisjointPhases,
    MechanismDocument,
    MechanismPhase,
    PartPhases,
    PhasedDocument,
    SampledPhases,
    SelectedPhases,
)
from pyaccount.document.noise import AnyNoise, SharedNoise, scaled
from pyaccount.document.own_probabilities import OwnProbabilities
from pyaccount.document.samplers import Deterministic, Poisson, SamplerKind, UnreadSampler
from pyaccount.document.schedules import (
    Scheduled,
    ScheduledBatch,
    ScheduledMultiplier,
    ScheduledProbability,
    ScheduleFile,
    readable,
)
from pyaccount.document.sections import Accounting, Privacy, Training
from pyaccount.document.selection import RunsKind
from pyaccount.document.stated import number_or_none
from pyaccount.document.workload import StatedWorkload
from pyaccount.errors import Path
from pyaccount.reading.fields import SOLVE, Solve
from pyaccount.reading.nodes import REPORTED
from pyaccount.reading.written import Written

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from fractions import Fraction


class HasSampler(Protocol):
    """A model with a sampler."""

    @property
    def sampler(self) -> SamplerKind:
        """How the records are drawn."""


@dataclass(frozen=True, slots=True)
class Body:
    """One mechanism of a document; `path` is its document path, `()` at the top level or `("phases", index)`."""

    path: Path
    name: str | None
    training: Training
    sampler: SamplerKind
    matrix: MatrixKind
    #: The noise of each round, with the factor of all phases if there is one; or the mechanism that is released in its place.
    noise: AnyNoise | MechanismKind
    count: int
    #: The name of the section with the rates: `sampling` in a document about a single draw, which has no training, and
    #: `sampler` in a body with a mechanism.
    rates: str = "training"
    #: The epochs that the document states, if any; `training` then has the corresponding iterations.
    epochs: float | None = None
    #: The workload for which errors are reported; None, also for one that could not be read, means prefix sums.
    workload: StatedWorkload | None = None
    #: The noise as the body states it, without the factor of all phases; None means that there is no such factor.
    stated_noise: AnyNoise | None = None
    #: The phases that are run together in one run of this body, or its disjoint parts; empty for most bodies.
    inner: tuple[Body, ...] = ()
    #: Whether what the sampler draws are groups that contain the protected records, instead of the records themselves.
    draws_groups: bool = False
    #: The law of the number of runs of which the best one is released; None if all runs are.
    select: RunsKind | None = None
    #: The probabilities of records that are not all drawn with the same one; None if they are. `training` then has the largest
    #: of them, unless the sampler needs one probability for all records.
    own_probabilities: OwnProbabilities | None = None

    def at(self, *path: str) -> Path:
        """Return the document path of something in this body."""
        return (*self.path, self.rates, *path[1:]) if path[0] == "training" else (*self.path, *path)

    def contains(self, path: Path) -> bool:
        """Return whether something at a document path is in this body."""
        return path[: len(self.path)] == self.path

    def schedules(self) -> dict[Path, Scheduled]:
        """Return what differs from round to round, by its document path."""
        values = {
            self.at("noise", "multiplier"): getattr(self.noise, "multiplier", None),
            self.at("training", "sampling_probability"): self.training.sampling_probability,
            self.at("training", "expected_batch_size"): self.training.expected_batch_size,
        }
        kinds = ScheduledMultiplier | ScheduledProbability | ScheduledBatch
        return {path: value for path, value in values.items() if isinstance(value, kinds)}

    @property
    def disjoint(self) -> bool:
        """Whether the bodies inside of this one are run on disjoint parts of the data."""
        return isinstance(self.noise, OfParts)

    @property
    def released(self) -> str:
        """The key of what this body releases if it has a mechanism, or phases, in place of training."""
        return "select" if self.select is not None else self.within_key if self.inner else "mechanism"

    @property
    def within_key(self) -> str:
        """The key of the list of bodies inside of this one."""
        return "parallel" if self.disjoint else "phases"

    def within(self) -> Iterator[Body]:
        """Yield the bodies inside of this one, at any depth, each followed by those that are inside it."""
        for body in self.inner:
            yield from (body, *body.within())

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

    def bands(self) -> int | None:
        """Return the number of non-zero diagonals of the matrix; None while it is a choice, and for one that is not banded."""
        return self.matrix.diagonals()

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

    def in_iterations(self) -> Body:
        """Return the body with its epochs, if any, converted to iterations where they determine them."""
        asked = number_or_none(self.training.epochs)
        if asked is None:
            return self
        training, length = self.training, self.epoch()
        if training.iterations is None and length is not None:
            training = training.model_copy(update={"iterations": iterations_of(asked, length)})
        # The later rooms know only iterations.
        return replace(self, training=training.model_copy(update={"epochs": None}), epochs=asked)


class Mechanism(Written):
    """The parts of a mechanism document that the rules read. The document may still break some of the rules."""

    name: str
    accounting: Accounting
    bodies: tuple[Body, ...]
    #: The section as the document states it. With a budget of risk, `privacy` asks for ε at a δ instead.
    stated_privacy: Privacy
    privacy: Privacy
    #: The factor of the noise of all phases; None if the document states none.
    shared_noise: SharedNoise | None
    #: Folders in which files that the document names may lie, besides its own.
    folders: tuple[str, ...]

    def every_body(self) -> Iterator[Body]:
        """Yield the bodies, each followed by those that are inside it."""
        for body in self.bodies:
            yield from (body, *body.within())


def bodies_of(model: AnyDocument) -> tuple[Body, ...]:
    """Return the bodies of a document of any shape; empty if the phases could not be read."""
    if not isinstance(model, PhasedDocument):
        return (_body_of(model, (), None),)
    if not isinstance(model.phases, tuple):
        return ()
    shared = shared_noise_of(model)
    bodies = (_body_of(phase, ("phases", index), phase.name) for index, phase in enumerate(model.phases))
    if shared is None or not _was_read(shared.scale):
        return tuple(bodies)
    return tuple(_scaled(body, shared.scale) for body in bodies)


def _scaled(body: Body, scale: float | Solve) -> Body:
    """Return the body with its noise times a factor, and that of the bodies inside; a mechanism is left as it is."""
    if isinstance(body.noise, MechanismKind):
        return replace(body, inner=tuple(_scaled(one, scale) for one in body.inner))
    return replace(body, noise=scaled(body.noise, scale), stated_noise=body.noise)


def shared_noise_of(model: AnyDocument) -> SharedNoise | None:
    """Return the factor of the noise of all phases; None if there is none, or if it could not be read."""
    stated = model.noise if isinstance(model, PhasedDocument) else None
    return stated if isinstance(stated, SharedNoise) else None


def _body_of(model: AnyDocument | AnyPhase | AnyPart, path: Path, name: str | None) -> Body:
    if isinstance(model, DisjointPhases):
        return _unsampled(path, name, OfParts(), model.count, _inner(model.parallel, (*path, "parallel")))
    if isinstance(model, PartPhases):
        return _unsampled(path, name, OfPhases(), model.count, _inner(model.phases, (*path, "phases")))
    if isinstance(model, MechanismDocument | MechanismPhase | SampledPhases | SelectedPhases):
        return _mechanism_body(model, path, name)
    assert not isinstance(model, PhasedDocument)
    # What could not be read was reported. The rules continue with a matrix about which nothing is known.
    matrix = model.matrix if _was_read(model.matrix) else MatrixKind()
    workload = model.workload if _was_read(model.workload) else None
    sampler, training = sampler_of(model), model.training
    own = _own_probabilities(training.sampling_probability)
    if own is not None and not sampler.one_probability and own.largest() is not None:
        training = training.model_copy(update={"sampling_probability": own.largest()})
    body = Body(path, name, training, sampler, matrix, model.noise, model.count, workload=workload)
    return replace(body, own_probabilities=own)


def _own_probabilities(stated: object) -> OwnProbabilities | None:
    """Return the probabilities of single records, if the document states them in place of one number."""
    return stated if isinstance(stated, OwnProbabilities) else None


#: The sampler of a mechanism that is run on all records, and that of one whose records are drawn.
_ALL, _DRAWN = Deterministic(kind="none"), Poisson(kind="poisson")


def _unsampled(path: Path, name: str | None, mechanism: MechanismKind, count: int, inner: tuple[Body, ...]) -> Body:
    """Return a body of which one run is that of the bodies inside, on all records or on disjoint parts of them."""
    return replace(
        Body(path, name, Training(iterations=1), _ALL, Identity(kind="identity"), mechanism, count, rates="sampler"),
        inner=inner,
    )


def _mechanism_body(
    model: MechanismDocument | MechanismPhase | SampledPhases | SelectedPhases, path: Path, name: str | None
) -> Body:
    """Return a body of one round in which the mechanism is released; `count` is the number of such rounds."""
    select = model.select if isinstance(model, SelectedPhases) else None
    draw = None if isinstance(model, SelectedPhases) else model.sampler
    inner: tuple[Body, ...] = ()
    if isinstance(model, SampledPhases | SelectedPhases):
        mechanism: MechanismKind = OfPhases()
        inner = _inner(model.phases, (*path, "phases"))
    else:
        mechanism = model.mechanism if _was_read(model.mechanism) else MechanismKind()
    stated = getattr(draw, "sampling_probability", None)
    own = _own_probabilities(stated)
    rate = number_or_none(stated) if own is None else own.largest()
    training = Training(iterations=1) if rate is None else Training(iterations=1, sampling_probability=rate)
    sampler = _ALL if draw is None else _DRAWN if rate is not None else UnreadSampler()
    body = Body(path, name, training, sampler, Identity(kind="identity"), mechanism, model.count, rates="sampler")
    chosen = select if isinstance(select, RunsKind) else None
    groups = getattr(draw, "draws", "records") == "clients"
    return replace(body, inner=inner, draws_groups=groups, select=chosen, own_probabilities=own)


def _inner(models: Sequence[AnyPart] | object, path: Path) -> tuple[Body, ...]:
    """Return the bodies of a list of phases, or parts, inside of a phase; empty if they could not be read."""
    if not isinstance(models, tuple):
        return ()
    return tuple(_body_of(model, (*path, index), model.name).in_iterations() for index, model in enumerate(models))


def sampler_of(model: HasSampler) -> SamplerKind:
    """Return the sampler of a model, or an `UnreadSampler` if it could not be read."""
    return model.sampler if _was_read(model.sampler) else UnreadSampler()


def _was_read(value: object) -> bool:
    return value is not REPORTED

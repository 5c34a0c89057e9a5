"""The base class of the samplers in the plan room, with the answers of the simplest sampler.

Each kind is a class of its own module: which theorem analyses it and what that refuses, the worst participations of a
record if nothing about them is secret, and how a shorter run is written. The fields and their joint meaning are in the
document room.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, cast

from pyaccount import _core
from pyaccount.document.noise import beside, effective
from pyaccount.document.samplers import SamplerKind
from pyaccount.document.tree import TrainingNode
from pyaccount.errors import Problem
from pyaccount.plan.common import moves, number
from pyaccount.plan.matrices import strategy
from pyaccount.plan.protection import RunCase
from pyaccount.plan.rounds import DirectedBounds, enclosed
from pyaccount.plan.theorem import Derived, Theorem
from pyaccount.profiles import GaussianProfile

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Differentiable:
    """The mechanism of one run for any first column c and noise multiplier σ, with the gradient of δ in c.

    Nothing is rounded to the safe side: these proposals of a matrix are not certified; the analysis builds what is
    certified.
    """

    core: Callable[[Vector, float], _core.Sampled]
    #: Returns ∂δ/∂c_j for each j, from the derivatives that the core computes at (c, σ).
    slopes: Callable[[Vector, float, _core.DeltaGradient], Vector]

    @classmethod
    def of_coefficients(cls, build: Callable[[list[float]], _core.Sampled]) -> Differentiable:
        """Return it for mechanisms built from c/σ, for which the core's derivatives are ∂δ/∂(c_j/σ)."""
        import numpy as np  # only searches for a matrix need it

        return cls(
            lambda c, sigma: build((c / sigma).tolist()),
            lambda _c, sigma, gradient: np.array(gradient.derivatives) / sigma,
        )


Sampler = TypeVar("Sampler", bound=SamplerKind)

#: The worst participations of a record, in words that several samplers share.
PUBLIC = "public participations, as bad as they can be"


@dataclass(frozen=True, slots=True)
class Worst:
    """`count` releases, in each of which one record (or user) moves the sum by at most `norm()` clip norms."""

    words: str
    norm: Callable[[], float]
    count: int


class OfSampler(RunCase, Theorem, Generic[Sampler]):
    """A theorem of a training run with this sampler."""

    @property
    def sampler(self) -> Sampler:
        """The sampler of the run."""
        return cast("Sampler", self.node.sampler)


class SamplerPlan(OfSampler[Sampler]):
    """The theorem of a training run with Gaussian noise, for a sampler; and what else follows from how it draws."""

    #: Whether its rounds are analysed one by one; under a matrix they would depend on one another.
    round_by_round: ClassVar[bool] = False
    #: Whether each round is drawn independently of all others, so that without a matrix it is a mechanism of its own.
    independent_rounds: ClassVar[bool] = False
    #: Whether rounds may differ in their noise, and which keys may have another rate for each round: see `plan.scheduled`.
    scheduled_noise: ClassVar[bool] = False
    scheduled_rates: ClassVar[tuple[str, ...]] = ()
    #: Whether certificates state the sampling probability: it is then the probability of a record to be in a round.
    states_probability: ClassVar[bool] = True
    #: Whether matrices can be optimised for it; see `differentiable` and `spaced_pattern`.
    has_derivatives: ClassVar[bool] = False

    def theorem(self) -> Theorem:
        """Return the theorem that is used: this one, or another one in its place."""
        return self

    def stacks(self) -> bool:
        """Whether other releases of a batch are analysed beside a matrix: the analysis then reads `each_round` itself."""
        return False

    def truncation_refusals(self) -> list[Problem]:
        """Explain why no analysis covers truncated batches, if the reason is specific to this sampler."""
        return []

    @property
    def covers_matrices(self) -> bool:
        """Whether runs with a matrix are covered: not if rounds are analysed one by one, which then depend on one another."""
        return not self.round_by_round

    def schedule_refusals(self) -> list[Problem]:
        """Refuse settings that no schedule allows, beyond those that every sampler refuses (`plan.scheduled`)."""
        return []

    @abstractmethod
    def worst(self) -> Worst:
        """Return the worst participations. With a fixed number of draws a record is counted once in a round."""

    def worst_of_all(self) -> Worst:
        """Return the worst participations, also if batches are truncated.

        A record that survives then takes the place of another one, or of none if it is empty and not drawn. The sum moves by up
        to 2.
        """
        found = self.worst()
        if self.node.truncation() is None:
            return found
        return Worst(f"{found.words}, in another one's place", lambda: 2.0 * found.norm(), found.count)

    def worst_words(self) -> str:
        """Describe the worst participations."""
        return self.worst_of_all().words

    def public(self) -> DirectedBounds:
        """Return one Gaussian mechanism for each release of the worst participation pattern.

        Its sensitivity is k (2k under replace-one) times the largest ‖Cx‖ over the patterns x that the sampler allows.
        """
        participation = self.worst_of_all()
        sensitivity = float(number(self.asked.privacy.group_size) * moves(self.asked)) * participation.norm()
        upper, lower = (GaussianProfile(sensitivity, multiplier) for multiplier in multipliers(self.node))
        return enclosed((upper, upper), (lower, lower), participation.count)

    def has_moments(self) -> bool:
        """Whether a chain of replicas computes moments of the likelihood ratio of the whole run."""
        return False

    def differentiable(self) -> Differentiable | None:
        """Return how δ depends on the coefficients of a banded Toeplitz matrix; None if that is not known."""
        return None

    def spaced_pattern(self) -> tuple[int, int] | None:
        """Return (least distance, number) of participations if δ depends on a matrix only through a largest ‖Cx‖.

        The maximum is over the patterns x of that distance and number. Then σ is proportional to it, and no derivative
        of δ is needed. Otherwise the answer is None.
        """
        return None

    def composed_neighbour(self) -> dict[str, Any] | None:
        """Return sections of a similar document whose rounds compose, so that its σ is found quickly; None if none is known.

        Searches start from its σ. No result depends on how similar it is.
        """
        return None

    def unsteered(self) -> str:
        """Explain why there is no `differentiable` for a run."""
        if not self.node.matrix.banded:
            return "if a record's columns overlap, derivatives of δ are implemented only for balls-in-bins"
        return "no derivatives of δ are implemented for this sampler, or for how its records are attributed"

    def rounds_at_a_time(self) -> int:
        """Return the number of which the number of iterations must be a multiple."""
        return 1

    def shortest_run(self, rounds: int) -> int:
        """Return the least number of rounds, at least `rounds`, for which a document can be written."""
        step = self.rounds_at_a_time()
        return -(-rounds // step) * step

    def cut(self, rounds: int) -> dict[str, Any]:
        """Return the fields for the first rounds of a run whose values otherwise follow from the whole run."""
        return {}

    def largest_rate(self) -> float:
        """Return the largest probability, over the rounds, that a record is in the batch."""
        return self.node.sampler.participation_rate(self.node)

    def largest_batch(self) -> int:
        """Return the largest possible batch, for documents that solve for the batch size."""
        return number(self.node.training.dataset_size)  # the document's rules require it for this blank

    def distinct_records(self) -> float | None:
        """Return the expected number of distinct records in a batch; None if the data set's size is unknown."""
        return self.node.expected_batch_size()


class InPlace(OfSampler[Sampler], Derived):
    """Another theorem in place of that of a sampler's class, which is `inner`; public participations are those of the class."""


def multipliers(run: TrainingNode) -> tuple[float, float]:
    """Return the effective multiplier of a run whose noise is known: a lower and an upper bound on it.

    With a matrix it is that of the main release, and the others are in the sensitivity.
    """
    if run.matrix.kind != "identity":
        return (number(run.noise.multiplier),) * 2
    return effective([number(run.noise.multiplier), *(release.multiplier for release in run.noise.also)])


def each_round(run: TrainingNode) -> float:
    """Return what other releases beside a matrix add for each participation, in units of σ²; see `document.noise.beside`.

    It is 0 without a matrix, since the effective multiplier then has all releases, and without other releases. σ must be
    known otherwise.
    """
    further = [release.multiplier for release in run.noise.also]
    return beside(number(run.noise.multiplier), further) if further and run.matrix.kind != "identity" else 0.0


def moved(case: RunCase, apart: int, most: int, records: int = 1) -> float:
    """Return an upper bound on the largest ‖Cx‖, times `records`.

    The patterns x have at most `most` rounds, at least `apart` apart; all `records` take part at once. With a matrix and
    other releases beside, it is the norm of all releases stacked, in units of the main one's noise.
    """
    built = strategy(case)
    return records * built.sensitivity(apart, most, each_round(case.node))[0] * (1.0 + built.slack)


def public_participation(case: RunCase, records: int = 1) -> Worst:
    """Return the worst case if all records of a user take part together, in every round in which any may be drawn."""
    words = PUBLIC if records == 1 else f"{PUBLIC}: all {records} records of a user at once"
    apart = case.node.sampler.separation(case.node) or 1
    return Worst(words, lambda: moved(case, apart, number(case.node.training.iterations), records), case.node.count)

"""What the plan room is asked about a sampler, and the answers of the simplest.

A sampler has one class here, in a module of its own: which theorem analyses it and what that refuses, what a record's
participations can be at worst when nothing about them is secret, and what a shorter run of it is. Its fields and what they mean
together are in the document room. The objects hold nothing: everything is asked of a document and a body.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from pyaccount.plan.common import whole
from pyaccount.plan.matrices import strategy

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from pyaccount import _core
    from pyaccount.document import Body, Document
    from pyaccount.errors import Problem
    from pyaccount.plan.reduction import Analysis

    Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Differentiable:
    """The mechanism of one run for any first column c and noise multiplier σ, and what its gradient says about c.

    Nothing is rounded in a safe direction: with these a matrix is proposed, and what is certified is built by its analysis.
    """

    core: Callable[[Vector, float], _core.Sampled]
    #: ∂δ/∂c_j for each j, from the derivatives that the core gives at (c, σ).
    slopes: Callable[[Vector, float, _core.DeltaGradient], Vector]

    @classmethod
    def of_coefficients(cls, build: Callable[[list[float]], _core.Sampled]) -> Differentiable:
        """Of mechanisms that are built from c/σ: the core's derivatives are ∂δ/∂(c_j/σ)."""
        import numpy as np  # only searches for a matrix need it

        return cls(
            lambda c, sigma: build((c / sigma).tolist()),
            lambda _c, sigma, gradient: np.array(gradient.derivatives) / sigma,
        )


#: What a record can do at worst, in words that several samplers share.
EVERY_ROUND = "every record in every round"
PUBLIC = "public participations, as bad as they can be"


@dataclass(frozen=True, slots=True)
class Worst:
    """`count` releases, in each of which one record (or user) moves the sum by at most `norm()` clip norms, from above."""

    words: str
    norm: Callable[[], float]
    count: int


@dataclass(frozen=True, slots=True)
class DrawnBatch:
    """A batch of a fixed number of draws: `draws` for the core (sampler, data set, batch, subset), the rest in words."""

    draws: tuple[str, int, int, int]
    called: str
    symbols: str
    drawn: str


class SamplerPlan(ABC):
    """What is known of a sampler beyond its fields."""

    #: Whether its rounds are analysed one by one, which a matrix would tie together.
    round_by_round: ClassVar[bool] = False
    #: What other work knows of its rounds under a matrix, where nothing of it is implemented, in words that go on.
    known_with_matrix: ClassVar[str] = ""
    #: Whether a sampling probability is what a record's chance in a round is, to be stated in a certificate.
    states_probability: ClassVar[bool] = True
    #: Whether matrices can be optimised for it; see `differentiable` and `spaced_pattern`.
    has_derivatives: ClassVar[bool] = False

    def fixed_draws(self, body: Body) -> DrawnBatch | None:
        """The law of a batch, where that has a fixed number of draws."""
        return None

    @abstractmethod
    def analysis(self, document: Document, body: Body) -> Analysis:
        """The theorem for a body that is drawn by this."""

    def truncation_refusals(self, document: Document, body: Body) -> list[Problem]:
        """Why no analysis covers batches that are cut to a size, where that is the sampler's own doing."""
        return []

    def matrix_refusals(self, document: Document, body: Body) -> list[Problem]:
        """What of the sampler goes with no matrix, beside rounds that are analysed one by one."""
        return []

    @abstractmethod
    def worst(self, document: Document, body: Body) -> Worst:
        """What it allows at worst. Where batches have a fixed number of draws, a record is counted once in a round."""

    def has_moments(self, body: Body) -> bool:
        """Whether moments of the likelihood ratio of the whole run are computed, by a chain of replicas."""
        return False

    def differentiable(self, document: Document, body: Body) -> Differentiable | None:
        """How δ follows the coefficients of a banded Toeplitz matrix, where that is known."""
        return None

    def spaced_pattern(self, body: Body) -> tuple[int, int] | None:
        """How far apart and how often a record takes part, where δ follows a matrix through the largest ‖Cx‖ over such x alone.

        Then σ is proportional to that, and no derivative of δ is needed.
        """
        return None

    def unsteered(self, body: Body) -> str:
        """Why there is no `differentiable` of a body."""
        if not body.matrix.banded:
            return "derivatives of δ where a record's columns overlap are implemented for balls-in-bins alone"
        return "no derivatives of δ are implemented for this sampler, or for how its records are attributed"

    def rounds_at_a_time(self, body: Body) -> int:
        """What the number of iterations is a multiple of."""
        return 1

    def shortest_run(self, body: Body, rounds: int) -> int:
        """The least number of rounds, at least so many, of which a document can be written."""
        step = self.rounds_at_a_time(body)
        return -(-rounds // step) * step

    def cut(self, body: Body, rounds: int) -> dict[str, Any]:
        """What the sampler's section has to say of the first rounds of a run, where it follows from the whole run otherwise."""
        return {}

    def largest_rate(self, body: Body) -> float:
        """The largest probability, over the rounds, that a record is in the batch."""
        return body.sampler.participation_rate(body)

    def largest_batch(self, document: Document, body: Body) -> int:
        """The largest batch there can be, where its size is to be solved for."""
        records = body.training.dataset_size
        assert records is not None  # the document's rules require it for this blank
        return records

    def distinct_records(self, body: Body) -> float | None:
        """The expected number of distinct records in a batch, where the size of the data set is known."""
        return body.expected_batch_size()


def moved(document: Document, body: Body, apart: int, most: int, records: int = 1) -> float:
    """The largest ‖Cx‖ over patterns x of so many rounds so far apart, for so many records at once, from above."""
    built = strategy(document, body)
    return records * built.sensitivity(apart, most)[0] * (1.0 + built.slack)


def public_participation(document: Document, body: Body, records: int = 1) -> Worst:
    """All records of a user at once, whenever any may be drawn."""
    words = PUBLIC if records == 1 else f"{PUBLIC}: all {records} records of a user at once"
    apart = body.sampler.separation(body) or 1
    return Worst(words, lambda: moved(document, body, apart, whole(body.training.iterations), records), body.count)

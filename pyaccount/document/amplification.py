"""Documents of kind amplification: how one draw by a sampler changes the privacy of a mechanism that is run once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from pyaccount.document import ranges
from pyaccount.document.matrices import Identity
from pyaccount.document.noise import Gaussian
from pyaccount.document.samplers import Drawn
from pyaccount.document.samplers.base import disagreements
from pyaccount.document.sections import Training
from pyaccount.document.tree import TrainingNode
from pyaccount.document.validation import validate
from pyaccount.document.views import sampler_of
from pyaccount.document.words import VERSION
from pyaccount.errors import DocumentError, Problem
from pyaccount.reading.fields import Number, Numbers, Text, Version
from pyaccount.reading.kinds import Kinds, Section
from pyaccount.reading.nodes import Table, located
from pyaccount.reading.written import Written

_SWEEP = Numbers(ranges.EPSILON, ranges.SWEEP_LENGTH)
_SWEEP_TEXT = "The ε of the mechanism without sampling: a number, or a list of numbers."


class LaplaceBase(Section):
    """Laplace noise on a query whose answer is a number."""

    #: The δ of groups, which the noise determines.
    group_deltas: ClassVar[tuple[float, ...]] = ()

    kind: Literal["laplace"] = Field(description="Laplace noise on a number.")
    multiplier: Annotated[float, Number(ranges.NOISE_MULTIPLIER)] = Field(
        description="The scale of the noise, in units of the sensitivity of the query to replacing one record; with "
        "Poisson sampling, to adding or removing one."
    )
    epsilon: Annotated[tuple[float, ...], _SWEEP] = Field(description=_SWEEP_TEXT)


class GaussianBase(Section):
    """Gaussian noise on a query."""

    group_deltas: ClassVar[tuple[float, ...]] = ()

    kind: Literal["gaussian"] = Field(description="Gaussian noise.")
    multiplier: Annotated[float, Number(ranges.NOISE_MULTIPLIER)] = Field(
        description="The standard deviation of the noise, in units of the sensitivity of the query to replacing one "
        "record; with Poisson sampling, to adding or removing one."
    )
    epsilon: Annotated[tuple[float, ...], _SWEEP] = Field(description=_SWEEP_TEXT)


class StatedBase(Section):
    """Any mechanism whose guarantee is known."""

    #: Its noise is not known.
    multiplier: ClassVar[float] = 0.0

    kind: Literal["stated"] = Field(description="A mechanism with a known guarantee.")
    epsilon: Annotated[float, Number(ranges.EPSILON)] = Field(description="ε of the known guarantee.")
    group_deltas: Annotated[tuple[float, ...], Numbers(ranges.BASE_DELTA, ranges.SWEEP_LENGTH)] = Field(
        description="δ at this ε if 1, 2, … records are replaced. Nothing is assumed about larger groups."
    )


Base = Annotated[
    LaplaceBase | GaussianBase | StatedBase, Kinds("base mechanism", (LaplaceBase, GaussianBase, StatedBase))
]


class Sampling(Section):
    """The size of the batch."""

    dataset_size: Annotated[int | None, Number(ranges.DATASET_SIZE, whole=True)] = Field(
        default=None, description="The number of records in the data set."
    )
    expected_batch_size: Annotated[float | None, Number(ranges.EXPECTED_BATCH_SIZE)] = Field(
        default=None, description="The number of draws; with Poisson sampling, the expected number of records."
    )
    sampling_probability: Annotated[float | None, Number(ranges.PROBABILITY)] = Field(
        default=None, description="The probability that a record is in the batch."
    )


class AmplificationModel(Section):
    """A document of kind amplification."""

    pyaccount: Annotated[int, Version(VERSION)] = Field(description="The version of the document language.")
    kind: Literal["amplification"] = Field(description="The kind of this document: one draw before one mechanism.")
    name: Annotated[str, Text(ranges.NAME_LENGTH)] = Field(description="The name of the mechanism.")
    base: Base = Field(description="The mechanism that is run on the batch.")
    sampler: Drawn = Field(description="How the batch is drawn.")
    sampling: Sampling = Field(description="The size of the batch.")


class Amplification(Written):
    """A document of kind amplification that has no problems."""

    def __init__(self, root: Table, file: str | None = None, problems: Iterable[Problem] = ()) -> None:
        """Validate a tree, as `Document` does. Raises `DocumentError`."""
        model, invalid = validate(root, AmplificationModel)
        super().__init__(root, file, model)
        self.name: str = model.name
        self.base: LaplaceBase | GaussianBase | StatedBase = model.base
        sampling = model.sampling
        training = Training.model_construct(
            dataset_size=getattr(sampling, "dataset_size", None),
            expected_batch_size=getattr(sampling, "expected_batch_size", None),
            sampling_probability=getattr(sampling, "sampling_probability", None),
            participation_rate=None,
            iterations=1,
        )
        #: The draw, as a run of one round.
        self.draw = TrainingNode(
            (), None, 1, training, sampler_of(model), Identity(kind="identity"), Gaussian(multiplier=1.0), "sampling"
        )
        wrong = (*self.draw.sampler.draw_problems(self.draw), *disagreements(self.draw, self.position))
        found = [*problems, *invalid, *(located(root, problem) for problem in wrong)]
        if found:
            raise DocumentError(found)

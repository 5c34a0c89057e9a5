"""The parts of a document as the later rooms read them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from pyaccount.document.matrices import MatrixKind
from pyaccount.document.models import Phase, PhasedDocument, SingleDocument
from pyaccount.document.nodes import REPORTED
from pyaccount.document.noise import AnyNoise
from pyaccount.document.samplers import SamplerKind, UnreadSampler
from pyaccount.document.sections import Accounting, Privacy, Training
from pyaccount.document.workload import StatedWorkload
from pyaccount.document.written import Written
from pyaccount.errors import Path

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
        """The document path of something in this body."""
        return (*self.path, self.rates, *path[1:]) if path[0] == "training" else (*self.path, *path)


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

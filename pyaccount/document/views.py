"""The parts of a document as the later rooms read them."""

from __future__ import annotations

from dataclasses import dataclass

from pyaccount.document.matrices import Matrix
from pyaccount.document.noise import Noise
from pyaccount.document.samplers import Sampler
from pyaccount.document.sections import PhasedDocument, SingleDocument, Training
from pyaccount.errors import Path

Model = SingleDocument | PhasedDocument


@dataclass(frozen=True, slots=True)
class Body:
    """One mechanism of a document; `path` is where it stands, `()` at the top level or `("phases", index)`."""

    path: Path
    name: str | None
    training: Training
    sampler: Sampler
    matrix: Matrix
    noise: Noise
    count: int
    #: What the section of the rates is called: in a document about a single draw there is no training.
    rates: str = "training"
    #: The epochs that the document asks for, if it counts in them; `training` then has the iterations that these are.
    epochs: float | None = None

    def at(self, *path: str) -> Path:
        """The document path of something in this body."""
        return (*self.path, self.rates, *path[1:]) if path[0] == "training" else (*self.path, *path)


def bodies_of(model: Model) -> tuple[Body, ...]:
    """The bodies of a document, whatever its shape; none where the phases could not be read."""
    if isinstance(model, SingleDocument):
        body = Body((), None, model.training, model.sampler, model.matrix, model.noise, model.count)
        return (body,)
    if not isinstance(model.phases, tuple):
        return ()
    return tuple(
        Body(("phases", index), phase.name, phase.training, phase.sampler, phase.matrix, phase.noise, phase.count)
        for index, phase in enumerate(model.phases)
    )

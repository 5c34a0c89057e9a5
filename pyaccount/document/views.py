"""The tree of nodes that a document describes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Protocol

from pyaccount.document.matrices import MatrixKind
from pyaccount.document.mechanisms import MechanismKind
from pyaccount.document.models import (
    AnyDocument,
    AnyPart,
    DisjointPhases,
    MechanismDocument,
    MechanismPhase,
    PartPhases,
    Phase,
    PhasedDocument,
    SampledPhases,
    SelectedPhases,
    SingleDocument,
)
from pyaccount.document.noise import SharedNoise, scaled
from pyaccount.document.own_probabilities import OwnProbabilities
from pyaccount.document.samplers import SamplerKind, UnreadSampler
from pyaccount.document.sections import Accounting, Privacy
from pyaccount.document.stated import number_or_none
from pyaccount.document.tree import Best, Combined, Draw, MechanismRelease, Node, Parts, Sample, Sequence, TrainingNode
from pyaccount.errors import Path
from pyaccount.reading.fields import Solve
from pyaccount.reading.nodes import REPORTED
from pyaccount.reading.written import Written


class HasSampler(Protocol):
    """A model with a sampler."""

    @property
    def sampler(self) -> SamplerKind:
        """How the records are drawn."""


class Mechanism(Written):
    """The parts of a mechanism document that the rules read. The document may still break some of the rules."""

    name: str
    accounting: Accounting
    #: The phases, which are run one after the other; the mechanism itself if the document has only one.
    phases: tuple[Node, ...]
    #: The section as the document states it. With a budget of risk, `privacy` asks for ε at a δ instead.
    stated_privacy: Privacy
    privacy: Privacy
    #: The factor of the noise of all phases; None if the document states none.
    shared_noise: SharedNoise | None
    #: Folders in which files that the document names may lie, besides its own.
    folders: tuple[str, ...]

    def every_node(self) -> Iterator[Node]:
        """Yield the phases, each followed by the nodes that are inside it."""
        for phase in self.phases:
            yield from phase.every()

    def runs(self) -> Iterator[TrainingNode]:
        """Yield the training runs, at any depth."""
        for phase in self.phases:
            yield from phase.runs()

    def runs_among_phases(self) -> Iterator[TrainingNode]:
        """Yield the phases that are training runs."""
        for phase in self.phases:
            if isinstance(phase, TrainingNode):
                yield phase

    @property
    def run(self) -> TrainingNode:
        """The only training run of a document that is known to have one."""
        (run,) = self.runs()
        return run


def phases_of(model: AnyDocument) -> tuple[Node, ...]:
    """Return the phases of a document of any shape; empty if they could not be read."""
    if not isinstance(model, PhasedDocument):
        return (_node_of(model, (), None),)
    if not isinstance(model.phases, tuple):
        return ()
    shared = shared_noise_of(model)
    phases = tuple(_node_of(phase, ("phases", index), phase.name) for index, phase in enumerate(model.phases))
    if shared is None or not _was_read(shared.scale):
        return phases
    return tuple(_scaled(phase, shared.scale) for phase in phases)


def _scaled(node: Node, scale: float | Solve) -> Node:
    """Return the node with the noise of its training runs times a factor."""
    if isinstance(node, TrainingNode):
        return replace(node, noise=scaled(node.noise, scale), stated_noise=node.noise)
    if isinstance(node, Combined):
        return replace(node, inner=tuple(_scaled(one, scale) for one in node.inner))
    return node


def shared_noise_of(model: AnyDocument) -> SharedNoise | None:
    """Return the factor of the noise of all phases; None if there is none, or if it could not be read."""
    stated = model.noise if isinstance(model, PhasedDocument) else None
    return stated if isinstance(stated, SharedNoise) else None


def _node_of(model: Any, path: Path, name: str | None) -> Node:
    return NODES[type(model)](model, path, name)


def _parts(model: DisjointPhases, path: Path, name: str | None) -> Node:
    return Parts(path, name, model.count, inside(model.parallel, (*path, "parallel")))


def _sequence(model: PartPhases, path: Path, name: str | None) -> Node:
    return Sequence(path, name, model.count, inside(model.phases, (*path, "phases")))


def _best(model: SelectedPhases, path: Path, name: str | None) -> Node:
    law = model.select if _was_read(model.select) else None
    return Best(path, name, model.count, inside(model.phases, (*path, "phases")), law)


def _sample(model: SampledPhases, path: Path, name: str | None) -> Node:
    return Sample(path, name, model.count, inside(model.phases, (*path, "phases")), _draw_of(model.sampler))


def _release(model: MechanismDocument | MechanismPhase, path: Path, name: str | None) -> Node:
    mechanism = model.mechanism if _was_read(model.mechanism) else MechanismKind()
    return MechanismRelease(path, name, model.count, mechanism, _draw_of(model.sampler))


def _training_run(model: SingleDocument | Phase, path: Path, name: str | None) -> Node:
    # What could not be read was reported. The rules continue with a matrix about which nothing is known.
    matrix = model.matrix if _was_read(model.matrix) else MatrixKind()
    workload = model.workload if _was_read(model.workload) else None
    sampler, training = sampler_of(model), model.training
    own = _own_probabilities(training.sampling_probability)
    if own is not None and not sampler.one_probability and own.largest() is not None:
        training = training.model_copy(update={"sampling_probability": own.largest()})
    run = TrainingNode(path, name, model.count, training, sampler, matrix, model.noise, workload=workload)
    return replace(run, own_probabilities=own).in_iterations()


def _own_probabilities(stated: object) -> OwnProbabilities | None:
    """Return the probabilities of single records, if the document states them in place of one number."""
    return stated if isinstance(stated, OwnProbabilities) else None


def _draw_of(stated: object) -> Draw | None:
    """Return the sample that a node states; None if it states none, or one that could not be read."""
    probability = getattr(stated, "sampling_probability", None)
    own = _own_probabilities(probability)
    rate = number_or_none(probability) if own is None else own.largest()
    if rate is None and own is None:
        return None
    return Draw(1.0 if rate is None else rate, getattr(stated, "draws", "records") == "clients", own)


def inside(models: tuple[AnyPart, ...] | object, path: Path) -> tuple[Node, ...]:
    """Return the nodes of a list of phases, or parts, inside of a phase; empty if they could not be read."""
    if not isinstance(models, tuple):
        return ()
    return tuple(_node_of(model, (*path, index), model.name) for index, model in enumerate(models))


def sampler_of(model: HasSampler) -> SamplerKind:
    """Return the sampler of a model, or an `UnreadSampler` if it could not be read."""
    return model.sampler if _was_read(model.sampler) else UnreadSampler()


def _was_read(value: object) -> bool:
    return value is not REPORTED


#: The node of each shape of a document, of a phase, or of a part, given its place and its name.
NODES: dict[type, Callable[[Any, Path, str | None], Node]] = {
    SingleDocument: _training_run,
    Phase: _training_run,
    MechanismDocument: _release,
    MechanismPhase: _release,
    SampledPhases: _sample,
    SelectedPhases: _best,
    PartPhases: _sequence,
    DisjointPhases: _parts,
}

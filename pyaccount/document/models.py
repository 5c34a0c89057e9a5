"""The shapes of mechanism documents: one body at the top level, or several phases.

A body is a training run, or a mechanism that takes the place of training, sampler, matrix and noise.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from pyaccount.document import ranges
from pyaccount.document.matrices import Identity, Matrix
from pyaccount.document.mechanisms import AnyMechanism
from pyaccount.document.noise import AnyNoise, SharedNoise
from pyaccount.document.own_probabilities import OwnProbabilities, ProbabilityOrMapping
from pyaccount.document.samplers import AnySampler
from pyaccount.document.sections import Accounting, Privacy, Training
from pyaccount.document.selection import AnyRuns
from pyaccount.document.words import VERSION
from pyaccount.document.workload import StatedWorkload
from pyaccount.reading.fields import Choice, Digest, Items, Number, Text, Version
from pyaccount.reading.kinds import KeyedShapes, Kind, Kinds, Section
from pyaccount.reading.unknown_kinds import SAMPLERS as REFUSED


class _BodyFields(Section):
    training: Training = Field(description="The number of rounds, and how often a record takes part in them.")
    sampler: AnySampler = Field(description="How the records of each round are drawn.")
    matrix: Matrix = Field(
        default=Identity(kind="identity"),
        description="How the noise of different rounds is correlated. Default: identity, that is, independent noise.",
    )
    # None if the document does not state a workload.
    workload: StatedWorkload = Field(
        default=None,  # type: ignore[assignment]
        description="What the optimizer computes from the noisy sums. The certificate states its error, and matrices are "
        "optimised and chosen for it. Default: prefix sums.",
    )
    noise: AnyNoise = Field(description="The noise of each round.")
    count: Annotated[int, Number(ranges.COUNT, whole=True)] = Field(
        default=1, description="The number of times that this mechanism is run."
    )


class PoissonUnits(Kind):
    """Poisson sampling of the units that a mechanism is run on: each run draws every unit independently."""

    aliases = "bernoulli poisson-sampling poisson-subsampling"

    kind: Literal["poisson"] = Field(description="Each record (or user) joins each run independently.")
    sampling_probability: Annotated[
        float | OwnProbabilities,
        ProbabilityOrMapping(ranges.PROBABILITY, shapes={"max": OwnProbabilities, "strata": OwnProbabilities}),
    ] = Field(
        description="The probability that a record (or a client) joins a run. A mapping with `max` or `strata` is for records "
        "(or clients) with different probabilities."
    )
    draws: Annotated[Literal["records", "clients"], Choice(("records", "clients"))] = Field(
        default="records",
        description="What is drawn. records: the protected records (or users), each with all of its data. clients: groups of "
        "records of which each protected record belongs to one; who else takes part then reveals whether the client of a "
        "record was drawn, so sampling hides less.",
    )


class _MechanismFields(Section):
    mechanism: AnyMechanism = Field(
        description="A mechanism whose output is released, in place of training, sampler, matrix and noise."
    )
    # None if every run uses all records.
    sampler: Annotated[PoissonUnits, Kinds("sampler of a mechanism", (PoissonUnits,), refused=REFUSED)] = Field(
        default=None,  # type: ignore[assignment]
        description="How the records of each run are drawn, if the mechanism is run on a secret sample of them. Default: "
        "all records.",
    )
    count: Annotated[int, Number(ranges.COUNT, whole=True)] = Field(
        default=1, description="The number of times that this mechanism is run, each time with new noise."
    )


class _NamedPhase(Section):
    name: Annotated[str | None, Text(ranges.NAME_LENGTH)] = Field(
        default=None, description="The name of the phase in the certificate."
    )


class Phase(_NamedPhase, _BodyFields):
    """One of several mechanisms that are run on the same data."""


class MechanismPhase(_NamedPhase, _MechanismFields):
    """A phase that releases the output of a mechanism."""


class SampledPhases(_NamedPhase):
    """Phases that are all run on one sample, which is drawn anew for each run, such as the local steps of a federated round."""

    sampler: Annotated[PoissonUnits, Kinds("sampler of phases", (PoissonUnits,), refused=REFUSED)] = Field(
        description="How the records (or clients) of each run are drawn."
    )
    phases: Annotated[
        tuple[Annotated[Phase | MechanismPhase, KeyedShapes(Phase, {"mechanism": MechanismPhase})], ...],
        Items(ranges.INNER_PHASES),
    ] = Field(description="The phases that are run on every sample. A record that is not drawn is in none of them.")
    count: Annotated[int, Number(ranges.COUNT, whole=True)] = Field(
        default=1, description="The number of samples that are drawn, each for one run of all phases."
    )


class SelectedPhases(_NamedPhase):
    """Phases that are run a random number of times, of which only the best run is released, such as a hyperparameter search."""

    select: AnyRuns = Field(description="The law of the number of runs, each of all phases, on fresh randomness.")
    phases: Annotated[
        tuple[
            Annotated[
                Phase | MechanismPhase | SampledPhases,
                KeyedShapes(Phase, {"mechanism": MechanismPhase, "phases": SampledPhases}),
            ],
            ...,
        ],
        Items(ranges.INNER_PHASES),
    ] = Field(description="The phases of one run. The score of a run is part of what it releases.")
    count: Annotated[int, Number(ranges.COUNT, whole=True)] = Field(
        default=1, description="The number of selections, each with runs of its own."
    )


_OnOneData = Phase | MechanismPhase | SampledPhases | SelectedPhases
_ON_ONE_DATA = KeyedShapes(Phase, {"mechanism": MechanismPhase, "select": SelectedPhases, "phases": SampledPhases})


class PartPhases(_NamedPhase):
    """A part with several phases, which are run one after the other on the records of this part."""

    phases: Annotated[tuple[Annotated[_OnOneData, _ON_ONE_DATA], ...], Items(ranges.INNER_PHASES)] = Field(
        description="The phases that are run on the records of this part."
    )
    count: Annotated[int, Number(ranges.COUNT, whole=True)] = Field(
        default=1, description="The number of times that all of them are run."
    )


class _PartShapes(KeyedShapes):
    """The shapes of a part: those of a phase, and phases without a sampler, which are all run on the whole part."""

    @property
    def members(self) -> tuple[type[Section], ...]:
        """All shapes, the usual one first."""
        return (*super().members, PartPhases)

    def member(self, value: object) -> type[Section]:
        """Return the shape that reads a raw value."""
        shape = super().member(value)
        return PartPhases if shape is SampledPhases and isinstance(value, dict) and "sampler" not in value else shape


class DisjointPhases(_NamedPhase):
    """Phases on disjoint parts of the data, such as silos or shards: every record is in exactly one part."""

    parallel: Annotated[
        tuple[Annotated[_OnOneData | PartPhases, _PartShapes(_ON_ONE_DATA.usual, _ON_ONE_DATA.by_key)], ...],
        Items(ranges.PARTS),
    ] = Field(
        description="What is run on each part. The guarantee is that of the worst part together with all other phases, not the "
        "sum over the parts. To which part a record belongs depends on this record alone."
    )
    count: Annotated[int, Number(ranges.COUNT, whole=True)] = Field(
        default=1, description="The number of times that all of it is run, each time on the same parts."
    )


AnyPhase = _OnOneData | DisjointPhases
AnyPart = _OnOneData | PartPhases
#: The shapes of a phase.
PHASE_SHAPES = KeyedShapes(Phase, {"parallel": DisjointPhases, **_ON_ONE_DATA.by_key})


class _Head(Section):
    pyaccount: Annotated[int, Version(VERSION)] = Field(description="The version of the document language.")
    name: Annotated[str, Text(ranges.NAME_LENGTH)] = Field(description="The name of the mechanism.")
    privacy: Privacy = Field(description="What is protected, and the target.")
    accounting: Accounting = Field(default_factory=Accounting, description="How the result is computed.")


#: The keys that describe a body, at the top level or in a phase.
BODY_KEYS = tuple(dict.fromkeys((*_BodyFields.model_fields, *_MechanismFields.model_fields)))
#: The keys in whose place a mechanism is written.
REPLACED = tuple(name for name in _BodyFields.model_fields if name not in _MechanismFields.model_fields)


class SingleDocument(_BodyFields, _Head):
    """A document with one mechanism, which is described at the top level."""

    body_keys: ClassVar[tuple[str, ...]] = BODY_KEYS


class MechanismDocument(_MechanismFields, _Head):
    """A document that releases the output of one mechanism, which is described at the top level."""

    body_keys: ClassVar[tuple[str, ...]] = BODY_KEYS


class ComposedDocument(Section):
    """A document, and its certificate, whose phases are among those of a joint document."""

    name: Annotated[str, Text(ranges.NAME_LENGTH)] = Field(description="The name of the document.")
    document_sha256: Annotated[str, Digest()] = Field(description="The SHA-256 of the canonical JSON of the document.")
    sha256: Annotated[str | None, Digest()] = Field(
        default=None,
        description="The SHA-256 of the content of its certificate, which is content_sha256 there. Absent if it has none.",
    )
    statement: Annotated[str | None, Text(ranges.STATEMENT_LENGTH)] = Field(
        default=None, description="The sentence of its certificate. Absent if it has none."
    )


class PhasedDocument(_Head):
    """A document with several mechanisms, which are composed."""

    body_keys: ClassVar[tuple[str, ...]] = BODY_KEYS

    composed_from: Annotated[tuple[ComposedDocument, ...], Items(ranges.COMPOSED)] = Field(
        default=(),
        description="The documents that this joint document was made from by `pyaccount compose`. The certificate lists them, "
        "and assumes that all of them were fixed before the first release.",
    )

    # None if the document does not state it.
    noise: SharedNoise = Field(
        default=None,  # type: ignore[assignment]
        description="A factor of the noise of all phases, so that `scale: solve` finds the least noise of all of them at once.",
    )
    phases: Annotated[tuple[Annotated[AnyPhase, PHASE_SHAPES], ...], Items(ranges.PHASES)] = Field(
        description="The mechanisms that are run on the same data, one after the other or in parallel. They are "
        "composed."
    )


#: The keys that only a document with phases has.
PHASED_KEYS = ("phases", "composed_from")
#: The shapes of a document at the top level.
SHAPES = KeyedShapes(SingleDocument, {"phases": PhasedDocument, "mechanism": MechanismDocument})
AnyDocument = SingleDocument | MechanismDocument | PhasedDocument

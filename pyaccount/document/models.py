"""The shapes of mechanism documents: one body at the top level, or several phases."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from pyaccount.document import ranges
from pyaccount.document.fields import Items, Number, Text, Version
from pyaccount.document.kinds import Section
from pyaccount.document.matrices import Identity, Matrix
from pyaccount.document.noise import AnyNoise, SharedNoise
from pyaccount.document.samplers import AnySampler
from pyaccount.document.sections import Accounting, Privacy, Training
from pyaccount.document.words import VERSION
from pyaccount.document.workload import StatedWorkload


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


class Phase(_BodyFields):
    """One of several mechanisms that are run on the same data."""

    name: Annotated[str | None, Text(ranges.NAME_LENGTH)] = Field(
        default=None, description="The name of the phase in the certificate."
    )


class _Head(Section):
    pyaccount: Annotated[int, Version(VERSION)] = Field(description="The version of the document language.")
    name: Annotated[str, Text(ranges.NAME_LENGTH)] = Field(description="The name of the mechanism.")
    privacy: Privacy = Field(description="What is protected, and the target.")
    accounting: Accounting = Field(default_factory=Accounting, description="How the result is computed.")


#: The keys that describe a body, at the top level or in a phase.
BODY_KEYS = tuple(_BodyFields.model_fields)


class SingleDocument(_BodyFields, _Head):
    """A document with one mechanism, which is described at the top level."""

    body_keys: ClassVar[tuple[str, ...]] = BODY_KEYS


class PhasedDocument(_Head):
    """A document with several mechanisms, which are composed."""

    body_keys: ClassVar[tuple[str, ...]] = BODY_KEYS

    # None if the document does not state it.
    noise: SharedNoise = Field(
        default=None,  # type: ignore[assignment]
        description="A factor of the noise of all phases, so that `scale: solve` finds the least noise of all of them at once.",
    )
    phases: Annotated[tuple[Phase, ...], Items(ranges.PHASES)] = Field(
        description="The mechanisms that are run on the same data, one after the other or in parallel. They are "
        "composed."
    )

"""The mechanisms that take the place of training, sampler, matrix and noise in a document or a phase.

A mechanism is a class: its fields, and their possible errors. `base` has the questions that all mechanisms answer, and a
module the mechanisms of one family. Everything that depends on the list of mechanisms is derived from `MECHANISMS`, as with
the samplers.
"""

from __future__ import annotations

from typing import Annotated

from pyaccount.document.mechanisms.additive import (
    DiscreteGaussian,
    DiscreteLaplace,
    DistributedDiscreteGaussian,
    GaussianMechanism,
    LaplaceMechanism,
    MixtureOfGaussians,
    Skellam,
)
from pyaccount.document.mechanisms.base import MechanismKind
from pyaccount.document.mechanisms.partitions import PartitionSelection
from pyaccount.document.mechanisms.selections import Exponential, PermuteAndFlip, RandomizedResponse, ReportNoisyMax
from pyaccount.document.mechanisms.stated import Stated
from pyaccount.reading.kinds import Kinds
from pyaccount.reading.unknown_kinds import MECHANISMS as REFUSED

__all__ = [
    "MECHANISMS",
    "AnyMechanism",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "DistributedDiscreteGaussian",
    "Exponential",
    "GaussianMechanism",
    "LaplaceMechanism",
    "MechanismKind",
    "MixtureOfGaussians",
    "PartitionSelection",
    "PermuteAndFlip",
    "RandomizedResponse",
    "ReportNoisyMax",
    "Skellam",
    "Stated",
]

#: All mechanisms, in the order in which they are listed everywhere.
MECHANISMS: tuple[type[MechanismKind], ...] = (
    Stated,
    GaussianMechanism,
    MixtureOfGaussians,
    LaplaceMechanism,
    DiscreteGaussian,
    DiscreteLaplace,
    Skellam,
    DistributedDiscreteGaussian,
    RandomizedResponse,
    Exponential,
    PermuteAndFlip,
    ReportNoisyMax,
    PartitionSelection,
)

#: The type of the mechanism in a document.
AnyMechanism = Annotated[MechanismKind, Kinds("mechanism", MECHANISMS, refused=REFUSED)]

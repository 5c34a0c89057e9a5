"""The mechanisms that take the place of training, sampler, matrix and noise in a document or a phase.

A mechanism is a module with a class: its fields, and their possible errors. `base` has the questions that all
mechanisms answer; `discrete` contains what mechanisms on a lattice have in common. Everything that depends on the list
of mechanisms is derived from `MECHANISMS`, as with the samplers.
"""

from __future__ import annotations

from typing import Annotated

from pyaccount.document.mechanisms.base import MechanismKind
from pyaccount.document.mechanisms.discrete_gaussian import DiscreteGaussian
from pyaccount.document.mechanisms.discrete_laplace import DiscreteLaplace
from pyaccount.document.mechanisms.exponential import Exponential
from pyaccount.document.mechanisms.gaussian import GaussianMechanism
from pyaccount.document.mechanisms.laplace import LaplaceMechanism
from pyaccount.document.mechanisms.mixture_of_gaussians import MixtureOfGaussians
from pyaccount.document.mechanisms.permute_and_flip import PermuteAndFlip
from pyaccount.document.mechanisms.randomized_response import RandomizedResponse
from pyaccount.document.mechanisms.report_noisy_max import ReportNoisyMax
from pyaccount.document.mechanisms.stated import Stated
from pyaccount.reading.kinds import Kinds
from pyaccount.reading.unknown_kinds import MECHANISMS as REFUSED

__all__ = [
    "MECHANISMS",
    "AnyMechanism",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Exponential",
    "GaussianMechanism",
    "LaplaceMechanism",
    "MechanismKind",
    "MixtureOfGaussians",
    "PermuteAndFlip",
    "RandomizedResponse",
    "ReportNoisyMax",
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
    RandomizedResponse,
    Exponential,
    PermuteAndFlip,
    ReportNoisyMax,
)

#: The type of the mechanism in a document.
AnyMechanism = Annotated[MechanismKind, Kinds("mechanism", MECHANISMS, refused=REFUSED)]

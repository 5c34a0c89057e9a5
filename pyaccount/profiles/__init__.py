"""Typed profiles of the core: the privacy profile of one round, as data.

A profile is named by a class, whose fields are the arguments of the core's constructor. It takes plain numbers and other
profiles, and gives the core's profile (`build`) and the profile of the reversed pair (`reversed`). Equal rounds of different
phases are equal values, so that they are counted together.

Facts of a pair, such as its largest loss, are answered by the core's profile. How rounds of some classes are bounded together,
better than by their composition, is stated in the module of these classes. Nobody else asks to which class a profile belongs.

The room knows no document and no sampler.
"""

# mypy: implicit-reexport
# ruff: noqa: F401 - the names that this room gives

from pyaccount.profiles.base import Graded, ProfileKind, Rounds, counted
from pyaccount.profiles.mechanisms import (
    DiscreteGaussianProfile,
    DiscreteLaplaceProfile,
    ExponentialProfile,
    ExponentialRunsProfile,
    FiniteProfile,
    GaussianProfile,
    GuaranteesProfile,
    LaplaceProfile,
    MixtureProfile,
    PartiesProfile,
    RenyiProfile,
    SkellamProfile,
    ZcdpProfile,
    added,
    in_blocks,
    merged,
    multiplier_of,
)
from pyaccount.profiles.training import (
    AllocationProfile,
    CopiesProfile,
    DisplacedProfile,
    FixedSizeRunProfile,
    OpposedProfile,
    PoissonProfile,
    PublicParticipationProfile,
    SeveralOfProfile,
    SummedOutputsProfile,
    TruncatedPoissonProfile,
)
from pyaccount.profiles.wrappers import (
    CompositionProfile,
    SelectionProfile,
    ShownProfile,
    SometimesProfile,
    SubsampledProfile,
    WorstProfile,
)

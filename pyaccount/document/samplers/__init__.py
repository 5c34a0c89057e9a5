"""The samplers, which define how the records of each round are drawn.

A sampler is a class: its fields, their combined meaning, and their possible errors. `base` defines the
questions that all samplers answer, with the answers of the simplest one; `fixed_draws` and `spaced` also contain
what several samplers have in common. The documents, their JSON Schema, the reference and the questions of `pyaccount init`
are all derived from `SAMPLERS`.
"""

from __future__ import annotations

from typing import Annotated

from pyaccount.document.samplers.b_min_sep import BMinSep, UserBMinSep
from pyaccount.document.samplers.balls_in_bins import BallsInBins
from pyaccount.document.samplers.base import SamplerKind, UnreadSampler
from pyaccount.document.samplers.deterministic import Deterministic
from pyaccount.document.samplers.fixed_draws import FixedSize, WithReplacement
from pyaccount.document.samplers.must import MustOW, MustWO, MustWW
from pyaccount.document.samplers.poisson import CyclicPoisson, Poisson
from pyaccount.document.samplers.random_allocation import RandomAllocation
from pyaccount.reading.kinds import Kinds, word_of
from pyaccount.reading.unknown_kinds import SAMPLERS as REFUSED

__all__ = [
    "FIXED_DRAWS",
    "REFUSED",
    "SAMPLERS",
    "AnySampler",
    "BMinSep",
    "BallsInBins",
    "CyclicPoisson",
    "Deterministic",
    "Drawn",
    "FixedSize",
    "MustOW",
    "MustWO",
    "MustWW",
    "Poisson",
    "RandomAllocation",
    "SamplerKind",
    "UnreadSampler",
    "UserBMinSep",
    "WithReplacement",
]

#: All samplers, in the order in which they are listed everywhere.
SAMPLERS: tuple[type[SamplerKind], ...] = (
    Poisson,
    FixedSize,
    WithReplacement,
    MustOW,
    MustWO,
    MustWW,
    BMinSep,
    UserBMinSep,
    RandomAllocation,
    BallsInBins,
    CyclicPoisson,
    Deterministic,
)

#: The samplers by the word that documents and certificates use.
BY_WORD = {word_of(sampler): sampler for sampler in SAMPLERS}

#: The samplers whose batches have a fixed number of draws.
FIXED_DRAWS = tuple(sampler for sampler in SAMPLERS if sampler.fixed_draws)

#: The type of the sampler in a document about a training run.
AnySampler = Annotated[SamplerKind, Kinds("sampler", SAMPLERS, refused=REFUSED)]

#: The type of the sampler in a document about a single draw.
Drawn = Annotated[
    SamplerKind, Kinds("sampler", tuple(sampler for sampler in SAMPLERS if sampler.single_draw), refused=REFUSED)
]

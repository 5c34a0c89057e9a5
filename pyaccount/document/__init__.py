"""The mechanism document: from what a person wrote to typed sections.

This room takes a YAML file, a mapping and overrides, and gives a `Document`: validated, typed, hashed, and able to say
where in the text each value stands. Everything that is wrong with a document is reported at once, as located problems.
The room must not know how a mechanism is analysed, nor that there is a compiled core: which theorem applies, and which
mechanisms have no valid bound, is for the plan to say.
"""

from __future__ import annotations

from pyaccount.document.amplification import Amplification, LaplaceBase, StatedBase
from pyaccount.document.document import Document
from pyaccount.document.fields import SOLVE, Solve
from pyaccount.document.loading import load, load_any
from pyaccount.document.matrices import (
    BLT,
    UNBANDED,
    BandedInverse,
    BandedSquareRoot,
    Dense,
    Identity,
    Matrix,
    OptimalToeplitz,
    Toeplitz,
)
from pyaccount.document.noise import Gaussian, Laplace, Noise
from pyaccount.document.overrides import Override
from pyaccount.document.rates import (
    bands,
    batch_size,
    bins,
    expected_batch_size,
    participation_rate,
    sampling_probability,
    separation,
    truncation,
)
from pyaccount.document.samplers import (
    FIXED_DRAWS,
    BallsInBins,
    BMinSep,
    CyclicPoisson,
    Deterministic,
    FixedSize,
    MustOW,
    MustWO,
    MustWW,
    Poisson,
    Sampler,
    UserBMinSep,
    WithReplacement,
)
from pyaccount.document.sections import VERSION, Accounting, Privacy, Training
from pyaccount.document.views import Body

__all__ = [
    "BLT",
    "FIXED_DRAWS",
    "SOLVE",
    "UNBANDED",
    "VERSION",
    "Accounting",
    "Amplification",
    "BMinSep",
    "BallsInBins",
    "BandedInverse",
    "BandedSquareRoot",
    "Body",
    "CyclicPoisson",
    "Dense",
    "Deterministic",
    "Document",
    "FixedSize",
    "Gaussian",
    "Identity",
    "Laplace",
    "LaplaceBase",
    "Matrix",
    "MustOW",
    "MustWO",
    "MustWW",
    "Noise",
    "OptimalToeplitz",
    "Override",
    "Poisson",
    "Privacy",
    "Sampler",
    "Solve",
    "StatedBase",
    "Toeplitz",
    "Training",
    "UserBMinSep",
    "WithReplacement",
    "bands",
    "batch_size",
    "bins",
    "expected_batch_size",
    "load",
    "load_any",
    "participation_rate",
    "sampling_probability",
    "separation",
    "truncation",
]

"""The mechanism document: reads what a person wrote and turns it into typed sections.

This room takes a YAML file, a mapping and overrides, and returns a `Document`, which is validated, typed and hashed,
and knows the line and column of each value. All errors of a document are reported at once, as located problems. The
room must not know how a mechanism is analysed, nor that there is a compiled core: the plan decides which theorem
applies, and which mechanisms have no valid bound.

`ranges` defines the range of every number. `sections`, `samplers/` and `matrices/` define the sections and their rules.
`validation` writes the messages about errors, with suggestions from `spelling`. `files`, `nodes` and `reader` limit the
size of the text, its depth and its number of values.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyaccount.document.amplification import Amplification, LaplaceBase, StatedBase
    from pyaccount.document.canonical import sha256_of
    from pyaccount.document.document import Document
    from pyaccount.document.fields import SOLVE, Solve
    from pyaccount.document.loading import load, load_any, load_written
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
    from pyaccount.document.noise import AnyNoise, Gaussian, Laplace
    from pyaccount.document.overrides import Override
    from pyaccount.document.policy import Limits, Policy, load_policy
    from pyaccount.document.samplers import (
        FIXED_DRAWS,
        AnySampler,
        BallsInBins,
        BMinSep,
        CyclicPoisson,
        Deterministic,
        FixedSize,
        MustOW,
        MustWO,
        MustWW,
        Poisson,
        UserBMinSep,
        WithReplacement,
    )
    from pyaccount.document.sections import Accounting, Privacy, Risk, Training
    from pyaccount.document.views import Body
    from pyaccount.document.words import VERSION

__all__ = [
    "BLT",
    "FIXED_DRAWS",
    "SOLVE",
    "UNBANDED",
    "VERSION",
    "Accounting",
    "Amplification",
    "AnyNoise",
    "AnySampler",
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
    "Limits",
    "Matrix",
    "MustOW",
    "MustWO",
    "MustWW",
    "OptimalToeplitz",
    "Override",
    "Poisson",
    "Policy",
    "Privacy",
    "Risk",
    "Solve",
    "StatedBase",
    "Toeplitz",
    "Training",
    "UserBMinSep",
    "WithReplacement",
    "load",
    "load_any",
    "load_policy",
    "load_written",
    "sha256_of",
]

#: The module of each name. A module is imported when one of its names is first used, because a gate needs only a few of
#: them.
_HOMES = {
    "amplification": "Amplification LaplaceBase StatedBase",
    "canonical": "sha256_of",
    "document": "Document",
    "fields": "SOLVE Solve",
    "loading": "load load_any load_written",
    "matrices": "BLT UNBANDED BandedInverse BandedSquareRoot Dense Identity Matrix OptimalToeplitz Toeplitz",
    "noise": "Gaussian Laplace AnyNoise",
    "overrides": "Override",
    "policy": "Limits Policy load_policy",
    "samplers": "FIXED_DRAWS BallsInBins BMinSep CyclicPoisson Deterministic FixedSize MustOW MustWO MustWW Poisson "
    "AnySampler UserBMinSep WithReplacement",
    "words": "VERSION",
    "sections": "Accounting Privacy Risk Training",
    "views": "Body",
}
_MODULE_OF = {name: module for module, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        return getattr(import_module(f"pyaccount.document.{_MODULE_OF[name]}"), name)
    raise AttributeError(f"module 'pyaccount.document' has no attribute {name!r}")

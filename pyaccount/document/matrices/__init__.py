"""The matrices, which define how the noise of the rounds is correlated.

A matrix is a class: its fields, and its possible errors. A module has the matrices of one structure, and `base` the questions
that all of them answer. Everything that depends on the list of matrices is derived from `MATRICES`, as with the samplers.
"""

from __future__ import annotations

from typing import Annotated

from pyaccount.document.matrices.base import MatrixKind
from pyaccount.document.matrices.full_column import BLT, BandedInverse
from pyaccount.document.matrices.not_toeplitz import Dense, Tree
from pyaccount.document.matrices.toeplitz import BandedSquareRoot, ChosenToeplitz, Identity, OptimalToeplitz, Toeplitz
from pyaccount.reading.kinds import Kinds
from pyaccount.reading.unknown_kinds import MATRICES as REFUSED

__all__ = [
    "BLT",
    "MATRICES",
    "UNBANDED",
    "BandedInverse",
    "BandedSquareRoot",
    "ChosenToeplitz",
    "Dense",
    "Identity",
    "Matrix",
    "MatrixKind",
    "OptimalToeplitz",
    "Toeplitz",
    "Tree",
]

#: All matrices, in the order in which they are listed everywhere.
MATRICES: tuple[type[MatrixKind], ...] = (
    Identity,
    BandedSquareRoot,
    OptimalToeplitz,
    Toeplitz,
    BandedInverse,
    BLT,
    Tree,
    Dense,
)

#: The matrices that are not banded, that is, whose diagonals may all be non-zero.
UNBANDED = tuple(matrix for matrix in MATRICES if not matrix.banded)

#: The type of the matrix in a document.
Matrix = Annotated[MatrixKind, Kinds("matrix", MATRICES, choice=ChosenToeplitz, refused=REFUSED)]

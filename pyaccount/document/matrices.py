"""The matrices: how the noise of the rounds is correlated."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pyaccount.document.fields import ChoiceOfKinds, Choose, Flag, Items, Number, Text
from pyaccount.document.kinds import Kinds, Section
from pyaccount.document.ranges import BANDS, COEFFICIENT, COEFFICIENTS, FILE_LENGTH

Normalize = Annotated[bool, Flag()]
Bands = Annotated[int | Choose, Number(BANDS, whole=True, choose=True)]

NORMALIZE = "Scale the matrix so that its largest column norm is 1; true unless said otherwise."
BANDS_TEXT = "The number of non-zero diagonals; `choose:` with a list takes the one with the smallest error."


class Identity(Section):
    """The identity: independent noise in every round, which is plain DP-SGD."""

    kind: Literal["identity"] = Field(description="Independent noise in every round (plain DP-SGD).")


class BandedSquareRoot(Section):
    """The square root of the prefix-sum matrix, its first diagonals kept."""

    kind: Literal["banded-square-root"] = Field(description="The square root of the prefix sums, banded (BSR).")
    bands: Bands = Field(description=BANDS_TEXT)
    normalize: Normalize = Field(default=True, description=NORMALIZE)


class OptimalToeplitz(Section):
    """The non-negative banded Toeplitz matrix with the smallest prefix-sum error for its column norm."""

    kind: Literal["optimal-toeplitz"] = Field(description="The banded Toeplitz matrix of least prefix-sum error.")
    bands: Bands = Field(description=BANDS_TEXT)
    normalize: Normalize = Field(default=True, description=NORMALIZE)


class Toeplitz(Section):
    """A lower-triangular Toeplitz matrix, given by its first column."""

    kind: Literal["toeplitz"] = Field(description="A Toeplitz matrix, given by its coefficients.")
    coefficients: Annotated[tuple[Annotated[float, Number(COEFFICIENT)], ...], Items(COEFFICIENTS)] = Field(
        description="The first column, from the diagonal down; what is not listed is 0."
    )
    normalize: Normalize = Field(default=True, description=NORMALIZE)


class Dense(Section):
    """Any lower-triangular non-negative matrix, from a file."""

    kind: Literal["dense"] = Field(description="A lower-triangular non-negative matrix, read from a file.")
    file: Annotated[str, Text(FILE_LENGTH)] = Field(
        description="A .npy, .csv or .txt file, relative to the document's folder."
    )
    normalize: Normalize = Field(default=True, description=NORMALIZE)


class ChosenToeplitz(Section):
    """Several kinds of banded Toeplitz matrix, of which the best is taken."""

    kind: Annotated[Choose, ChoiceOfKinds(("banded-square-root", "optimal-toeplitz"))] = Field(
        description="`choose:` with a list takes the kind with the smallest error."
    )
    bands: Bands = Field(description=BANDS_TEXT)
    normalize: Normalize = Field(default=True, description=NORMALIZE)


Matrix = Annotated[
    Identity | BandedSquareRoot | OptimalToeplitz | Toeplitz | Dense | ChosenToeplitz,
    Kinds("matrix", (Identity, BandedSquareRoot, OptimalToeplitz, Toeplitz, Dense), choice=ChosenToeplitz),
]

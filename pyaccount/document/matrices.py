"""The matrices: how the noise of the rounds is correlated."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pyaccount.document.fields import ChoiceOfKinds, Choose, Flag, Items, Number, Text
from pyaccount.document.kinds import Kinds, Section
from pyaccount.document.ranges import (
    BANDS,
    BUFFERS,
    BUFFERS_LISTED,
    COEFFICIENT,
    COEFFICIENTS,
    DECAY,
    FILE_LENGTH,
    SIGNED_COEFFICIENT,
)

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


class BandedInverse(Section):
    """A Toeplitz matrix whose inverse is banded: training adds a sum of the last few rows of noise.

    By default the inverse of the square root of the prefix-sum matrix, its first diagonals kept.
    """

    kind: Literal["banded-inverse"] = Field(description="A Toeplitz matrix whose inverse is banded.")
    bands: Annotated[int | None, Number(BANDS, whole=True)] = Field(
        default=None,
        description="The number of diagonals of the inverse, which is then the inverse square root, cut off.",
    )
    inverse_coefficients: Annotated[
        tuple[Annotated[float, Number(SIGNED_COEFFICIENT)], ...] | None, Items(COEFFICIENTS)
    ] = Field(default=None, description="Or the first column of the inverse, from the diagonal down.")
    normalize: Normalize = Field(default=True, description=NORMALIZE)

    @property
    def inverse_bands(self) -> int:
        """The number of diagonals of the inverse, however it is given."""
        return len(self.inverse_coefficients) if self.inverse_coefficients is not None else self.bands or 0


class BLT(Section):
    """Buffered linear Toeplitz: c_0 = 1, c_i = Σ_j ω_j θ_j^{i−1}, so that training keeps a few running sums.

    Either the number of buffers, whose scales ω and decays θ are then optimised, or both lists.
    """

    kind: Literal["blt"] = Field(description="A Toeplitz matrix that training applies with a few buffers.")
    buffers: Annotated[int | None, Number(BUFFERS, whole=True)] = Field(
        default=None,
        description="The number of buffers of the matrix of least prefix-sum error for records that take part as far apart as "
        "they usually do under the sampler (without sampling: as near and as often as they may).",
    )
    scales: Annotated[tuple[Annotated[float, Number(COEFFICIENT)], ...] | None, Items(BUFFERS_LISTED)] = Field(
        default=None, description="ω, one for each buffer."
    )
    decays: Annotated[tuple[Annotated[float, Number(DECAY)], ...] | None, Items(BUFFERS_LISTED)] = Field(
        default=None, description="θ, one for each buffer."
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


#: The matrices without zeros below the diagonal, or without a known number of them.
UNBANDED = (BandedInverse, BLT, Dense)

Matrix = Annotated[
    Identity | BandedSquareRoot | OptimalToeplitz | Toeplitz | BandedInverse | BLT | Dense | ChosenToeplitz,
    Kinds(
        "matrix",
        (Identity, BandedSquareRoot, OptimalToeplitz, Toeplitz, BandedInverse, BLT, Dense),
        choice=ChosenToeplitz,
    ),
]

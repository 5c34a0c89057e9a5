"""The optimal banded Toeplitz matrix."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pyaccount.document.matrices.base import BANDS_TEXT, NORMALIZE, Bands, MatrixKind, Normalize


class OptimalToeplitz(MatrixKind):
    """The non-negative banded Toeplitz matrix with the smallest prefix-sum error for its column norm."""

    aliases = "banded-toeplitz optimal"

    kind: Literal["optimal-toeplitz"] = Field(description="The banded Toeplitz matrix of least prefix-sum error.")
    bands: Bands = Field(description=BANDS_TEXT)
    normalize: Normalize = Field(default=True, description=NORMALIZE)

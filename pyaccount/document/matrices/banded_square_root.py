"""The banded square root."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pyaccount.document.matrices.base import BANDS_TEXT, NORMALIZE, Bands, MatrixKind, Normalize


class BandedSquareRoot(MatrixKind):
    """The square root of the prefix-sum matrix, of which only the first diagonals are kept."""

    aliases = "bsr square-root sqrt banded-sqrt banded-root"

    kind: Literal["banded-square-root"] = Field(description="The banded square root of the prefix-sum matrix (BSR).")
    bands: Bands = Field(description=BANDS_TEXT)
    normalize: Normalize = Field(default=True, description=NORMALIZE)

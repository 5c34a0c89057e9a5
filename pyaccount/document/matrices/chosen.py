"""A matrix whose kind is still to be chosen."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pyaccount.document.matrices.banded_square_root import BandedSquareRoot
from pyaccount.document.matrices.base import BANDS_TEXT, NORMALIZE, Bands, MatrixKind, Normalize
from pyaccount.document.matrices.optimal_toeplitz import OptimalToeplitz
from pyaccount.reading.fields import ChoiceOfKinds, Choose
from pyaccount.reading.kinds import Kinds, word_of

#: The kinds that are described by a number of bands.
ALTERNATIVES = Kinds("matrix", (BandedSquareRoot, OptimalToeplitz))


class ChosenToeplitz(MatrixKind):
    """Several kinds of banded Toeplitz matrix, of which the one with the smallest error is used."""

    kind: Annotated[Choose, ChoiceOfKinds(tuple(ALTERNATIVES.by_kind), ALTERNATIVES.aliases)] = Field(
        description="With a list under `choose:`, the kind with the smallest error is used."
    )
    bands: Bands = Field(description=BANDS_TEXT)
    normalize: Normalize = Field(default=True, description=NORMALIZE)

    @property
    def optimized(self) -> bool:
        """Whether one of the kinds to choose from is optimised."""
        return isinstance(self.kind, Choose) and word_of(OptimalToeplitz) in self.kind.choose

"""The optimal banded Toeplitz matrix."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pyaccount.document.fields import Choice
from pyaccount.document.matrices.base import BANDS_TEXT, NORMALIZE, Bands, MatrixKind, Normalize


class OptimalToeplitz(MatrixKind):
    """The non-negative banded Toeplitz matrix with the smallest error, for its column norm or under its sampler."""

    aliases = "banded-toeplitz optimal"

    kind: Literal["optimal-toeplitz"] = Field(
        description="The banded Toeplitz matrix of least error under the workload."
    )
    bands: Bands = Field(description=BANDS_TEXT)
    optimize_for: Annotated[Literal["column-norm", "sampling"], Choice(("column-norm", "sampling"))] = Field(
        default="column-norm",
        description="What the error is the least for: matrices of the same column norm (column-norm), whatever the sampler, or "
        "the σ that the document's ε and δ need under its sampler (sampling), which is searched for by samples.",
    )
    normalize: Normalize = Field(default=True, description=NORMALIZE)

    @property
    def optimized(self) -> bool:
        """Always."""
        return True

    @property
    def searched(self) -> bool:
        """Where it is to be optimal under the sampler."""
        return self.optimize_for == "sampling"

"""The optimal banded Toeplitz matrix."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pyaccount.document.matrices.base import BANDS_TEXT, NORMALIZE, Bands, MatrixKind, Normalize
from pyaccount.reading.fields import Choice


class OptimalToeplitz(MatrixKind):
    """The banded Toeplitz matrix without negative entries that has the smallest error, for its column norm or under the
    sampler.
    """

    aliases = "optimal-banded-toeplitz"

    kind: Literal["optimal-toeplitz"] = Field(
        description="The banded Toeplitz matrix with the smallest error under the workload."
    )
    bands: Bands = Field(description=BANDS_TEXT)
    optimize_for: Annotated[Literal["column-norm", "sampling"], Choice(("column-norm", "sampling"))] = Field(
        default="column-norm",
        description="What the error is minimised for. column-norm: matrices of the same column norm are compared, "
        "whatever the sampler. sampling: the σ that the ε and δ of the document need under its sampler; the "
        "matrix is then searched for, with samples if the run is sampled.",
    )
    normalize: Normalize = Field(default=True, description=NORMALIZE)

    @property
    def optimized(self) -> bool:
        """True: the matrix is always optimised."""
        return True

    @property
    def searched(self) -> bool:
        """Whether the matrix is to be optimal under the sampler."""
        return self.optimize_for == "sampling"

"""Banded Toeplitz matrices in documents: the identity, by their coefficients, the banded square root, and the optimal one.

Two of them are described by a number of bands. Their kind may be a choice, of which the one with the smallest error is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from pyaccount.document.matrices.base import BANDS_TEXT, NORMALIZE, Bands, MatrixKind, Normalize
from pyaccount.document.ranges import COEFFICIENT, COEFFICIENTS
from pyaccount.document.stated import StatedBody
from pyaccount.errors import Problem, problem
from pyaccount.reading.fields import Choice, ChoiceOfKinds, Choose, Items, Number
from pyaccount.reading.kinds import AlsoCalled, Kinds, word_of


class Toeplitz(MatrixKind):
    """A lower-triangular Toeplitz matrix, given by its first column."""

    bands_field = "coefficients"

    kind: Literal["toeplitz"] = Field(description="A Toeplitz matrix, given by its coefficients.")
    coefficients: Annotated[
        tuple[Annotated[float, Number(COEFFICIENT)], ...],
        Items(COEFFICIENTS),
        AlsoCalled("coefs toeplitz_coefficients first_column"),
    ] = Field(description="The first column, from the diagonal down. Coefficients that are not listed are 0.")
    normalize: Normalize = Field(default=True, description=NORMALIZE)

    def diagonals(self) -> int | None:
        """Return the number of coefficients up to the last non-zero one, or None if there is none."""
        listed = self.coefficients if isinstance(self.coefficients, tuple) else ()
        used = [k for k, c in enumerate(listed) if isinstance(c, int | float) and c != 0.0]
        return used[-1] + 1 if used else None

    def problems(self, body: StatedBody) -> Iterator[Problem]:
        """Report also a first coefficient of 0, with which the matrix has no inverse."""
        yield from super().problems(body)
        if not isinstance(self.coefficients, tuple):
            return
        first = self.coefficients[0]
        if isinstance(first, int | float) and first == 0.0:
            message = (
                "the first coefficient is on the diagonal and must be greater than 0, or the matrix has no inverse"
            )
            yield problem("out-of-range", (*body.at("matrix", "coefficients"), 0), message)


class Identity(MatrixKind):
    """The identity: independent noise in each round, as in plain DP-SGD."""

    aliases = "eye i dp-sgd"

    kind: Literal["identity"] = Field(description="Independent noise in each round (plain DP-SGD).")

    def diagonals(self) -> int | None:
        """Return 1: only the main diagonal is non-zero."""
        return 1


class BandedSquareRoot(MatrixKind):
    """The square root of the prefix-sum matrix, of which only the first diagonals are kept."""

    aliases = "bsr square-root sqrt banded-sqrt banded-root"

    kind: Literal["banded-square-root"] = Field(description="The banded square root of the prefix-sum matrix (BSR).")
    bands: Bands = Field(description=BANDS_TEXT)
    normalize: Normalize = Field(default=True, description=NORMALIZE)


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

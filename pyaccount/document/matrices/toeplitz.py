"""A Toeplitz matrix that is given by its coefficients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from pyaccount.document.matrices.base import NORMALIZE, MatrixKind, Normalize
from pyaccount.document.ranges import COEFFICIENT, COEFFICIENTS
from pyaccount.errors import Problem, problem
from pyaccount.reading.asking import AlsoCalled
from pyaccount.reading.fields import Items, Number

if TYPE_CHECKING:
    from pyaccount.document.stated import StatedBody


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

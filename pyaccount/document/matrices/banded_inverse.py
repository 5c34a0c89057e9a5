"""A matrix whose inverse is banded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from pyaccount.document.matrices.base import ASKED_BANDS, CALLED_BANDS, NORMALIZE, FullColumn, Normalize
from pyaccount.document.ranges import BANDS, COEFFICIENTS, SIGNED_COEFFICIENT
from pyaccount.document.stated import number_or_none
from pyaccount.errors import Problem, problem
from pyaccount.reading.fields import Items, Number

if TYPE_CHECKING:
    from pyaccount.document.stated import StatedBody


class BandedInverse(FullColumn):
    """A Toeplitz matrix whose inverse is banded: training adds a weighted sum of the last few rows of noise.

    By default the inverse is that of the square root of the prefix-sum matrix, of which only the first diagonals are kept.
    """

    ways: ClassVar[tuple[tuple[str, ...], tuple[str, ...]]] = (("bands",), ("inverse_coefficients",))

    kind: Literal["banded-inverse"] = Field(description="A Toeplitz matrix whose inverse is banded.")
    bands: Annotated[int | None, Number(BANDS, whole=True), ASKED_BANDS, CALLED_BANDS] = Field(
        default=None,
        description="The number of non-zero diagonals of the inverse. The inverse is then the inverse square root of "
        "the prefix-sum matrix, cut off after these diagonals.",
    )
    inverse_coefficients: Annotated[
        tuple[Annotated[float, Number(SIGNED_COEFFICIENT)], ...] | None, Items(COEFFICIENTS)
    ] = Field(default=None, description="The first column of the inverse, from the diagonal down, instead of bands.")
    normalize: Normalize = Field(default=True, description=NORMALIZE)

    @property
    def inverse_bands(self) -> int:
        """The number of non-zero diagonals of the inverse, whichever way it is given."""
        return len(self.inverse_coefficients) if self.inverse_coefficients is not None else self.bands or 0

    def misfits(self, body: StatedBody) -> Iterator[Problem]:
        """Report also more diagonals of the inverse than rounds."""
        yield from super().misfits(body)
        rounds, width = number_or_none(body.training.iterations), number_or_none(self.bands)
        if rounds is not None and width is not None and width > rounds:
            message = f"the inverse has {width} bands, but there are only {rounds:_} iterations"
            path = body.at("matrix", "bands")
            yield problem("contradiction", path, message, allowed=f"at most {rounds}")

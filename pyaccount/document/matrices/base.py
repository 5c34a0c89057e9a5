"""The base classes of matrices, with the answers of a banded matrix whose bands are a field, and shared fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, ClassVar

from pyaccount.document.ranges import BANDS
from pyaccount.document.stated import StatedBody, number_or_none
from pyaccount.errors import Problem, problem
from pyaccount.reading.fields import Choose, Flag, Number
from pyaccount.reading.kinds import AlsoCalled, Asked, Kind

ASKED_BANDS = Asked(
    "Number of bands of the matrix", trial="8", usual="the minimum distance between participations", metavar="B"
)
CALLED_BANDS = AlsoCalled("num_bands")

Normalize = Annotated[bool, Flag()]
Bands = Annotated[int | Choose, Number(BANDS, whole=True, choose=True), ASKED_BANDS, CALLED_BANDS]

NORMALIZE = "Whether the matrix is scaled so that its largest column norm is 1."
BANDS_TEXT = "The number of non-zero diagonals. With a list under `choose:`, the value with the smallest error is used."


class MatrixKind(Kind):
    """How the noise of the rounds is correlated."""

    if TYPE_CHECKING:
        # This is a field of the matrices; its type differs between them.

        @property
        def kind(self) -> str | Choose:
            """The word by which documents name the matrix, or a choice of words."""

    #: Whether the number of non-zero diagonals is known. If not, all diagonals may be non-zero.
    banded = True
    #: The field that states the number of non-zero diagonals.
    bands_field = "bands"
    #: The names of the fields that contain file names.
    files: ClassVar[tuple[str, ...]] = ()

    @property
    def optimized(self) -> bool:
        """Whether the matrix minimises an error, so that it depends on the workload."""
        return False

    @property
    def searched(self) -> bool:
        """Whether its coefficients are still to be searched for, given the sampler and the target of the document."""
        return False

    def diagonals(self) -> int | None:
        """Return the number of non-zero diagonals; None while it is a choice, and for a matrix that is not banded."""
        stated = getattr(self, self.bands_field, None) if self.banded else None
        return stated if isinstance(stated, int) else None

    def problems(self, body: StatedBody) -> Iterator[Problem]:
        """Yield the problems of the matrix: by default, more diagonals than rounds."""
        rounds, width = number_or_none(body.training.iterations), self.diagonals()
        if rounds is not None and width is not None and width > rounds:
            message = f"the matrix has {width} bands, but there are only {rounds:_} iterations"
            path = body.at("matrix", self.bands_field)
            yield problem("contradiction", path, message, allowed=f"at most {rounds}")

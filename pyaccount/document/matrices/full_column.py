"""Toeplitz matrices with a full first column in documents: those with a banded inverse, and buffered linear ones (BLT)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from pyaccount.document import ranges
from pyaccount.document.matrices.base import ASKED_BANDS, CALLED_BANDS, NORMALIZE, MatrixKind, Normalize
from pyaccount.document.stated import StatedBody, number_or_none
from pyaccount.errors import Problem, problem
from pyaccount.reading.fields import Choice, Items, Number
from pyaccount.reading.kinds import Asked


class FullColumn(MatrixKind):
    """A Toeplitz matrix with a full first column, which is described in one of two ways."""

    banded = False
    #: The fields of each of the two descriptions.
    ways: ClassVar[tuple[tuple[str, ...], tuple[str, ...]]]

    def problems(self, body: StatedBody) -> Iterator[Problem]:
        """Report a matrix without a complete description, or with both."""
        first, second = self.ways
        given = [way for way in self.ways if any(getattr(self, field) is not None for field in way)]
        described = f"{first[0]}, or {' and '.join(second)}"
        if not given:
            message = f"a {self.kind} matrix needs {described}"
            yield problem("missing-key", body.at("matrix", first[0]), message)
            return
        if len(given) == 2:
            field = next(field for field in second if getattr(self, field) is not None)
            yield problem("contradiction", body.at("matrix", field), f"give {described}, not both")
            return
        for field in given[0]:
            if getattr(self, field) is None:
                message = f"a {self.kind} matrix needs {described}"
                yield problem("missing-key", body.at("matrix", field), message)
        yield from self.misfits(body)

    def misfits(self, body: StatedBody) -> Iterator[Problem]:
        """Yield the problems of a complete description: by default, more iterations than a first column can have."""
        rounds = number_or_none(body.training.iterations)
        if rounds is not None and rounds not in ranges.BANDS:
            message = (
                f"a {self.kind} matrix has a full first column, so its iterations must be {ranges.BANDS.describe()}"
            )
            path = body.at("training", "iterations")
            yield problem("out-of-range", path, message, allowed=ranges.BANDS.describe())


class BandedInverse(FullColumn):
    """A Toeplitz matrix whose inverse is banded: training adds a weighted sum of the last few rows of noise.

    By default the inverse is that of the square root of the prefix-sum matrix, of which only the first diagonals are kept.
    """

    ways: ClassVar[tuple[tuple[str, ...], tuple[str, ...]]] = (("bands",), ("inverse_coefficients",))

    kind: Literal["banded-inverse"] = Field(description="A Toeplitz matrix whose inverse is banded.")
    bands: Annotated[int | None, Number(ranges.BANDS, whole=True), ASKED_BANDS, CALLED_BANDS] = Field(
        default=None,
        description="The number of non-zero diagonals of the inverse. The inverse is then the inverse square root of "
        "the prefix-sum matrix, cut off after these diagonals.",
    )
    inverse_coefficients: Annotated[
        tuple[Annotated[float, Number(ranges.SIGNED_COEFFICIENT)], ...] | None, Items(ranges.COEFFICIENTS)
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


class BLT(FullColumn):
    """Buffered linear Toeplitz matrix: c_0 = 1, c_i = Σ_j ω_j θ_j^{i−1}. Training keeps a few running sums (buffers).

    Give either the number of buffers, whose scales ω and decays θ are then optimised, or both lists.
    """

    ways: ClassVar[tuple[tuple[str, ...], tuple[str, ...]]] = (("buffers",), ("scales", "decays"))

    kind: Literal["blt"] = Field(description="A Toeplitz matrix that training applies with a few buffers.")
    buffers: Annotated[
        int | None, Number(ranges.BUFFERS, whole=True), Asked("Number of buffers of the matrix", trial="2", metavar="D")
    ] = Field(
        default=None,
        description="The number of buffers. The matrix is the one with the smallest error under the workload, for "
        "records that take part as far apart as they usually do under the sampler (without sampling: as close "
        "together and as often as they may).",
    )
    scales: Annotated[tuple[Annotated[float, Number(ranges.COEFFICIENT)], ...] | None, Items(ranges.BUFFERS_LISTED)] = (
        Field(default=None, description="The scales ω, one for each buffer.")
    )
    decays: Annotated[tuple[Annotated[float, Number(ranges.DECAY)], ...] | None, Items(ranges.BUFFERS_LISTED)] = Field(
        default=None, description="The decays θ, one for each buffer."
    )
    optimize_for: Annotated[
        Literal["usual-participations", "sampling"], Choice(("usual-participations", "sampling"))
    ] = Field(
        default="usual-participations",
        description="What the error is minimised for. usual-participations: records that take part as far apart as "
        "they usually do. sampling: the σ that the ε and δ of the document need under its sampler; the matrix is "
        "then searched for with samples.",
    )
    normalize: Normalize = Field(default=True, description=NORMALIZE)

    @property
    def optimized(self) -> bool:
        """Whether only the number of buffers is given, so that scales and decays are optimised."""
        return self.buffers is not None

    @property
    def searched(self) -> bool:
        """Whether the matrix is to be optimal under the sampler."""
        return self.optimize_for == "sampling"

    def misfits(self, body: StatedBody) -> Iterator[Problem]:
        """Report different numbers of scales and decays, and contradictions to `optimize_for: sampling`."""
        lengths = [len(listed) for listed in (self.scales, self.decays) if isinstance(listed, tuple)]
        if len(set(lengths)) == 2:
            message = f"there are {lengths[0]} scales and {lengths[1]} decays: give one of each for every buffer"
            yield problem("contradiction", body.at("matrix", "decays"), message)
        if self.searched and self.buffers is None:
            message = (
                "scales and decays determine the matrix: give the number of buffers instead, or leave optimize_for out"
            )
            yield problem("contradiction", body.at("matrix", "optimize_for"), message)
        if self.searched and self.normalize is False:
            message = "a matrix that is optimised for sampling has unit column norm: leave normalize out"
            yield problem("contradiction", body.at("matrix", "normalize"), message)
        yield from super().misfits(body)

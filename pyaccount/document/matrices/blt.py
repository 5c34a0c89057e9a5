"""Buffered linear Toeplitz matrices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from pyaccount.document.matrices.base import NORMALIZE, FullColumn, Normalize
from pyaccount.document.ranges import BUFFERS, BUFFERS_LISTED, COEFFICIENT, DECAY
from pyaccount.errors import Problem, problem
from pyaccount.reading.asking import Asked
from pyaccount.reading.fields import Choice, Items, Number

if TYPE_CHECKING:
    from pyaccount.document.stated import StatedBody


class BLT(FullColumn):
    """Buffered linear Toeplitz matrix: c_0 = 1, c_i = Σ_j ω_j θ_j^{i−1}. Training keeps a few running sums (buffers).

    Give either the number of buffers, whose scales ω and decays θ are then optimised, or both lists.
    """

    ways: ClassVar[tuple[tuple[str, ...], tuple[str, ...]]] = (("buffers",), ("scales", "decays"))

    kind: Literal["blt"] = Field(description="A Toeplitz matrix that training applies with a few buffers.")
    buffers: Annotated[
        int | None, Number(BUFFERS, whole=True), Asked("Number of buffers of the matrix", trial="2", metavar="D")
    ] = Field(
        default=None,
        description="The number of buffers. The matrix is the one with the smallest error under the workload, for "
        "records that take part as far apart as they usually do under the sampler (without sampling: as close "
        "together and as often as they may).",
    )
    scales: Annotated[tuple[Annotated[float, Number(COEFFICIENT)], ...] | None, Items(BUFFERS_LISTED)] = Field(
        default=None, description="The scales ω, one for each buffer."
    )
    decays: Annotated[tuple[Annotated[float, Number(DECAY)], ...] | None, Items(BUFFERS_LISTED)] = Field(
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

"""The noise of one body of a document: its scale, its growth, and streams of its rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pyaccount.errors import DocumentError, DomainError
from pyaccount.plan.common import number, whole
from pyaccount.plan.matrices import strategy
from pyaccount.training.noise.inverses import InverseRows, inverse_rows
from pyaccount.training.noise.inverses.identity import IdentityRows
from pyaccount.training.noise.nonces import WITHOUT_NONCE
from pyaccount.training.noise.stream import NoiseStream, parts_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import DTypeLike

    from pyaccount.document import Body, Document
    from pyaccount.training.key import RunKey

#: The kinds of noise that are drawn.
DRAWN = ("gaussian",)

#: The rows' scale is raised by this, relatively: by more than the roundings of σ times the clip norm, of a weight and of their
#: products can have lowered it (some 2⁻⁵³ each), and by less than anybody would notice.
RAISED = 2.0**-48

#: The floating-point numbers near the noise of a round are to be at most this far apart, in standard deviations of what is new in
#: the round: see `Noise.most_growth`.
COARSEST = 2.0**-10

#: A coordinate of every key, which no longer varies: a round that is released anew has a nonce of its own.
_ATTEMPT = 0

#: The largest number of a row in standard deviations, and more: see `pyaccount_core::noise::normals`.
LARGEST_NORMAL = 16.0


@dataclass(frozen=True, slots=True)
class Noise:
    """The rows of C⁻¹Z of one run of a body, Z with independent N(0, `standard_deviation`²) entries."""

    #: How many rows there are: the iterations of the body.
    rounds: int
    #: σ times the clip norm, of the entries of Z; in the units of the sums.
    standard_deviation: float
    inverse: InverseRows
    _key: RunKey
    _coordinates: tuple[str | int, ...]

    @property
    def growth(self) -> float:
        """The largest ‖·‖₂ of a row of C⁻¹, in double precision: the noise of a round is at most so often as large as Z's."""
        return self.inverse.growth

    @property
    def memory(self) -> str:
        """What a stream keeps between rounds, and what a round costs, in words."""
        return self.inverse.memory

    def most_growth(self, dtype: DTypeLike = np.float32) -> float:
        """The largest growth with which rows are given out in this type of numbers.

        Given the rows before, a row of C⁻¹Z has a standard deviation of σ·|C⁻¹[t, t]|: only that much of it is new. As large as
        growth·σ, its numbers are 2⁻²³ (float32) or 2⁻⁵² (float64) of that apart. Where this spacing comes near what is new, what
        is new has a few values only, which no Gaussian stands for: with C⁻¹ applied to the sums an attacker sees them. We ask for
        a thousand steps (`COARSEST`) in a standard deviation. The limit is a choice, not a bound on what is lost.
        """
        return COARSEST * self.inverse.smallest_new / float(np.finfo(dtype).eps)

    def stream(
        self,
        shapes: Mapping[str, tuple[int, ...]],
        *,
        dtype: DTypeLike = np.float32,
        parts: Mapping[str, slice] | None = None,
    ) -> NoiseStream:
        """The rows of the noise of named parameters, of these shapes: float32 or float64 arrays, rounded once.

        `parts` are ranges of flattened parameters, for sharding: their noise is exactly that part of the whole's, and parameters
        that it does not name are left out. Parts of one parameter belong together if their rounds have the same nonces. The name
        of a parameter is part of the key of its rows: renamed, a parameter gets other noise.

        Raises `DomainError` for other types, shapes and ranges, for a growth beyond `most_growth`, and for a scale whose noise
        the type cannot hold.
        """
        kind = np.dtype(dtype)
        if kind not in (np.dtype(np.float32), np.dtype(np.float64)):
            raise DomainError(f"noise is drawn as float32 or float64, not as {kind}: convert it once the sum is noisy")
        limit, limits = self.most_growth(kind), np.finfo(kind)
        if not self.growth <= limit:
            wider = (
                "" if kind.itemsize == 8 or not self.growth <= self.most_growth(np.float64) else "float64 noise, or "
            )
            raise DomainError(
                f"the inverse of this matrix makes the noise {self.growth:.3g} times as large as the rows of Z, and in {kind} "
                f"at most {limit:.3g} leaves what is new in a round enough digits: use {wider}a matrix whose inverse does not "
                "grow, such as banded-square-root"
            )
        smallest = self.standard_deviation * self.inverse.smallest_new
        largest = self.standard_deviation * self.growth * LARGEST_NORMAL
        if not (smallest * float(limits.eps) >= float(limits.tiny) and largest <= float(limits.max)):
            raise DomainError(
                f"noise of standard deviation {self.standard_deviation:.3g} is out of the range of {kind}: "
                "scale the sums and the clip norm"
            )
        return NoiseStream(self, parts_of(shapes, parts), kind)

    def key(self, name: str, round: int, nonce: bytes) -> RunKey:
        """Return the key that a parameter's row of Z is drawn from: `RunKey.derive` of the phase, the name, the round and the
        nonce.

        In a record of version 1 rounds have no nonce, and all rows of a parameter are drawn from one key.
        """
        if nonce == WITHOUT_NONCE:
            return self._key.derive(*self._coordinates, name)
        return self._key.derive(*self._coordinates, name, round, nonce.hex())


def noise_of(  # noqa: PLR0913 - a run's coordinates
    document: Document,
    body: Body,
    key: RunKey,
    *,
    phase: int,
    clip_norm: float,
    release: int = 0,
) -> Noise:
    """The noise of one run of a body: N(0, (σ·clip_norm)²) in every entry of Z, given out as the rows of C⁻¹Z.

    C is the matrix that the document's certificate is about. `phase` is the number of the run among all runs of the document's
    bodies (a body that is run `count` times has as many): streams of different phases are independent. `release` 0 is the sum of
    the gradients; i ≥ 1 is the i-th of `noise.also`, whose noise is independent from round to round and in units of its own clip
    norm.

    The standard deviation is rounded up. Raises `DomainError` for a clip norm that is not positive and finite and for a release
    that there is not, `DocumentError` for a blank, for a matrix file that holds none, and for Laplace noise: that is not drawn
    here, since floating-point Laplace noise reveals digits of what it is added to (Mironov 2012).
    """
    if not (math.isfinite(clip_norm) and clip_norm > 0.0):
        raise DomainError(f"a clip norm is greater than 0 and finite, not {clip_norm!r}")
    if phase < 0:
        raise DomainError("phases are counted from 0")
    if document.blank is not None:
        message = "the noise of a run is known once nothing is left to be solved"
        raise DocumentError([document.problem("unfilled-blank", document.blank, message, allowed="a value")])
    if body.noise.kind not in DRAWN:
        message = (
            "only Gaussian noise is drawn: Laplace noise in floating point reveals digits of the number that it is added to. "
            "Draw it on a grid, with a library made for it"
        )
        raise DocumentError([document.problem("not-drawn", body.at("noise", "kind"), message, allowed="gaussian")])
    also: tuple[Any, ...] = body.noise.also
    if not 0 <= release <= len(also):
        raise DomainError(f"a batch of this document has {1 + len(also)} releases, numbered from 0, not {release}")
    built = strategy(document, body)
    if release == 0:
        multiplier, inverse = number(body.noise.multiplier), inverse_rows(body, built)
        coordinates: tuple[str | int, ...] = ("noise", phase, _ATTEMPT)
    else:
        # The matrix is the main release's alone.
        multiplier, inverse = also[release - 1].multiplier, IdentityRows(built)
        coordinates = ("noise also", phase, _ATTEMPT, release)
    deviation = multiplier * clip_norm * (1.0 + RAISED)
    return Noise(whole(body.training.iterations), deviation, inverse, key, coordinates)

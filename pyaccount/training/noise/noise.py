"""The noise of one body of a document: its scale, its growth, and streams of its rows."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pyaccount import _core
from pyaccount.errors import DocumentError, DomainError, PlanExceededError, RunError
from pyaccount.plan.common import number, whole
from pyaccount.plan.matrices import strategy
from pyaccount.training.noise.inverses import InverseRows, inverse_rows
from pyaccount.training.noise.inverses.identity import IdentityRows
from pyaccount.training.noise.nonces import WITHOUT_NONCE, check_nonces, new_nonce

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

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


@dataclass(frozen=True, slots=True)
class ParameterPart:
    """A range of a flattened parameter, and the shape of its noise."""

    start: int
    stop: int
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """How many elements it has."""
        return self.stop - self.start


@dataclass(frozen=True, slots=True, repr=False)
class NoiseState:
    """Where a stream is: the next round, the nonces of those before, and for matrices that need it the kept rows or sums.

    The kept rows are noise, and must stay as secret as the key: whoever has them can subtract them. Keep them where the key may
    be kept, or keep the nonces alone, which are not secret, and let `NoiseStream.seek` draw the rest again.
    """

    kept: Mapping[str, NDArray[Any]]
    nonces: tuple[bytes, ...]

    @property
    def round(self) -> int:
        """The next round: every one before has a nonce."""
        return len(self.nonces)

    def __repr__(self) -> str:
        return f"NoiseState(round={self.round}, …)"


class NoiseStream:
    """The rows of C⁻¹Z, Z with N(0, σ²·clip²) entries: `next` draws that of `round`, numbered from 0.

    A number depends on the key, the nonces, the parameter's name, its place in the flattened parameter, the round and the type of
    numbers alone: not on other parameters, parts, threads, processors, or on whether the stream was restored. What is drawn is
    secret until it is in a sum.
    """

    def __init__(self, noise: Noise, parts: Mapping[str, ParameterPart], dtype: np.dtype[Any]) -> None:
        """For `Noise.stream`."""
        self._noise, self._inverse, self._parts, self._dtype = noise, noise.inverse, dict(parts), dtype
        self._nonces: list[bytes] = []
        #: Whether every parameter is at the round after the last nonce.
        self._whole = True
        self._rows = {name: self._rows_of(part) for name, part in self._parts.items()}
        #: The keys of the rows of Z that are in the newest row, by parameter and round: most are needed for the next one too.
        self._keys: dict[str, dict[int, RunKey]] = {name: {} for name in self._parts}

    @property
    def round(self) -> int:
        """The round whose noise `next` draws; that of the end, `Noise.rounds`, after the last one."""
        return len(self._nonces)

    @property
    def nonces(self) -> tuple[bytes, ...]:
        """The nonces of the rounds before this one: with them and the key, their rows can be drawn again."""
        return tuple(self._nonces)

    def next(self, nonce: bytes | None = None) -> dict[str, NDArray[Any]]:
        """Draw the noise of this round for every parameter, in its shape (a part is a vector); the stream goes on by one round.

        Without a nonce a new one is drawn. One that is given is that of this round, drawn before: to draw the same row again, or
        the part of it that belongs to another rank. A nonce must not be used for two sums.

        Raises `PlanExceededError` after the last round. Interrupted, it has to `seek` its round.
        """
        self._needs_whole()
        number = self.round
        if number >= self._noise.rounds:
            raise PlanExceededError(
                f"the noise of all {self._noise.rounds} rounds has been drawn, and a further one is not certified"
            )
        nonce = new_nonce() if nonce is None else nonce
        check_nonces([nonce])
        row = self._inverse.row(number)
        found = {}
        self._whole = False
        for name, part in self._parts.items():
            known = self._keys[name]
            keys = {
                t: known.get(t) or self._noise.key(name, t, nonce if t == number else self._nonces[t])
                for t, _ in row.fresh
            }
            found[name] = np.empty(part.size, self._dtype)
            # The secret bytes are in no variable: see `RunKey`.
            self._rows[name].next(
                [(keys[t].reveal(), t, weight * self._noise.standard_deviation) for t, weight in row.fresh],
                row.coefficients,
                found[name],
            )
            self._keys[name] = keys
        self._nonces.append(nonce)
        self._whole = True
        return {name: values.reshape(self._parts[name].shape) for name, values in found.items()}

    def seek(self, round: int, nonces: Sequence[bytes]) -> None:
        """Go to a round, by the nonces of the rounds before it: more of them are left out.

        At once for matrices whose rows need none of the rows before (`Noise.memory` says which: nothing is kept); else all rounds
        up to there are drawn again, from the beginning if the stream is beyond: round after round, at the cost of `next`. Raises
        `DomainError` for a round that there is not, and for too few nonces.
        """
        target = operator.index(round)
        if not 0 <= target <= self._noise.rounds:
            raise DomainError(f"the rounds are numbered from 0 to {self._noise.rounds - 1}: there is no round {target}")
        if len(nonces) < target:
            raise DomainError(
                f"{len(nonces)} nonces: the noise up to round {target} is drawn by as many, one for each round"
            )
        wanted = list(nonces[:target])
        check_nonces(wanted)
        if self._inverse.from_key_alone:
            self._begin(wanted)
            return
        if not self._whole or wanted[: self.round] != self._nonces:
            self._whole = False
            for rows in self._rows.values():
                rows.clear()
            self._begin([])
        for nonce in wanted[self.round :]:
            self.next(nonce)

    def state(self) -> NoiseState:
        """What `restore` needs to go on from here: small, or as large as what the matrix makes a stream keep. It is secret."""
        self._needs_whole()
        return NoiseState({name: self._kept(name) for name in self._rows if self._places}, self.nonces)

    def restore(self, state: NoiseState) -> None:
        """Go on where `state` was taken, by a stream of the same noise, parameters, parts and type of numbers.

        Raises `RunError` for the state of another one, as far as that can be told: by rounds, names and sizes. Then nothing has
        changed.
        """
        if state.round > self._noise.rounds:
            raise RunError(f"the state is of round {state.round}, and this noise has {self._noise.rounds} rounds")
        expected = {name: (self._places, part.size) for name, part in self._parts.items() if self._places}
        kinds = {kept.dtype for kept in state.kept.values()}
        shapes = {name: kept.shape for name, kept in state.kept.items()}
        if shapes != expected or not kinds <= {self._kept_type}:
            raise RunError(
                "the state is of other parameters, parts, matrices or types: restore that of this stream, or seek its round"
            )
        self._whole = False
        for name, kept in state.kept.items():
            for place in range(self._places):
                self._rows[name].restore(place, np.ascontiguousarray(kept[place]))
        self._begin(list(state.nonces))

    def _begin(self, nonces: list[bytes]) -> None:
        """Be at the round after these, now that every parameter is."""
        self._nonces, self._keys, self._whole = nonces, {name: {} for name in self._parts}, True

    def _rows_of(self, part: ParameterPart) -> _core.NoiseRows:
        single, kept, decays = self._dtype.itemsize == 4, self._inverse.kept, self._inverse.decays
        return _core.NoiseRows(part.start, part.size, single=single, kept=kept, decays=decays)

    @property
    def _places(self) -> int:
        decays = self._inverse.decays
        return self._inverse.kept if decays is None else len(decays)

    @property
    def _kept_type(self) -> np.dtype[Any]:
        return self._dtype if self._inverse.decays is None else np.dtype(np.float64)

    def _kept(self, name: str) -> NDArray[Any]:
        kept = np.empty((self._places, self._parts[name].size), self._kept_type)
        for place in range(self._places):
            self._rows[name].kept(place, kept[place])
        return kept

    def _needs_whole(self) -> None:
        if not self._whole:
            raise RunError(
                f"the stream was interrupted while it drew round {self.round}: seek({self.round}, nonces) before going on"
            )


def parts_of(shapes: Mapping[str, tuple[int, ...]], parts: Mapping[str, slice] | None) -> dict[str, ParameterPart]:
    """The part of each parameter that is drawn. Raises `DomainError` for shapes that are none and ranges beyond them."""
    whole = {}
    for name, shape in shapes.items():
        dimensions = tuple(operator.index(size) for size in shape)
        if any(size < 0 for size in dimensions):
            raise DomainError(f"the shape of {name} is {dimensions}: no size is below 0")
        whole[name] = ParameterPart(0, math.prod(dimensions), dimensions)
    if parts is None:
        return whole
    unknown = [name for name in parts if name not in whole]
    if unknown:
        raise DomainError(
            f"there is a part of {unknown[0]!r}, which is no parameter: {', '.join(whole) or 'there are none'}"
        )
    return {name: _part(name, whole[name].size, part) for name, part in parts.items()}


def _part(name: str, size: int, part: slice) -> ParameterPart:
    start = 0 if part.start is None else operator.index(part.start)
    stop = size if part.stop is None else operator.index(part.stop)
    if part.step not in (None, 1) or not 0 <= start <= stop <= size:
        raise DomainError(
            f"{part} is no range of the {size} elements of {name}: 0 ≤ start ≤ stop ≤ {size}, one after the other"
        )
    return ParameterPart(start, stop, (stop - start,))

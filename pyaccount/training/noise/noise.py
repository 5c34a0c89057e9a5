"""`Noise`, the noise of one body of a document (its scale and its growth), and `NoiseStream`, which draws its rows."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pyaccount import _core
from pyaccount.errors import DocumentError, DomainError, PlanExceededError, RunError
from pyaccount.plan.common import number
from pyaccount.plan.matrices import strategy
from pyaccount.plan.schedule_values import multipliers_of
from pyaccount.training.key import RunKey, check_nonces, new_nonce
from pyaccount.training.noise.inverses import InverseRows, inverse_rows
from pyaccount.training.noise.inverses.base import IdentityRows

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

    from pyaccount.plan.protection import RunCase

#: The kinds of noise that can be drawn.
DRAWN = ("gaussian",)

#: The scale of the rows is raised by this relative amount. It exceeds what the roundings of σ times the clip norm, of a weight
#: and of their products can have lowered it by (some 2⁻⁵³ each), so the noise is never too small; it has no practical effect.
RAISED = 2.0**-48

#: The largest allowed spacing of floating-point numbers near the noise of a round, in standard deviations of the part of the
#: noise that is new in the round: see `Noise.most_growth`.
COARSEST = 2.0**-10

#: The number of sums to which noise is added at a time, which a processor's cache can hold.
TOGETHER = 1 << 15

#: An upper bound on every number of a row, in standard deviations: see `pyaccount_core::noise::normals`.
LARGEST_NORMAL = 16.0


@dataclass(frozen=True, slots=True)
class Noise:
    """The rows of C⁻¹Z for one run of a body, where Z has independent N(0, `standard_deviation`²) entries."""

    #: The number of rows, which is the number of iterations of the body.
    rounds: int
    #: The standard deviation of the entries of Z, σ times the clip norm, rounded up; in the units of the sums. If the rounds
    #: have different ones, the largest of them.
    standard_deviation: float
    inverse: InverseRows
    _key: RunKey
    _coordinates: tuple[str | int, ...]
    #: The standard deviation of each row of Z, if the document has a schedule of noise; rows then have no correlation.
    deviations: NDArray[np.float64] | None = None

    def deviation(self, round: int) -> float:
        """Return the standard deviation of the row of Z of a round, counted from 0."""
        return self.standard_deviation if self.deviations is None else float(self.deviations[round])

    @property
    def growth(self) -> float:
        """The largest ℓ₂ norm of a row of C⁻¹, in double precision.

        The standard deviation of the noise of a round is at most this factor times that of Z.
        """
        return self.inverse.growth

    @property
    def memory(self) -> str:
        """A text that says what a stream keeps between rounds, and what a round costs."""
        return self.inverse.memory

    def most_growth(self, dtype: DTypeLike = np.float32) -> float:
        """Return the largest growth for which `stream` draws rows as numbers of this type.

        Given all earlier rows, row t of C⁻¹Z has a standard deviation of σ·|C⁻¹[t, t]|; only this part of it is new. Its numbers
        are as large as growth·σ, so they are spaced by 2⁻²³ (float32) or 2⁻⁵² (float64) of growth·σ. If the spacing comes near
        the size of the new part, the new part has only a few values and is far from Gaussian; an attacker who applies C⁻¹ to the
        sums sees these values. We require a thousand steps (`COARSEST`) per standard deviation. This limit is a choice, not a
        bound on what is lost.
        """
        return COARSEST * self.inverse.smallest_new / float(np.finfo(dtype).eps)

    def stream(
        self,
        shapes: Mapping[str, tuple[int, ...]],
        *,
        dtype: DTypeLike = np.float32,
        parts: Mapping[str, slice] | None = None,
    ) -> NoiseStream:
        """Return a stream of the rows for named parameters of these shapes: float32 or float64 arrays, rounded once.

        `parts` are ranges of flattened parameters, for sharding. The noise of a part is exactly that part of the noise of the
        whole parameter, if both are drawn with the same nonces. Parameters that `parts` does not name are left out. The name of a
        parameter is part of the key of its rows, so a renamed parameter gets other noise.

        Raises `DomainError` for other types, for wrong shapes or ranges, for a growth beyond `most_growth`, and if the type
        cannot hold noise of this scale.
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
                f"the inverse of this matrix makes the noise {self.growth:.3g} times as large as the rows of Z, and {kind} has "
                f"enough digits for a factor of at most {limit:.3g}: use {wider}a matrix whose inverse does not grow, such as "
                "banded-square-root"
            )
        least = self.standard_deviation if self.deviations is None else float(self.deviations.min())
        smallest = least * self.inverse.smallest_new
        largest = self.standard_deviation * self.growth * LARGEST_NORMAL
        if not (smallest * float(limits.eps) >= float(limits.tiny) and largest <= float(limits.max)):
            raise DomainError(
                f"noise of standard deviation {least:.3g} is out of the range of {kind}: "
                "scale the sums and the clip norm"
            )
        return NoiseStream(self, _parts_of(shapes, parts), kind)

    def key(self, name: str, round: int, nonce: bytes) -> RunKey:
        """Return the key from which a parameter's row of Z is drawn: `RunKey.derive` of the phase, the name, the round and the
        nonce.
        """
        return self._key.derive(*self._coordinates, name, round, nonce.hex())


def noise_of(
    case: RunCase,
    key: RunKey,
    *,
    phase: int,
    clip_norm: float,
    release: int = 0,
) -> Noise:
    """Return the noise of one run of a phase: the rows of C⁻¹Z, where the entries of Z are independent N(0, (σ·clip_norm)²).

    C is the matrix that the document's certificate is about. `phase` is the number of the run, counted from 0 over all runs of
    all bodies of the document (a body with `count` has that many runs); the streams of different phases are independent.
    `release` 0 is the sum of the gradients; i ≥ 1 is the i-th entry of `noise.also`, whose noise is independent from round to
    round and in units of its own clip norm. The standard deviation is rounded up.

    Raises `DomainError` for a clip norm that is not positive and finite, a negative phase, or a release that the document does
    not have; `DocumentError` for a blank, for a file that contains no valid matrix or one with more rows than columns, and for
    Laplace noise, which is not drawn here because in floating point it reveals digits of the number to which it is added
    (Mironov 2012).
    """
    if not (math.isfinite(clip_norm) and clip_norm > 0.0):
        raise DomainError(f"a clip norm is greater than 0 and finite, not {clip_norm!r}")
    if phase < 0:
        raise DomainError(f"phase = {phase}: phases are counted from 0")
    body = case.node
    if case.asked.blank is not None:
        message = "noise cannot be drawn while a value of the document is unknown: certify the document first"
        raise DocumentError([case.asked.problem("unfilled-blank", case.asked.blank, message, allowed="a value")])
    if body.noise.kind not in DRAWN:
        message = (
            "only Gaussian noise is drawn: Laplace noise in floating point reveals digits of the number that it is added to. "
            "Draw it on a grid, with a library made for it"
        )
        raise DocumentError([case.asked.problem("not-drawn", body.at("noise", "kind"), message, allowed="gaussian")])
    also: tuple[Any, ...] = body.noise.also
    if not 0 <= release <= len(also):
        raise DomainError(f"a batch of this document has {1 + len(also)} releases, numbered from 0, not {release}")
    built = strategy(case)
    scheduled = multipliers_of(case) if release == 0 else None
    if built.dense is not None and not built.square:
        message = (
            f"the matrix has {built.rows} rows for {built.iterations} iterations, and noise is drawn for square matrices only: "
            "the noise of the first round would need all rows of Z. Train with a square matrix, such as the lower-triangular one "
            "with the same CᵀC if it has no negative entry"
        )
        raise DocumentError(
            [case.asked.problem("not-drawn", body.at("matrix", "file"), message, allowed="a square matrix")]
        )
    if release == 0:
        # Rounds with a schedule have no matrix, and the largest σ stands for all of them where there must be one.
        multiplier = number(body.noise.multiplier) if scheduled is None else float(scheduled.max())
        inverse = inverse_rows(body, built)
        coordinates: tuple[str | int, ...] = ("noise", phase)
    else:
        # The matrix correlates only the noise of the main release.
        multiplier, inverse = also[release - 1].multiplier, IdentityRows(built)
        coordinates = ("noise also", phase, release)
    deviation = multiplier * clip_norm * (1.0 + RAISED)
    deviations = None if scheduled is None else scheduled * clip_norm * (1.0 + RAISED)
    return Noise(number(body.training.iterations), deviation, inverse, key, coordinates, deviations)


@dataclass(frozen=True, slots=True)
class ParameterPart:
    """A range of a flattened parameter, and the shape of its noise."""

    start: int
    stop: int
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of elements of the range."""
        return self.stop - self.start


@dataclass(frozen=True, slots=True, repr=False)
class NoiseState:
    """The position of a stream: the nonces of all earlier rounds and, if the matrix needs them, the kept rows or running sums.

    The kept rows are noise, and must stay as secret as the key, because anyone who has them can subtract them. Store them only
    where you may store the key. Or store only the nonces, which are not secret, and call `NoiseStream.seek`.
    """

    kept: Mapping[str, NDArray[Any]]
    nonces: tuple[bytes, ...]

    @property
    def round(self) -> int:
        """The number of the next round, counted from 0."""
        return len(self.nonces)

    def __repr__(self) -> str:
        return f"NoiseState(round={self.round}, …)"


class DrawnRow:
    """A row of noise that a stream of doubles has drawn and not shown. `add_to` adds it to a sum."""

    def __init__(self, stream: NoiseStream, name: str, rows: _core.NoiseRows) -> None:
        """Take the newest row of a parameter of the stream."""
        self._stream, self._name, self._rows, self._after = stream, name, rows, stream.round

    def __repr__(self) -> str:
        return f"DrawnRow({self._name!r}, …)"

    def add_to(self, sums: NDArray[np.floating[Any]], step: float, divisor: float) -> None:
        """Replace each number s of a flat array of float32 or float64 by (s + its noise) / divisor.

        s + noise is computed in double precision, rounded to a multiple of `step`, which is a power of two, and then to the type
        of the array, in which it is divided. Raises `RunError` after the stream has drawn another row.
        """
        if self._stream.round != self._after:
            raise RunError(
                f"the noise of round {self._after - 1} is gone: the stream has drawn round {self._stream.round - 1}"
            )
        for start in range(0, len(sums), TOGETHER):
            part = sums[start : start + TOGETHER]
            self._rows.add(start, len(part), part, step, divisor)


class NoiseStream:
    """A stream of the rows of C⁻¹Z, where Z has N(0, (σ·clip norm)²) entries: `next` draws the row of `round`, counted from 0.

    Each number depends only on the key, the nonces, the parameter's name, the position in the flattened parameter, the round and
    the floating-point type. It does not depend on other parameters, parts, threads or processors, nor on whether the stream was
    restored. The rows are secret until they are added to a sum.
    """

    def __init__(self, noise: Noise, parts: Mapping[str, ParameterPart], dtype: np.dtype[Any]) -> None:
        """Make the stream at round 0; called by `Noise.stream`."""
        self._noise, self._inverse, self._parts, self._dtype = noise, noise.inverse, dict(parts), dtype
        self._nonces: list[bytes] = []
        #: Whether every parameter is at the round after the last nonce; false after an interruption.
        self._whole = True
        single, kept, decays = dtype.itemsize == 4, noise.inverse.kept, noise.inverse.decays
        self._rows = {
            name: _core.NoiseRows(part.start, part.size, single=single, kept=kept, decays=decays)
            for name, part in self._parts.items()
        }
        #: The keys of the rows of Z in the newest row, by parameter and round. Most of them are needed for the next row too.
        self._keys: dict[str, dict[int, RunKey]] = {name: {} for name in self._parts}

    @property
    def round(self) -> int:
        """The round whose noise `next` draws; equal to `Noise.rounds` after the last round."""
        return len(self._nonces)

    @property
    def nonces(self) -> tuple[bytes, ...]:
        """The nonces of all earlier rounds. With them and the key, the rows of these rounds can be drawn again."""
        return tuple(self._nonces)

    def next(self, nonce: bytes | None = None) -> dict[str, NDArray[Any]]:
        """Draw the noise of this round for every parameter, in its shape (a part is a vector), and advance by one round.

        A new nonce is drawn unless one is given. Give the nonce with which this round was drawn before in order to draw the same
        row again, or the part of it that belongs to another rank. A nonce must not be used for two sums.

        Raises `PlanExceededError` after the last round. After an interruption, call `seek` before you continue.
        """
        drawn = {name: np.empty(part.size, self._dtype) for name, part in self._parts.items()}
        self._advance(nonce, drawn)
        return {name: values.reshape(self._parts[name].shape) for name, values in drawn.items()}

    def draw(self, nonce: bytes) -> dict[str, DrawnRow]:
        """Draw the noise of this round as `next` does, for a stream of doubles, and keep it for sums to which it is added.

        The rows can be used until the next one is drawn.
        """
        self._advance(nonce, {})
        return {name: DrawnRow(self, name, rows) for name, rows in self._rows.items()}

    def _advance(self, nonce: bytes | None, out: Mapping[str, NDArray[Any]]) -> None:
        """Draw the noise of this round, and write it into the arrays of `out`."""
        self._needs_whole()
        number = self.round
        if number >= self._noise.rounds:
            raise PlanExceededError(
                f"the noise of all {self._noise.rounds} rounds has been drawn, and a further one is not certified"
            )
        nonce = new_nonce() if nonce is None else nonce
        check_nonces([nonce])
        row = self._inverse.row(number)
        self._whole = False
        for name in self._parts:
            known = self._keys[name]
            keys = {
                t: known.get(t) or self._noise.key(name, t, nonce if t == number else self._nonces[t])
                for t, _ in row.fresh
            }
            # The secret bytes are never stored in a variable, so that no traceback shows them: see `RunKey`.
            self._rows[name].next(
                [(keys[t].reveal(), t, weight * self._noise.deviation(t)) for t, weight in row.fresh],
                row.coefficients,
                out.get(name),
            )
            self._keys[name] = keys
        self._nonces.append(nonce)
        self._whole = True

    def seek(self, round: int, nonces: Sequence[bytes]) -> None:
        """Go to a round, given the nonces of the rounds before it; further nonces are ignored.

        This takes no time for matrices whose rows do not need earlier rows (`Noise.memory` then says that nothing is kept). For
        other matrices all rounds up to the target are drawn again, each at the cost of `next`, from round 0 if the stream is
        already past the target. Raises `DomainError` if there is no such round, or if there are too few nonces.
        """
        target = operator.index(round)
        if not 0 <= target <= self._noise.rounds:
            raise DomainError(f"the rounds are numbered from 0 to {self._noise.rounds - 1}: there is no round {target}")
        if len(nonces) < target:
            raise DomainError(
                f"{len(nonces)} nonces are given: the noise before round {target} needs {target}, one for each round"
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
            self._advance(nonce, {})

    def state(self) -> NoiseState:
        """Return what `restore` needs to continue from here. It is secret, and as large as what the stream keeps (`memory`)."""
        self._needs_whole()
        return NoiseState({name: self._kept(name) for name in self._rows if self._places}, self.nonces)

    def restore(self, state: NoiseState) -> None:
        """Continue where `state` was taken, from a stream with the same noise, parameters, parts and floating-point type.

        Raises `RunError` if the state is recognisably that of another stream, by its rounds, names, sizes or types; the stream is
        then unchanged.
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
        """Set the position of the stream to the round after these nonces, once the rows of every parameter are there."""
        self._nonces, self._keys, self._whole = nonces, {name: {} for name in self._parts}, True

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


def _parts_of(shapes: Mapping[str, tuple[int, ...]], parts: Mapping[str, slice] | None) -> dict[str, ParameterPart]:
    """Return the part of each parameter that is drawn. Raises `DomainError` for invalid shapes and ranges outside of them."""
    whole = {}
    for name, shape in shapes.items():
        dimensions = tuple(operator.index(size) for size in shape)
        if any(size < 0 for size in dimensions):
            raise DomainError(f"the shape of {name} is {dimensions}: sizes must not be negative")
        whole[name] = ParameterPart(0, math.prod(dimensions), dimensions)
    if parts is None:
        return whole
    unknown = [name for name in parts if name not in whole]
    if unknown:
        raise DomainError(
            f"there is a part of {unknown[0]!r}, which is not a parameter: {', '.join(whole) or 'there are none'}"
        )
    return {name: _part(name, whole[name].size, part) for name, part in parts.items()}


def _part(name: str, size: int, part: slice) -> ParameterPart:
    start = 0 if part.start is None else operator.index(part.start)
    stop = size if part.stop is None else operator.index(part.stop)
    if part.step not in (None, 1) or not 0 <= start <= stop <= size:
        raise DomainError(
            f"{part} is not a range of the {size} elements of {name}: 0 ≤ start ≤ stop ≤ {size} and step 1 are expected"
        )
    return ParameterPart(start, stop, (stop - start,))

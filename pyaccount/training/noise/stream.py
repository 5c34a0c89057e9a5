"""Rows of C⁻¹Z for named parameters, one round after the other."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pyaccount import _core
from pyaccount.errors import DomainError, PlanExceededError, RunError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pyaccount.training.key import RunKey
    from pyaccount.training.noise.noise import Noise


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
    """Where a stream is: the next round, and for matrices that need it the rows or sums that are kept, by parameter.

    The kept rows are noise, and must stay as secret as the key: whoever has them can subtract them. Keep them where the key may
    be kept, or keep the round alone and let `NoiseStream.seek` draw the rest again.
    """

    round: int
    kept: Mapping[str, NDArray[Any]]

    def __repr__(self) -> str:
        return f"NoiseState(round={self.round}, …)"


class NoiseStream:
    """The rows of C⁻¹Z, Z with N(0, σ²·clip²) entries: `next` draws that of `round`, numbered from 0.

    A number depends on the key, the parameter's name, its place in the flattened parameter, the round and the type of numbers
    alone: not on other parameters, parts, threads, processors, or on whether the stream was restored. What is drawn is secret
    until it is in a sum.
    """

    def __init__(self, noise: Noise, parts: Mapping[str, ParameterPart], dtype: np.dtype[Any]) -> None:
        """For `Noise.stream`."""
        self._inverse, self._scale, self._rounds = noise.inverse, noise.standard_deviation, noise.rounds
        self._parts, self._dtype = dict(parts), dtype
        self._round = 0
        #: Whether every parameter is at the same round.
        self._whole = True
        self._rows = {name: self._rows_of(noise.key(name), part) for name, part in self._parts.items()}

    @property
    def round(self) -> int:
        """The round whose noise `next` draws; that of the end, `Noise.rounds`, after the last one."""
        return self._round

    def next(self) -> dict[str, NDArray[Any]]:
        """The noise of this round for every parameter, in its shape (a part is a vector). The stream goes on by one round.

        Raises `PlanExceededError` after the last round. Interrupted, it has to `seek` its round.
        """
        self._needs_whole()
        if self._round >= self._rounds:
            raise PlanExceededError(
                f"the noise of all {self._rounds} rounds has been drawn, and a further one is not certified"
            )
        row = self._inverse.row(self._round)
        fresh = [(number, weight * self._scale) for number, weight in row.fresh]
        found = {}
        self._whole = False
        for name, part in self._parts.items():
            found[name] = np.empty(part.size, self._dtype)
            self._rows[name].next(fresh, row.coefficients, found[name])
        self._round += 1
        self._whole = True
        return {name: values.reshape(self._parts[name].shape) for name, values in found.items()}

    def seek(self, round: int) -> None:
        """Go to a round, by the key alone.

        At once for matrices whose rows need none of the rows before (`Noise.memory` says which: nothing is kept); else all rounds
        up to there are drawn again, from the beginning if the stream is beyond: round after round, at the cost of `next`.
        """
        target = operator.index(round)
        if not 0 <= target <= self._rounds:
            raise DomainError(f"the rounds are numbered from 0 to {self._rounds - 1}: there is no round {target}")
        if self._inverse.from_key_alone:
            self._round, self._whole = target, True
            return
        if target < self._round or not self._whole:
            self._whole = False
            for rows in self._rows.values():
                rows.clear()
            self._round, self._whole = 0, True
        while self._round < target:
            self.next()

    def state(self) -> NoiseState:
        """What `restore` needs to go on from here: small, or as large as what the matrix makes a stream keep. It is secret."""
        self._needs_whole()
        return NoiseState(self._round, {name: self._kept(name) for name in self._rows if self._places})

    def restore(self, state: NoiseState) -> None:
        """Go on where `state` was taken, by a stream of the same noise, parameters, parts and type of numbers.

        Raises `RunError` for the state of another one, as far as that can be told: by rounds, names and sizes. Then nothing has
        changed.
        """
        if not 0 <= state.round <= self._rounds:
            raise RunError(f"the state is of round {state.round}, and this noise has {self._rounds} rounds")
        expected = {name: (self._places, part.size) for name, part in self._parts.items() if self._places}
        kinds = {kept.dtype for kept in state.kept.values()}
        if {name: kept.shape for name, kept in state.kept.items()} != expected or not kinds <= {self._kept_type}:
            raise RunError(
                "the state is of other parameters, parts, matrices or types: restore that of this stream, or seek its round"
            )
        self._whole = False
        for name, kept in state.kept.items():
            for place in range(self._places):
                self._rows[name].restore(place, np.ascontiguousarray(kept[place]))
        self._round, self._whole = state.round, True

    def _rows_of(self, key: RunKey, part: ParameterPart) -> _core.NoiseRows:
        single, kept, decays = self._dtype.itemsize == 4, self._inverse.kept, self._inverse.decays
        return _core.NoiseRows(key.reveal(), part.start, part.size, single=single, kept=kept, decays=decays)

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
                f"the stream was interrupted while it drew round {self._round}: seek({self._round}) before going on"
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

"""One batch: which records take part in a round, as often as they were drawn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pyaccount.errors import RunError


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Batch:
    """The records of a round. Neither they nor their number are shown: both are secret.

    `indices` are 64-bit integers, ascending. A record that was drawn several times is there as often, and its clipped
    contribution counts as often in the sum. `padded_to` is the size that smaller batches may be padded to where larger ones are
    truncated, so that all batches look alike; None elsewhere.
    """

    indices: NDArray[np.int64]
    padded_to: int | None = None

    def __len__(self) -> int:
        return len(self.indices)

    def __repr__(self) -> str:
        return "Batch(…)"

    def micro_batches(self, size: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.bool_]]]:
        """The batch in parts of exactly `size` places each: indices, and a mask of those that are records.

        A place that is masked out has the index 0, so that it can be looked up; what comes of it must not be added. There is
        always at least one part: of an empty batch one without records, whose sum is 0 and gets its noise as any other.
        """
        if size < 1:
            raise RunError(f"a micro-batch has at least one place, not {size}")
        parts = max(1, -(-max(len(self), self.padded_to or 0) // size))
        padded = np.zeros(parts * size, dtype=np.int64)
        padded[: len(self)] = self.indices
        mask = np.arange(parts * size) < len(self)
        yield from zip(padded.reshape(parts, size), mask.reshape(parts, size), strict=True)

    def shard(self, rank: int, world: int) -> Batch:
        """The part of one of `world` ranks: every record is in one part, as often as in the batch.

        All parts are padded to one size, so that all ranks have equally many micro-batches.
        """
        if not 0 <= rank < world:
            raise RunError(f"there is no rank {rank} of {world}")
        each = -(-max(len(self), self.padded_to or 0) // world)
        return Batch(self.indices[rank::world], each)

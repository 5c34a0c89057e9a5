"""`Batch`: the records that take part in a round, each as often as it was drawn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pyaccount.errors import RunError


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Batch:
    """The records of a round. The repr shows neither the records nor their number, because both are secret.

    `indices` are 64-bit integers in ascending order. A record that was drawn several times occurs that many times, and its
    clipped contribution must be added that many times. `padded_to` is the size to which batches may be padded so that all look
    alike, if larger batches are truncated to it; otherwise None.
    """

    indices: NDArray[np.int64]
    padded_to: int | None = None

    def __len__(self) -> int:
        return len(self.indices)

    def __repr__(self) -> str:
        return "Batch(…)"

    def micro_batches(self, size: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.bool_]]]:
        """Yield the batch in micro-batches of exactly `size` entries: their indices, and a mask that is true for records.

        An entry that is masked out has index 0, so that it can be looked up, but its contribution must not be added. There is
        always at least one micro-batch: for an empty batch it has no records, and its sum of zeros gets noise like any other.
        """
        if size < 1:
            raise RunError(f"size = {size}: a micro-batch has at least one entry")
        parts = max(1, -(-max(len(self), self.padded_to or 0) // size))
        padded = np.zeros(parts * size, dtype=np.int64)
        padded[: len(self)] = self.indices
        mask = np.arange(parts * size) < len(self)
        yield from zip(padded.reshape(parts, size), mask.reshape(parts, size), strict=True)

    def shard(self, rank: int, world: int) -> Batch:
        """Return the shard of one of `world` ranks; together the shards contain every entry of the batch exactly once.

        All shards have the same `padded_to`, so that all ranks have the same number of micro-batches.
        """
        if not 0 <= rank < world:
            raise RunError(f"there is no rank {rank} among {world} ranks, which are numbered from 0")
        each = -(-max(len(self), self.padded_to or 0) // world)
        return Batch(self.indices[rank::world], each)

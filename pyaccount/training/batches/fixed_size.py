"""Batches of a fixed size, without replacement: memoryless, in O(batch)."""

from __future__ import annotations

from pyaccount.training.batches.base import Drawing, Records, RunBatches, indices


class FixedSizeBatches(RunBatches):
    """A uniformly random set of so many records in each round, each of them once."""

    def __init__(self, drawing: Drawing) -> None:
        """With the number of draws that was analysed."""
        super().__init__(drawing)
        self.most = self._size = drawing.body.batch_size()

    def _drawn(self, round: int) -> Records:
        return indices(self._streams.without_replacement(round, self.dataset_size, self._size))

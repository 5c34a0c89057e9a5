"""Batches drawn with replacement: memoryless, in O(batch)."""

from __future__ import annotations

from pyaccount.training.batches.base import Drawing, Records, RunBatches, indices


class WithReplacementBatches(RunBatches):
    """So many independent, uniform draws in each round; a record is there as often as it was drawn."""

    def __init__(self, drawing: Drawing) -> None:
        """With the number of draws that was analysed."""
        super().__init__(drawing)
        self.most = self._size = drawing.body.batch_size()

    def _drawn(self, round: int) -> Records:
        return indices(self._streams.with_replacement(round, self.dataset_size, self._size))

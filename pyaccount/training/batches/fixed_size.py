"""Batches of a fixed size, drawn without replacement; independent from round to round, in O(batch) time."""

from __future__ import annotations

from pyaccount.training.batches.base import Drawing, Records, RunBatches, indices


class FixedSizeBatches(RunBatches):
    """Batches that are uniformly random sets of a fixed number of different records."""

    def __init__(self, drawing: Drawing) -> None:
        """Take the batch size that was analysed."""
        super().__init__(drawing)
        self.most = self._most_drawn()

    def _drawn(self, round: int) -> Records:
        return indices(self._streams.without_replacement(round, self.dataset_size, self._body(round).batch_size()))

"""Batches drawn with replacement; independent from round to round, in O(batch) time."""

from __future__ import annotations

from pyaccount.training.batches.base import Drawing, Records, RunBatches, indices


class WithReplacementBatches(RunBatches):
    """Batches of a fixed number of independent, uniform draws; a record occurs as often as it was drawn."""

    def __init__(self, drawing: Drawing) -> None:
        """Take the number of draws that was analysed."""
        super().__init__(drawing)
        self.most = self._most_drawn()

    def _drawn(self, round: int) -> Records:
        return indices(self._streams.with_replacement(round, self.dataset_size, self._body(round).batch_size()))

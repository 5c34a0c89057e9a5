"""Poisson sampling: memoryless, in O(batch)."""

from __future__ import annotations

from pyaccount.training.batches.base import Drawing, Records, RunBatches, indices


class PoissonBatches(RunBatches):
    """Every record joins each draw of a round with one probability, independently.

    With several draws in a round a record is there as often as it was drawn. Of a truncated batch those that are kept are drawn
    for each round by itself.
    """

    def __init__(self, drawing: Drawing) -> None:
        """With the probability and the draws that were analysed."""
        super().__init__(drawing)
        self._probability = drawing.body.sampling_probability()
        self._draws = drawing.body.draws_per_iteration()
        if self._limit is None:
            self.most *= self._draws

    def _drawn(self, round: int) -> Records:
        return indices(self._streams.poisson(round, self.dataset_size, self._probability, self._draws))

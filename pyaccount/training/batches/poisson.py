"""Poisson sampling; independent from round to round, in O(batch) time."""

from __future__ import annotations

from pyaccount.training.batches.base import Drawing, Records, RunBatches, indices


class PoissonBatches(RunBatches):
    """Batches in which every record joins each draw of a round independently, with the sampling probability.

    If a round has several draws, a record occurs as often as it was drawn. If a batch is truncated, the records that are kept are
    drawn independently for each round.
    """

    def __init__(self, drawing: Drawing) -> None:
        """Take the probability (or its schedule) and the number of draws in a round that were analysed."""
        super().__init__(drawing)
        self._probability = None if drawing.body.rates_scheduled else drawing.body.sampling_probability()
        self._draws = drawing.body.draws_per_iteration()
        if self._limit is None:
            self.most *= self._draws

    def _drawn(self, round: int) -> Records:
        probability = self._probability
        if probability is None:
            probability = self._body(round).sampling_probability()
        return indices(self._streams.poisson(round, self.dataset_size, probability, self._draws))

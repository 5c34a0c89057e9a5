"""Batches that are drawn anew in every round: Poisson sampling, a fixed size with or without replacement, and MUST.

Rounds are independent, and each takes O(batch) time: of a subset (MUST) only the drawn elements are computed.
"""

from __future__ import annotations

from typing import ClassVar, cast

from pyaccount.document.samplers import MustOW, MustWO, MustWW
from pyaccount.plan.schedule_values import rates_of
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


class FixedSizeBatches(RunBatches):
    """Batches that are uniformly random sets of a fixed number of different records."""

    def __init__(self, drawing: Drawing) -> None:
        """Take the batch size that was analysed, or its schedule."""
        super().__init__(drawing)
        scheduled = rates_of(self._case, "expected_batch_size")
        self.most = self._stated.batch_size() if scheduled is None else round(float(scheduled.max()))

    def _drawn(self, round: int) -> Records:
        return indices(self._streams.without_replacement(round, self.dataset_size, self._body(round).batch_size()))


class WithReplacementBatches(FixedSizeBatches):
    """Batches of a fixed number of independent, uniform draws; a record occurs as often as it was drawn."""

    def _drawn(self, round: int) -> Records:
        return indices(self._streams.with_replacement(round, self.dataset_size, self._body(round).batch_size()))


class DrawsOfDrawsBatches(RunBatches):
    """MUST.WW: batches drawn with replacement from a subset that is drawn with replacement.

    A record occurs as often as it was drawn.
    """

    #: Whether all records of a subset are different.
    different: ClassVar[bool] = False

    def __init__(self, drawing: Drawing) -> None:
        """Take the sizes that were analysed. Raises `DocumentError` if rounds share a subset, which no analysis covers."""
        super().__init__(drawing)
        body = drawing.body
        sampler = cast("MustOW | MustWO | MustWW", body.sampler)
        if sampler.rounds_per_subset != 1:
            path = body.at("sampler", "rounds_per_subset")
            raise drawing.refused("no-valid-bound", path, "only a fresh subset for each round is analysed", "1")
        self.most = self._size = body.batch_size()
        self._subset = sampler.subset_size

    def _drawn(self, round: int) -> Records:
        draws = self._streams.two_stages(round, self.dataset_size, self._subset, self._size, different=self.different)
        return indices(draws)


class SubsetBatches(DrawsOfDrawsBatches):
    """MUST.OW: batches drawn with replacement from a subset that is drawn without replacement."""

    different: ClassVar[bool] = True


class SubsetOfDrawsBatches(DrawsOfDrawsBatches):
    """MUST.WO: batches drawn without replacement from a subset that is drawn with replacement.

    The subset consists of independent uniform draws, so such a batch has the distribution of `batch size` independent draws.
    """

    def _drawn(self, round: int) -> Records:
        return indices(self._streams.with_replacement(round, self.dataset_size, self._size))

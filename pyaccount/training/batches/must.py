"""MUST: a fresh subset for each round, and a batch drawn from it.

Rounds are independent, and each takes O(batch) time, because only the drawn elements of the subset are computed.
"""

from __future__ import annotations

from typing import ClassVar, cast

from pyaccount.document.samplers import MustOW, MustWO, MustWW
from pyaccount.training.batches.base import Drawing, Records, RunBatches, indices


class TwoStageBatches(RunBatches):
    """Batches of uniform draws, with replacement, from a subset; a record occurs as often as it was drawn."""

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


class SubsetBatches(TwoStageBatches):
    """MUST.OW: batches drawn with replacement from a subset that is drawn without replacement."""

    different: ClassVar[bool] = True


class DrawsOfDrawsBatches(TwoStageBatches):
    """MUST.WW: batches drawn with replacement from a subset that is drawn with replacement."""


class SubsetOfDrawsBatches(TwoStageBatches):
    """MUST.WO: batches drawn without replacement from a subset that is drawn with replacement.

    The subset consists of independent uniform draws, so such a batch has the distribution of `batch size` independent draws.
    """

    def _drawn(self, round: int) -> Records:
        return indices(self._streams.with_replacement(round, self.dataset_size, self._size))

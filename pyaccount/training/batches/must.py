"""MUST: a fresh subset for each round, and a batch from it. Memoryless, in O(batch): of the subset only what is drawn is made."""

from __future__ import annotations

from typing import ClassVar

from pyaccount.document import MustOW, MustWO, MustWW
from pyaccount.training.batches.base import Drawing, Records, RunBatches, indices


class TwoStageBatches(RunBatches):
    """So many uniform draws, with replacement, from a subset; a record is there as often as it was drawn."""

    #: Whether the records of a subset are different ones.
    different: ClassVar[bool] = False

    def __init__(self, drawing: Drawing) -> None:
        """With the sizes that were analysed. Raises `DocumentError` for rounds that share a subset, which no analysis covers."""
        super().__init__(drawing)
        body = drawing.body
        assert isinstance(body.sampler, MustOW | MustWO | MustWW)
        if body.sampler.rounds_per_subset != 1:
            path = body.at("sampler", "rounds_per_subset")
            raise drawing.refused("no-valid-bound", path, "only a fresh subset for each round is analysed", "1")
        self.most = self._size = body.batch_size()
        self._subset = body.sampler.subset_size

    def _drawn(self, round: int) -> Records:
        draws = self._streams.two_stages(round, self.dataset_size, self._subset, self._size, different=self.different)
        return indices(draws)


class SubsetBatches(TwoStageBatches):
    """MUST.OW: draws from a subset of different records."""

    different: ClassVar[bool] = True


class DrawsOfDrawsBatches(TwoStageBatches):
    """MUST.WW: draws from independent, uniform draws."""


class SubsetOfDrawsBatches(TwoStageBatches):
    """MUST.WO: some of independent, uniform draws, without replacement. So many independent draws are the same."""

    def _drawn(self, round: int) -> Records:
        return indices(self._streams.with_replacement(round, self.dataset_size, self._size))

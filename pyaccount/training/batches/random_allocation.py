"""Random allocation: every stretch of rounds is dealt by itself."""

from __future__ import annotations

from pyaccount import _core
from pyaccount.document.samplers import RandomAllocation
from pyaccount.training.batches.base import Drawing, Records, RunBatches, indices, listable


class RandomAllocationBatches(RunBatches):
    """In every stretch of t rounds each record takes part in k, chosen uniformly at random, every record by itself.

    A stretch is dealt when one of its rounds is asked for, in O(records · k) with 4 bytes for each; in it a round is O(batch).
    """

    def __init__(self, drawing: Drawing) -> None:
        """With the rounds of an allocation that were analysed."""
        super().__init__(drawing)
        sampler = drawing.body.sampler
        assert isinstance(sampler, RandomAllocation)
        self._length, self._taken = sampler.iterations_per_allocation, sampler.participations
        listable(self.dataset_size * self._taken, sampler.kind)
        self._dealt: tuple[int, _core.DealtRecords] | None = None

    def _drawn(self, round: int) -> Records:
        deal, slot = divmod(round, self._length)
        if self._dealt is None or self._dealt[0] != deal:
            self._dealt = deal, self._streams.dealt(deal, self.dataset_size, self._length, self._taken)
        return indices(self._dealt[1].slot(slot))

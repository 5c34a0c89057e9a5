"""Random allocation: in every group of t consecutive rounds, each record is allocated to k of them."""

from __future__ import annotations

from typing import cast

from pyaccount import _core
from pyaccount.document.samplers import RandomAllocation
from pyaccount.training.batches.base import Drawing, Records, RunBatches, indices, listable


class RandomAllocationBatches(RunBatches):
    """Batches in which each record joins k of every t consecutive rounds, chosen uniformly and independently for each record.

    An allocation is drawn when one of its t rounds is first asked for, in O(records · k) time, with 4 bytes for each of these
    participations. After that, each of its rounds takes O(batch) time.
    """

    def __init__(self, drawing: Drawing) -> None:
        """Take the numbers t of rounds and k of participations of an allocation that were analysed."""
        super().__init__(drawing)
        sampler = cast("RandomAllocation", drawing.body.sampler)
        self._length, self._taken = sampler.iterations_per_allocation, sampler.participations
        listable(self.dataset_size * self._taken, sampler.kind)
        self._dealt: tuple[int, _core.DealtRecords] | None = None

    def _drawn(self, round: int) -> Records:
        deal, slot = divmod(round, self._length)
        if self._dealt is None or self._dealt[0] != deal:
            self._dealt = deal, self._streams.dealt(deal, self.dataset_size, self._length, self._taken)
        return indices(self._dealt[1].slot(slot))

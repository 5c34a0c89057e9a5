"""Balls-in-bins sampling: all records are put into bins once, and the bins are used in turn."""

from __future__ import annotations

from pyaccount import _core
from pyaccount.forks import cached_property
from pyaccount.training.batches.base import Drawing, Records, RunBatches, indices, listable


class BallsInBinsBatches(RunBatches):
    """Batches from T bins: each record is in one bin, uniformly and independently, for the whole run; round i uses bin i mod T.

    If a bin has more records than a batch may have, the same records are kept whenever it is used, as analysed: the choice is
    made once for each bin. The bins need 4 bytes for each record. A round takes O(batch) time, in any order.
    """

    def __init__(self, drawing: Drawing) -> None:
        """Take the number of bins that was analysed."""
        super().__init__(drawing)
        self._bins = drawing.body.bins()
        listable(self.dataset_size, drawing.body.sampler.kind)

    @cached_property
    def _dealt(self) -> _core.DealtRecords:
        return self._streams.dealt(0, self.dataset_size, self._bins, 1)

    def _drawn(self, round: int) -> Records:
        return indices(self._dealt.slot(round % self._bins))

    def _kept_by(self, round: int) -> int:
        """Return the bin, so that the same records are kept whenever the bin is used."""
        return round % self._bins

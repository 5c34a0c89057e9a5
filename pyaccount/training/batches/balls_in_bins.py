"""Balls in bins: all records are dealt once, and the bins take turns."""

from __future__ import annotations

from pyaccount import _core
from pyaccount.forks import cached_property
from pyaccount.training.batches.base import Drawing, Records, RunBatches, indices, listable


class BallsInBinsBatches(RunBatches):
    """Every record is put in one of T bins, uniformly and by itself, for the whole run; round i is bin i mod T.

    Of a bin with more records than batches may have the same ones are kept whenever its turn comes, as analysed: the choice is
    made once for a bin. The bins have 4 bytes for each record; a round is O(batch), in any order.
    """

    def __init__(self, drawing: Drawing) -> None:
        """With the bins that were analysed."""
        super().__init__(drawing)
        self._bins = drawing.body.bins()
        listable(self.dataset_size, drawing.body.sampler.kind)

    @cached_property
    def _dealt(self) -> _core.DealtRecords:
        return self._streams.dealt(0, self.dataset_size, self._bins, 1)

    def _drawn(self, round: int) -> Records:
        return indices(self._dealt.slot(round % self._bins))

    def _kept_by(self, round: int) -> int:
        """The bin, whatever its turn."""
        return round % self._bins

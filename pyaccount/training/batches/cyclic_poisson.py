"""Cyclic Poisson sampling: Poisson sampling from parts that are used in turn; O(batch) time for a round, in any order."""

from __future__ import annotations

from typing import cast

import numpy as np

from pyaccount import _core
from pyaccount.document.samplers import CyclicPoisson
from pyaccount.forks import cached_property
from pyaccount.training.batches.base import Drawing, Records, RunBatches, indices, listable


class CyclicPoissonBatches(RunBatches):
    """Batches in which round i draws each record of part i mod b with the sampling probability.

    Random parts are drawn from the key, uniformly and independently for each record, as analysed. Fixed parts contain the records
    with the same index mod b, so that their sizes differ by at most one. Under add-remove this would be wrong, because removing a
    record would move all later ones to other parts; there fixed parts are drawn like random ones. Drawn parts need 4 bytes for
    each record.
    """

    def __init__(self, drawing: Drawing) -> None:
        """Take the parts and the probability that were analysed."""
        super().__init__(drawing)
        body = drawing.body
        sampler = cast("CyclicPoisson", body.sampler)
        self._parts, self._probability = body.separation() or 1, body.sampling_probability()
        self._random = sampler.phase == "random" or drawing.case.asked.privacy.adjacency == "add-remove"
        if self._random:
            listable(self.dataset_size + self._parts, sampler.kind)

    @cached_property
    def _dealt(self) -> _core.DealtRecords:
        return self._streams.dealt(0, self.dataset_size, self._parts, 1)

    def _drawn(self, round: int) -> Records:
        part = round % self._parts
        if self._random:
            return indices(self._dealt.sampled(self._streams, round, part, self._probability))
        size = len(range(part, self.dataset_size, self._parts))
        positions = indices(self._streams.poisson(round, size, self._probability, 1))
        return np.int64(part) + np.int64(self._parts) * positions

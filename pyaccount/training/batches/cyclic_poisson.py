"""Cyclic Poisson sampling: Poisson sampling from parts that take turns, in O(batch) and in any order."""

from __future__ import annotations

import numpy as np

from pyaccount import _core
from pyaccount.document import CyclicPoisson
from pyaccount.forks import cached_property
from pyaccount.training.batches.base import Drawing, Records, RunBatches, indices, listable


class CyclicPoissonBatches(RunBatches):
    """Round i draws from part i mod b, every record of it with the sampling probability.

    Random parts are drawn from the key, uniformly and every record by itself, as analysed. Fixed parts are those of index mod b,
    so that their sizes differ by one at most. Under add-remove that would not do, since a record that is not there moves those
    behind it to other parts: there fixed parts are drawn as random ones are. Drawn parts have 4 bytes for each record.
    """

    def __init__(self, drawing: Drawing) -> None:
        """With the parts and the probability that were analysed."""
        super().__init__(drawing)
        body = drawing.body
        assert isinstance(body.sampler, CyclicPoisson)
        self._parts, self._probability = body.separation() or 1, body.sampling_probability()
        self._random = body.sampler.phase == "random" or drawing.document.privacy.adjacency == "add-remove"
        if self._random:
            listable(self.dataset_size + self._parts, body.sampler.kind)

    @cached_property
    def _dealt(self) -> _core.DealtRecords:
        return self._streams.dealt(0, self.dataset_size, self._parts, 1)

    def _drawn(self, round: int) -> Records:
        part = round % self._parts
        if self._random:
            return indices(self._dealt.sampled(self._streams, round, part, self._probability))
        size = len(range(part, self.dataset_size, self._parts))
        places = indices(self._streams.poisson(round, size, self._probability, 1))
        return np.int64(part) + np.int64(self._parts) * places

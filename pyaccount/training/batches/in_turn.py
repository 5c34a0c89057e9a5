"""Batches of samplers that use the data set in turn.

Balls-in-bins puts all records into bins once; cyclic Poisson sampling draws from parts, in O(batch) time for a round, in any
order; random allocation puts each record into k of every t consecutive rounds; and without sampling the data set is used in its
order, batch by batch.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from pyaccount import _core
from pyaccount.document.samplers import CyclicPoisson, Deterministic, RandomAllocation
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


class InOrder(RunBatches):
    """Batches of B records in their order: ⌈N/B⌉ batches, of which the last may be smaller, and then from the start again.

    Nothing is drawn, and nothing is secret. With B = N every round is a full batch. Any other order that respects the document's
    `max_participations` and `min_separation` has the same guarantee.
    """

    def __init__(self, drawing: Drawing) -> None:
        """Take the batch size of the document.

        Raises `DocumentError` if the document states none, or if a record would participate more often, or sooner again, than was
        analysed.
        """
        super().__init__(drawing)
        body = drawing.body
        size, path = body.training.expected_batch_size, body.at("training", "expected_batch_size")
        if not isinstance(size, int | float):
            message = (
                "without sampling, batches follow the order of the records, and their size is not known: give "
                "expected_batch_size, the number of records in each batch"
            )
            raise drawing.refused("missing-key", path, message, f"{self.dataset_size} for full batches")
        if size != round(size):
            raise drawing.refused("fractional-batch", path, "a batch without sampling has a whole number of records")
        if drawing.case.asked.privacy.adjacency == "add-remove" and size < self.dataset_size:
            message = (
                "a record that is added or removed moves all later records, some of them to other batches, so more changes than "
                "was analysed"
            )
            where = ("privacy", "adjacency")
            raise drawing.refused("no-valid-bound", where, message, "zero-out or replace-one, or full batches")
        self.most = self._size = round(size)
        self._turns = -(-self.dataset_size // self._size)
        times, sampler = -(-self.rounds // self._turns), cast("Deterministic", body.sampler)
        if times > 1 and (sampler.min_separation or 1) > self._turns:
            message = f"in batches of {self._size:_} a record participates every {self._turns:_} rounds"
            place = body.at("sampler", "min_separation")
            raise drawing.refused("contradiction", place, message, f"at most {self._turns}")
        if sampler.max_participations is not None and times > sampler.max_participations:
            message = (
                f"in batches of {self._size:_} a record participates up to {times:_} times in {self.rounds:_} rounds"
            )
            place = body.at("sampler", "max_participations")
            raise drawing.refused("contradiction", place, message, f"at least {times}")

    def _drawn(self, round: int) -> Records:
        start = round % self._turns * self._size
        return np.arange(start, min(start + self._size, self.dataset_size), dtype=np.int64)

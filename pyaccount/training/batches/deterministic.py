"""Batches without sampling: the data set in its order, batch by batch."""

from __future__ import annotations

from typing import cast

import numpy as np

from pyaccount.document.samplers import Deterministic
from pyaccount.training.batches.base import Drawing, Records, RunBatches


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

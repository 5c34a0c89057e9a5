"""No sampling: the data set in its order, batch after batch."""

from __future__ import annotations

import numpy as np

from pyaccount.document import Deterministic
from pyaccount.training.batches.base import Drawing, Records, RunBatches


class InOrder(RunBatches):
    """The records in their order, dealt into ⌈N/B⌉ batches of B, of which the last may be smaller; then from the start again.

    Nothing is drawn, and nothing is secret. With B = N every round is a full batch. An order of your own that keeps to the
    document's `max_participations` and `min_separation` is as good.
    """

    def __init__(self, drawing: Drawing) -> None:
        """In batches of the size that the document gives.

        Raises `DocumentError` where it gives none, and where a record would come more often, or sooner, than was analysed.
        """
        super().__init__(drawing)
        body = drawing.body
        assert isinstance(body.sampler, Deterministic)
        size, path = body.training.expected_batch_size, body.at("training", "expected_batch_size")
        if not isinstance(size, int | float):
            message = (
                "none draws nothing, and there is no order to follow: give expected_batch_size, and the records come in theirs, "
                "so many in a round, again and again"
            )
            raise drawing.refused("missing-key", path, message, f"{self.dataset_size} for full batches")
        if size != round(size):
            raise drawing.refused("fractional-batch", path, "a batch in order has a whole number of records")
        if drawing.document.privacy.adjacency == "add-remove" and size < self.dataset_size:
            message = (
                "a record that is added or removed moves all later ones to other places, and with them to other batches: more "
                "changes than was analysed"
            )
            where = ("privacy", "adjacency")
            raise drawing.refused("no-valid-bound", where, message, "zero-out or replace-one, or full batches")
        self.most = self._size = round(size)
        self._turns = -(-self.dataset_size // self._size)
        times, sampler = -(-self.rounds // self._turns), body.sampler
        if times > 1 and (sampler.min_separation or 1) > self._turns:
            message = f"in batches of {self._size:_} a record comes every {self._turns:_} rounds"
            place = body.at("sampler", "min_separation")
            raise drawing.refused("contradiction", place, message, f"at most {self._turns}")
        if sampler.max_participations is not None and times > sampler.max_participations:
            message = f"in batches of {self._size:_} the records come {times:_} times in {self.rounds:_} rounds"
            place = body.at("sampler", "max_participations")
            raise drawing.refused("contradiction", place, message, f"at least {times}")

    def _drawn(self, round: int) -> Records:
        start = round % self._turns * self._size
        return np.arange(start, min(start + self._size, self.dataset_size), dtype=np.int64)

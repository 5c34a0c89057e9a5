"""The batches of a body that is run several times; the runs are independent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyaccount.errors import RunError
from pyaccount.training.batches.base import Batches

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyaccount.training.batches.batch import Batch


class Repeated(Batches):
    """The batches of `count` runs of a body, one run after the other. Each run has a key of its own."""

    def __init__(self, make: Callable[[int], Batches], count: int) -> None:
        """Take the number of runs, and `make`, which returns the batches of a run, given its number from 0."""
        self._make = make
        self._run, self._batches = 0, make(0)
        self._each = self._batches.rounds
        self.rounds = count * self._each
        self.dataset_size, self.most = self._batches.dataset_size, self._batches.most

    def batch(self, round: int) -> Batch:
        """Return the batch of a round, counted from 0 over all runs. Going to another run makes its batches anew."""
        if not 0 <= round < self.rounds:
            raise RunError(f"there is no round {round}: all runs together have {self.rounds} rounds, counted from 0")
        run, inside = divmod(round, self._each)
        if run != self._run:
            self._run, self._batches = run, self._make(run)
        return self._batches.batch(inside)

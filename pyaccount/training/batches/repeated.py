"""A body that is run several times, each time by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyaccount.errors import RunError
from pyaccount.training.batches.base import Batches

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyaccount.training.batches.batch import Batch


class Repeated(Batches):
    """The rounds of all runs, one run after the other. Each has a key of its own, and begins as the first one did."""

    def __init__(self, make: Callable[[int], Batches], count: int) -> None:
        """So many runs; `make` makes one, given its number."""
        self._make = make
        self._run, self._batches = 0, make(0)
        self._each = self._batches.rounds
        self.rounds = count * self._each
        self.dataset_size, self.most = self._batches.dataset_size, self._batches.most

    def batch(self, round: int) -> Batch:
        """Of the run that the round is in; going back to an earlier run begins it once more."""
        if not 0 <= round < self.rounds:
            raise RunError(f"there is no round {round}: the runs have {self.rounds} together, counted from 0")
        run, inside = divmod(round, self._each)
        if run != self._run:
            self._run, self._batches = run, self._make(run)
        return self._batches.batch(inside)

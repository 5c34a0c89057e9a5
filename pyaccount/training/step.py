"""One round of a run: its batch, and the release of its noisy sum."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from pyaccount.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyaccount.training.batches import Batch
    from pyaccount.training.run import TrainingRun
    from pyaccount.training.sums import Array, RoundSums


class Step:
    """The round that is next. It is counted by `release`, and by nothing else.

    An exception before that leaves the run where it was: the round, with the same batch, is still the next one.
    """

    def __init__(self, run: TrainingRun) -> None:
        self._run = run
        self._open = False
        self._released = False
        #: Which round this is, from 0.
        self.round = run.round
        #: The other noisy sums, once they are released.
        self.also: dict[str, dict[str, Array] | Array] = {}

    @property
    def batch(self) -> Batch:
        """Who takes part."""
        return self._run.batch(self.round)

    def release(self, sums: RoundSums, *, also: Mapping[str, RoundSums] | None = None) -> dict[str, Array] | Array:
        """The noisy mean of the round: (the sum of the clipped contributions + its row of C⁻¹Z) / the run's normaliser.

        `sums` is one array, or arrays by name, of the clipped contributions of this round's batch, zeros where that is empty: an
        empty batch is a round like any other. `also` has, by their names in the document, the other sums that are released of the
        batch (`noise.also`); `Step.also` then has them with their noise, not divided. The round is recorded, on the disk, before
        this returns. Raises `RunError` for a sum that is not finite or not of the shape of those before, and then nothing is
        counted; and for a second release.
        """
        if not self._open:
            raise RunError(f"round {self.round} is not open: `with run.step() as step:` opens it")
        if self._released:
            raise RunError(f"round {self.round} has released its sum: one batch has one release")
        found, self.also = self._run._release(self.round, sums, also or {})
        self._released = True
        return found

    def __enter__(self) -> Step:
        self._run._begin(self)
        self._open = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._open = False
        self._run._end()
        if kind is None and not self._released:
            raise RunError(
                f"round {self.round} ended without a release: an empty batch, or one that is not wanted, is a round like any "
                "other, and its sum, if of zeros, gets its noise; nothing was counted, and the round is still the next"
            )

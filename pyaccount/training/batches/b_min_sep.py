"""b-min-sep sampling, with a calendar of the rounds in which records are drawn; advancing by a round takes O(batch) time."""

from __future__ import annotations

from typing import cast

from pyaccount import _core
from pyaccount.document.samplers import BMinSep
from pyaccount.forks import cached_property
from pyaccount.training.batches.base import Drawing, Records, RunBatches, indices, listable


class BMinSepBatches(RunBatches):
    """Batches in which each available record joins with the sampling probability, and then skips the next b − 1 rounds.

    With a warm start, records are in their stationary state before the first round, as analysed (Dong & Ganesh 2026,
    arXiv:2602.09338, Algorithm 2); with a cold start all are available (Algorithm 1). A record that is left out of a truncated
    batch counts as drawn, and skips the same rounds as one that is kept.

    The calendar has 4 bytes for each record and round. It is made in O(records) time. If an earlier round is asked for, it is
    made anew, and all rounds up to that one are drawn again. The first draws of all records are made together, which takes about
    a second for ten million records.
    """

    def __init__(self, drawing: Drawing) -> None:
        """Take the probability, the separation and the start that were analysed."""
        super().__init__(drawing)
        body = drawing.body
        sampler = cast("BMinSep", body.sampler)
        listable(self.dataset_size, sampler.kind)
        self._separation, self._probability = body.separation() or 1, body.sampling_probability()
        self._warm = sampler.start == "warm"

    @cached_property
    def _calendar(self) -> _core.BatchCalendar:
        return self._streams.calendar(
            self.dataset_size, self.rounds, self._separation, self._probability, warm=self._warm
        )

    def _drawn(self, round: int) -> Records:
        return indices(self._calendar.batch(round))

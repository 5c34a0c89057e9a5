"""b-min-sep sampling: a calendar of who is drawn when, which goes forward in O(batch) for each round."""

from __future__ import annotations

from pyaccount import _core
from pyaccount.document import BMinSep
from pyaccount.forks import cached_property
from pyaccount.training.batches.base import Drawing, Records, RunBatches, indices, listable


class BMinSepBatches(RunBatches):
    """While available a record joins each round with the sampling probability, then it sits out the next b − 1 rounds.

    From a warm start records are in their stationary state before the first round, as analysed (Dong & Ganesh 2026,
    arXiv:2602.09338, Algorithm 2); from a cold one all are available (Algorithm 1). A record that is left out of a truncated
    batch counts as drawn, and sits out as one that is kept.

    The calendar has 4 bytes for each record and round. It is made in O(records), and again where an earlier round is asked for;
    then as much work follows as for the rounds before. The first draws of all records are made together, about a second for ten
    million.
    """

    def __init__(self, drawing: Drawing) -> None:
        """With the probability, the separation and the start that were analysed."""
        super().__init__(drawing)
        body = drawing.body
        assert isinstance(body.sampler, BMinSep)
        listable(self.dataset_size, body.sampler.kind)
        self._separation, self._probability = body.separation() or 1, body.sampling_probability()
        self._warm = body.sampler.start == "warm"

    @cached_property
    def _calendar(self) -> _core.BatchCalendar:
        return self._streams.calendar(
            self.dataset_size, self.rounds, self._separation, self._probability, warm=self._warm
        )

    def _drawn(self, round: int) -> Records:
        return indices(self._calendar.batch(round))

"""b-min-sep sampling, of records and of users, with a calendar of the rounds in which they are drawn.

Advancing by a round takes O(batch) time. After a record of a user has participated, all records of the user wait together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from pyaccount import _core
from pyaccount.document.samplers import BMinSep, UserBMinSep
from pyaccount.errors import RunError
from pyaccount.forks import cached_property
from pyaccount.training.batches.base import Drawing, Records, RunBatches, indices, listable

if TYPE_CHECKING:
    from pyaccount.document.tree import TrainingNode


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


class UserBatches(RunBatches):
    """The common part of both kinds of attribution: it checks the attribution against the document."""

    def __init__(self, drawing: Drawing) -> None:
        """Take the users of each record. Raises `RunError` if they contradict the document."""
        super().__init__(drawing)
        body, sampler = drawing.body, _sampler(drawing.body)
        listable(self._attribution.pairs, sampler.kind)
        most, beyond = sampler.records_per_user, int((self._attribution.degrees() > sampler.records_per_user).sum())
        if beyond:
            raise RunError(
                f"{beyond:_} users have more than {most:_} records, which is the document's records_per_user: drop some of their "
                "records, or certify a larger number"
            )
        self._probability, self._separation = body.sampling_probability(), body.separation() or 1
        self._warm = sampler.start == "warm"

    def _records(self, drawing: Drawing) -> int:
        """Return the number of records of the attribution. Raises `RunError` if the document or the data has another number."""
        assert drawing.attribution is not None
        self._attribution = drawing.attribution
        count, stated = self._attribution.records, drawing.body.training.dataset_size
        if stated is not None and count != stated:
            raise RunError(f"the attribution has {count:_} records, and the document's dataset_size is {stated:_}")
        if drawing.records is not None and count != drawing.records:
            raise RunError(f"the attribution has {count:_} records, and the data has {drawing.records:_}")
        return count


class SingleBatches(UserBatches):
    """Batches for users who share no records.

    While a user is available, each of the user's records joins with the sampling probability; once any has joined, all of them
    skip the next b − 1 rounds. This is the renewal process that is analysed. It is not Algorithm 3 of Dong & Ganesh 2026, in
    which a draw of a waiting record makes it wait longer. With a warm start, users begin in their stationary state, which depends
    on their numbers of records. There is a calendar of users, as for `b-min-sep`: a round takes O(batch) time, and the memory is
    8 bytes for each user and 4 for each record and round.
    """

    def __init__(self, drawing: Drawing) -> None:
        """Check the attribution. Raises `RunError` if records are shared."""
        super().__init__(drawing)
        shared = self._attribution.shared
        if shared:
            raise RunError(
                f"{shared:_} records belong to several users, and the document has attribution: single. Give each record one "
                "user, or certify attribution: shared"
            )

    @cached_property
    def _calendar(self) -> _core.BatchCalendar:
        starts, records = self._attribution.by_user()
        return self._streams.users_calendar(
            starts.astype(np.uint32),
            records.astype(np.uint32),
            self.rounds,
            self._separation,
            self._probability,
            warm=self._warm,
        )

    def _drawn(self, round: int) -> Records:
        return indices(self._calendar.batch(round))


class SharedBatches(UserBatches):
    """Batches for records that several users may share: Algorithm 3 of Dong & Ganesh 2026 (arXiv:2602.09338).

    Every record is drawn in every round with the sampling probability. It is left out if a record of one of its users was drawn
    in the b − 1 rounds before, whether or not that record was left out. So a batch depends on the draws of b rounds, which are
    independent: the next round takes O(records drawn) time, and a round out of order takes b times as long. With a warm start,
    b − 1 rounds are drawn before the first one, after which the process is exactly stationary. The only state is the round in
    which each user was last drawn, 8 bytes for each user.
    """

    def __init__(self, drawing: Drawing) -> None:
        """Check the document. Raises `DocumentError` unless draws make records wait; no bound is implemented for other rules."""
        super().__init__(drawing)
        if _sampler(drawing.body).waits_after != "draw":
            path = drawing.body.at("sampler", "waits_after")
            raise drawing.refused(
                "no-valid-bound", path, "for shared records only the rule that draws make them wait is analysed", "draw"
            )
        self._start = 1 - self._separation if self._warm else 0
        #: The round whose draws come next, the rounds in which users were last drawn, and the batch of the round before.
        self._next, self._last = self._start, self._nobody()
        self._batch: Records | None = None

    def _nobody(self) -> Records:
        return np.full(self._attribution.users, self._start - self._separation, dtype=np.int64)

    def _drawn(self, round: int) -> Records:
        if self._batch is not None and self._next == round + 1:
            return self._batch
        self._batch = None
        first = max(self._start, round - self._separation + 1)
        if not first <= self._next <= round:
            # Either the draws so far are too old to matter, or this round is before them: begin b − 1 rounds before this one.
            self._next, self._last = first, self._nobody()
        while True:
            # All records that are drawn, before any is left out; rounds before the first are negative.
            now, size = self._next, self.dataset_size
            drawn = self._streams.poisson(abs(now), size, self._probability, 1, before_first=now < 0)
            records = indices(drawn)
            users, ends = self._attribution.pairs_of(records)
            waiting = self._last[users] > now - self._separation
            # After an interruption during the next two statements, everything is drawn once more. Otherwise, draws of this round
            # that are in `_last` already would make the other draws of the same round wait.
            self._next = self._start - 1
            self._last[users] = now
            self._next = now + 1
            if self._next > round:
                # Every record has a user, so that no piece is empty.
                left_out = np.logical_or.reduceat(waiting, ends[:-1]) if len(records) else waiting
                self._batch = records[~left_out]
                return self._batch


def user_batches(drawing: Drawing) -> RunBatches:
    """Return the batches of a user sampler: `SharedBatches` if the document has `attribution: shared`, else `SingleBatches`."""
    return SharedBatches(drawing) if _sampler(drawing.body).attribution == "shared" else SingleBatches(drawing)


def _sampler(run: TrainingNode) -> UserBMinSep:
    return cast("UserBMinSep", run.sampler)

"""b-min-sep sampling of users: all of a user's records wait together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pyaccount import _core
from pyaccount.document import UserBMinSep
from pyaccount.errors import RunError
from pyaccount.forks import cached_property
from pyaccount.training.batches.base import Drawing, Records, RunBatches, indices, listable

if TYPE_CHECKING:
    from pyaccount.document import Body


class UserBatches(RunBatches):
    """What both kinds of attribution are checked for."""

    def __init__(self, drawing: Drawing) -> None:
        """With the users of each record. Raises `RunError` where they are not as the document says."""
        super().__init__(drawing)
        body, sampler = drawing.body, _sampler(drawing.body)
        listable(self._attribution.pairs, sampler.kind)
        most, beyond = sampler.records_per_user, int((self._attribution.degrees() > sampler.records_per_user).sum())
        if beyond:
            raise RunError(
                f"{beyond:_} users have more than {most:_} records, which is the document's records_per_user: drop records of "
                "theirs, or certify a larger number"
            )
        self._probability, self._separation = body.sampling_probability(), body.separation() or 1
        self._warm = sampler.start == "warm"

    def _records(self, drawing: Drawing) -> int:
        """As many records as somebody has, which is what the document says if it says it."""
        assert drawing.attribution is not None
        self._attribution = drawing.attribution
        found, stated = self._attribution.records, drawing.body.training.dataset_size
        if stated is not None and found != stated:
            raise RunError(f"the attribution has {found:_} records, and the document's dataset_size is {stated:_}")
        if drawing.records is not None and found != drawing.records:
            raise RunError(f"the attribution has {found:_} records, and the data {drawing.records:_}")
        return found


class SingleBatches(UserBatches):
    """Users who share no records: while a user is available each of the records joins with the sampling probability, and once any
    did all sit out the next b − 1 rounds.

    This is the renewal process that is analysed, not Algorithm 3 of Dong & Ganesh 2026, in which draws of a record that waits
    make it wait longer. From a warm start users are in their stationary state, by how many records each has. A calendar of
    users, as for `b-min-sep`: O(batch) for each round, 8 bytes for each user and 4 for each record and round.
    """

    def __init__(self, drawing: Drawing) -> None:
        """Raises `RunError` where records are shared."""
        super().__init__(drawing)
        shared = self._attribution.shared
        if shared:
            raise RunError(
                f"{shared:_} records belong to several users, and the document's attribution is single: give each one user, or "
                "certify attribution: shared"
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
    """Algorithm 3 of Dong & Ganesh 2026 (arXiv:2602.09338), for records that may be shared: every record is drawn in every round
    with the sampling probability, and left out where a record with one of its users was drawn in the b − 1 rounds before, whether
    that was left out or not.

    So a batch depends on b rounds' draws, which are memoryless: going forward is O(records drawn), and a round out of turn costs
    b times as much. From a warm start b − 1 rounds are drawn before the first one, after which the process is stationary,
    exactly. The only state is when each user was last drawn, 8 bytes.
    """

    def __init__(self, drawing: Drawing) -> None:
        """Raises `DocumentError` where records wait after participations only, for which no bound is implemented."""
        super().__init__(drawing)
        if _sampler(drawing.body).waits_after != "draw":
            path = drawing.body.at("sampler", "waits_after")
            raise drawing.refused(
                "no-valid-bound", path, "with shared records only draws that make them wait are analysed", "draw"
            )
        self._start = 1 - self._separation if self._warm else 0
        #: The round whose draws come next, when each user was last drawn, and the batch of the round before.
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
            # Earlier draws do not matter any more, or are to be drawn once more.
            self._next, self._last = first, self._nobody()
        while True:
            now, records = self._next, self._sampled(self._next)
            users, ends = self._attribution.pairs_of(records)
            waiting = self._last[users] > now - self._separation
            # Interrupted here, everything is drawn once more: half of this round's draws would keep out the other half.
            self._next = self._start - 1
            self._last[users] = now
            self._next = now + 1
            if self._next > round:
                self._batch = records[~_any(waiting, ends[:-1])]
                return self._batch

    def _sampled(self, round: int) -> Records:
        """Who is drawn, before anybody is left out."""
        before = round < 0
        return indices(self._streams.poisson(abs(round), self.dataset_size, self._probability, 1, before_first=before))


def _any(true: NDArray[np.bool_], pieces: Records) -> NDArray[np.bool_]:
    """Whether any is true in each of the pieces, none of which is empty."""
    return np.logical_or.reduceat(true, pieces) if len(pieces) else true


def user_batches(drawing: Drawing) -> RunBatches:
    """By whether records are shared."""
    return SharedBatches(drawing) if _sampler(drawing.body).attribution == "shared" else SingleBatches(drawing)


def _sampler(body: Body) -> UserBMinSep:
    assert isinstance(body.sampler, UserBMinSep)
    return body.sampler

"""A runner that stores every wave, and reads stored waves instead of computing them again."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Generator
from contextlib import closing
from typing import TYPE_CHECKING, Literal, TypeVar

from pyaccount.errors import StoreError
from pyaccount.execute.sampling.jobs import pieces
from pyaccount.store.database import KeptWave
from pyaccount.store.spelling import as_json, balanced_of, wave_of

if TYPE_CHECKING:
    from pyaccount.execute.sampling.jobs import Balanced, BalancedJob, Job, Remaining, Runner, Wave
    from pyaccount.store.database import Store

#: Seconds between two writes. A crash loses at most that much work, or the wave in progress if that takes longer.
INTERVAL = 0.5

#: Whether a run stops when its store fails, or continues without it.
Strictness = Literal["stop", "continue"]

Result = TypeVar("Result")


class Kept:
    """A runner that returns waves from a store; waves that are not stored come from another runner and are then stored.

    The sums do not depend on the store. If it fails, the run stops (`StoreError`) or continues without it.
    """

    def __init__(self, store: Store, run: str, runner: Runner, errors: Strictness) -> None:
        self._store, self._run, self._runner, self._errors = store, run, runner, errors
        self._pending: list[KeptWave] = []
        self._written = time.monotonic()
        self._failed = False

    def waves(self, job: Job, count: int, remaining: Remaining, first: int = 0) -> Generator[Wave, None, None]:
        """Yield the stored waves of a job, then the ones that are computed now."""
        fingerprint, done = job.fingerprint, 0
        expected = dict(pieces(job, count))
        for stored in self._found(fingerprint):
            if expected.get(stored.first) != stored.shards:
                break
            done += stored.shards
            if stored.first >= first:
                yield wave_of(stored.sums)
        if done >= count:
            return
        first = max(first, done)
        with closing(self._runner.waves(job, count, remaining, first)) as waves:
            try:
                for (start, shards), wave in zip(pieces(job, count, first), waves, strict=True):
                    self._keep(KeptWave(fingerprint, start, shards, as_json(wave)))
                    yield wave
            finally:
                self._write()

    def balanced(self, job: BalancedJob, count: int, remaining: Remaining) -> Balanced:
        """Return the stored sums, or compute them with the other runner and store them."""
        fingerprint = f"{job.fingerprint}/{count}"
        for stored in self._found(fingerprint):
            return balanced_of(stored.sums)
        sums = self._runner.balanced(job, count, remaining)
        self._keep(KeptWave(fingerprint, 0, count, as_json(sums)))
        return sums

    def _found(self, fingerprint: str) -> list[KeptWave]:
        nothing: list[KeptWave] = []
        return self._trusting(lambda: list(self._store.waves(self._run, fingerprint)), nothing)

    def _keep(self, wave: KeptWave) -> None:
        self._pending.append(wave)
        if time.monotonic() - self._written >= INTERVAL:
            self._write()

    def _write(self) -> None:
        pending, self._pending = self._pending, []
        if pending:
            self._trusting(lambda: self._store.keep(self._run, pending), None)
        self._written = time.monotonic()

    def _trusting(self, work: Callable[[], Result], instead: Result) -> Result:
        """Return the result of work on the store, or `instead` if the store has failed and the run is to continue."""
        if self._failed:
            return instead
        try:
            return work()
        except StoreError as error:
            if self._errors == "stop":
                raise
            self._failed = True
            warn(error)
            return instead


def warn(error: StoreError) -> None:
    """Warn that a store has failed and that the run continues without it."""
    warnings.warn(f"{error}; the run goes on without it", stacklevel=2)

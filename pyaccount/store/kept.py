"""A runner that keeps every wave, and takes what was kept before instead of running it."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Generator
from contextlib import closing
from typing import TYPE_CHECKING, Literal, TypeVar

from pyaccount.errors import StoreError
from pyaccount.execute.sampling.jobs import pieces
from pyaccount.store.database import KeptWave
from pyaccount.store.spelling import balanced_of, spelled, wave_of

if TYPE_CHECKING:
    from pyaccount.execute.sampling.jobs import Balanced, BalancedJob, Job, Remaining, Runner, Wave
    from pyaccount.store.database import Store

#: Seconds after which what was run is written: as much is lost by a crash, or the wave in flight if that takes longer.
INTERVAL = 0.5

#: Whether a run stops where its store fails, or goes on without it.
Strictness = Literal["stop", "continue"]

Result = TypeVar("Result")


class Kept:
    """Waves from a store, and where that has none, from another runner; these are kept.

    Whatever the store does, the sums are the same. Where it fails the run stops (`StoreError`), or goes on without it.
    """

    def __init__(self, store: Store, run: str, runner: Runner, errors: Strictness) -> None:
        self._store, self._run, self._runner, self._errors = store, run, runner, errors
        self._pending: list[KeptWave] = []
        self._written = time.monotonic()
        self._failed = False

    def waves(self, job: Job, count: int, remaining: Remaining, first: int = 0) -> Generator[Wave, None, None]:
        """Those kept, then those run now."""
        fingerprint, done = job.fingerprint, 0
        expected = dict(pieces(job, count))
        for one in self._found(fingerprint):
            if expected.get(one.first) != one.shards:
                break
            done += one.shards
            if one.first >= first:
                yield wave_of(one.sums)
        if done >= count:
            return
        first = max(first, done)
        with closing(self._runner.waves(job, count, remaining, first)) as waves:
            try:
                for (start, shards), wave in zip(pieces(job, count, first), waves, strict=True):
                    self._keep(KeptWave(fingerprint, start, shards, spelled(wave)))
                    yield wave
            finally:
                self._write()

    def balanced(self, job: BalancedJob, count: int, remaining: Remaining) -> Balanced:
        """The sums if they were kept, or else from the runner."""
        fingerprint = f"{job.fingerprint}/{count}"
        for one in self._found(fingerprint):
            return balanced_of(one.sums)
        found = self._runner.balanced(job, count, remaining)
        self._keep(KeptWave(fingerprint, 0, count, spelled(found)))
        return found

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
        """What the store gives; `instead` where it has failed, and the run is to go on."""
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
    """Say that a store has failed, where that is not to stop the run."""
    warnings.warn(f"{error}; the run goes on without it", stacklevel=2)

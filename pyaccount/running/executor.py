"""Where a run is computed: samples on the workers of an executor of `concurrent.futures`, and calls of asyncio in a thread.

An executor has processes of this machine, or a cluster. The results are those of this process, bit for bit: a wave is a function
of its job and its first shard, waves are yielded in order, and a worker with another core is refused. What is lost with a worker
is for the executor to repeat. A thread is stopped if the task that waits for it is cancelled.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import platform
import secrets
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Executor, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from pyaccount import _core
from pyaccount.certificate.provenance import identity
from pyaccount.errors import ClusterError, PyaccountError
from pyaccount.execute.sampling.jobs import Job, MixtureSampled, MixtureSampledJob, Remaining, Runner, Wave, pieces

#: The seconds between two checks whether the wait was cancelled, and the most waves that wait for a worker.
SLICE, MOST_AHEAD = 0.2, 1000


@dataclass(frozen=True, slots=True)
class OnExecutor:
    """Draws waves on the workers of an executor, in order. Another runner draws estimates, which take only a moment."""

    executor: Executor
    here: Runner

    def __post_init__(self) -> None:
        if not isinstance(self.executor, Executor):
            message = f"executor is a concurrent.futures.Executor, not {type(self.executor).__name__}"
            raise TypeError(f"{message}; for Dask it is client.get_executor()")

    def waves(self, job: Job, count: int, remaining: Remaining) -> Generator[Wave, None, None]:
        """Yield the waves in order. Some are in progress at any time; those not asked for are cancelled at the end.

        Raises `ClusterError` if the executor fails, and `KeyboardInterrupt` if this thread is cancelled.
        """
        # Dask answers equal calls once, and cancelling one would cancel all: so each series of calls has its own name.
        text, series, left = pickle.dumps(job), secrets.token_hex(8), pieces(job, count)
        under_way: deque[tuple[tuple[int, int], Future[Wave]]] = deque()

        def submitted(piece: tuple[int, int], name: str) -> tuple[tuple[int, int], Future[Wave]]:
            with _failing():
                return piece, self.executor.submit(_wave, identity(), text, *piece, remaining(), name)

        def waited() -> BaseException | None:
            while not wait([under_way[0][1]], SLICE).done:
                _core.Cancellation.check()
                remaining()
            return under_way[0][1].exception()

        taken = 0
        try:
            while True:
                # Many jobs end with their first waves, so the number of waves drawn ahead grows with the number used.
                while len(under_way) < min(MOST_AHEAD, taken + 2) and (piece := next(left, None)) is not None:
                    under_way.append(submitted(piece, series))
                if not under_way:
                    return
                with _failing():
                    error = waited()
                if error is not None and not isinstance(error, PyaccountError | MemoryError):
                    # A worker that is lost as its wave ends may take the result along: the wave is drawn once more.
                    under_way[0] = submitted(under_way[0][0], f"{series} once more")
                    with _failing():
                        waited()
                with _failing():
                    wave = under_way[0][1].result()
                under_way.popleft()
                yield wave
                taken += 1
        finally:
            for _, future in under_way:
                future.cancel()

    def balanced(self, job: MixtureSampledJob, count: int, remaining: Remaining) -> MixtureSampled:
        """Return what the other runner draws."""
        return self.here.balanced(job, count, remaining)


@contextmanager
def _failing() -> Iterator[None]:
    """Raise `ClusterError` for what the executor raises, and what a job raises (`PyaccountError`) as it is."""
    try:
        yield
    except (PyaccountError, MemoryError):
        raise
    except Exception as error:  # any exception of an executor: a broken pool, cancelled work, a lost connection
        raise ClusterError(f"the executor failed: {type(error).__name__}: {error}") from error


def _wave(
    sender: tuple[tuple[str, str], ...], text: bytes, first: int, count: int, time_limit: float | None, _series: str
) -> Wave:
    """Run shards of a job on one thread of this worker. Raises `ClusterError` if it has another core than the sender."""
    here = identity()
    if here != sender:
        asked = dict(sender)
        other = ", ".join(
            f"{name} {value} (here {asked.get(name)})" for name, value in here if value != asked.get(name)
        )
        worker = f"the worker {platform.node()}, process {os.getpid()},"
        raise ClusterError(f"{worker} has another core, whose results may differ from those of this one: {other}")
    return _job(text).run(first, count, 1, time_limit)


@lru_cache(maxsize=4)
def _job(text: bytes) -> Job:
    """Return the job of a pickle. A worker keeps it, so that it prepares the mechanism only once."""
    job: Job = pickle.loads(text)
    return job


Result = TypeVar("Result")


async def in_thread(work: Callable[[], Result]) -> Result:
    """Return the result of `work`; the event loop continues meanwhile.

    If the task is cancelled, its calls of the core end, and those of other tasks continue. The cancellation
    completes once the work has ended, within moments: no work continues in the background.
    """
    cancellation, begun = _core.Cancellation(), threading.Event()

    def cancellable() -> Result | KeyboardInterrupt:
        begun.set()
        try:
            with cancellation:
                _core.Cancellation.check()
                return work()
        except KeyboardInterrupt as error:
            # An event loop would end at a `KeyboardInterrupt` of a thread.
            return error

    running = asyncio.ensure_future(asyncio.to_thread(cancellable))
    try:
        outcome = await asyncio.shield(running)
    except asyncio.CancelledError:
        cancellation.cancel()
        if begun.is_set():
            await asyncio.wait([running])
        else:
            # A call that still waits for a thread never begins.
            running.cancel()
        raise
    if isinstance(outcome, KeyboardInterrupt):
        raise outcome
    return outcome

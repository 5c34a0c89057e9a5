"""Work of the core for asyncio: in a thread of its own, which is stopped where its task is cancelled."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

from pyaccount import _core

Result = TypeVar("Result")

#: Calls that are under way at the same time for each core; more wait for their turn.
_EACH = 4


async def in_thread(work: Callable[[], Result]) -> Result:
    """What `work` gives, while the event loop goes on. Where the task is cancelled, its calls of the core end, and no other's.

    It is cancelled once the work has ended, within moments: nothing goes on unseen.
    """
    cancellation = _core.Cancellation()

    def cancellable() -> Result:
        with cancellation:
            _core.Cancellation.check()
            return work()

    submitted = _pool().submit(_caught, cancellable)
    future = asyncio.wrap_future(submitted)
    try:
        outcome = await asyncio.shield(future)
    except asyncio.CancelledError:
        cancellation.cancel()
        # What waits for its turn never begins.
        if not submitted.cancel():
            await asyncio.wait([future])
        raise
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome[0]


def _caught(work: Callable[[], Result]) -> tuple[Result] | BaseException:
    """The result, or what was raised: an event loop would end at a `KeyboardInterrupt` of a thread."""
    try:
        return (work(),)
    except BaseException as error:  # it is raised again where it was asked for
        return error


def _pool() -> ThreadPoolExecutor:
    """The threads that wait for the core, shared by all calls of the process."""
    return _pool_of(os.getpid())


@cache
def _pool_of(_process: int) -> ThreadPoolExecutor:
    """Those of a process: one that was forked off has none of its parent's threads, though a pool counts on them there too."""
    return ThreadPoolExecutor(_EACH * (os.cpu_count() or 1), thread_name_prefix="pyaccount")

"""Run calls of the core from asyncio in a separate thread, which is stopped if its task is cancelled."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

from pyaccount import _core

Result = TypeVar("Result")

#: The number of simultaneous calls for each CPU core; further calls wait.
_EACH = 4


async def in_thread(work: Callable[[], Result]) -> Result:
    """Return the result of `work`; the event loop continues meanwhile.

    If the task is cancelled, its calls of the core end, and those of other tasks continue. The cancellation
    completes once the work has ended, within moments: no work continues in the background.
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
        # A call that is still waiting never begins.
        if not submitted.cancel():
            await asyncio.wait([future])
        raise
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome[0]


def _caught(work: Callable[[], Result]) -> tuple[Result] | BaseException:
    """Return the result or the exception: an event loop would end at a `KeyboardInterrupt` of a thread."""
    try:
        return (work(),)
    except BaseException as error:  # `in_thread` raises it in the caller
        return error


def _pool() -> ThreadPoolExecutor:
    """Return the threads that wait for the core; all calls of the process share them."""
    return _pool_of(os.getpid())


@cache
def _pool_of(_process: int) -> ThreadPoolExecutor:
    """Return the pool of a process.

    A forked process has none of its parent's threads, although its copy of the parent's pool still counts them.
    """
    return ThreadPoolExecutor(_EACH * (os.cpu_count() or 1), thread_name_prefix="pyaccount")

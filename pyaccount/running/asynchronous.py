"""Run calls of the core from asyncio in a separate thread, which is stopped if its task is cancelled."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

from pyaccount import _core

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

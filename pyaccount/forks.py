"""What a fork leaves behind, and what is done about it.

A process that is forked off has the memory of the one it comes from and a single thread, the one that forked. Whatever another
thread held at that moment, it holds for ever there. What the rooms keep for a process is made anew in the child, by the rooms
themselves; this module has what concerns them all: what is imported or built when it is first needed, and values that are
computed once. It takes nothing and knows no room.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from types import FrameType
from typing import Any, TypeVar

#: Seconds that a fork waits for other threads to finish what they import, and between two looks.
PATIENCE, LOOKING = 10.0, 0.005

Value = TypeVar("Value")

#: What the frames of imports call their file; and where this package is.
IMPORTING, PACKAGE = "<frozen importlib._bootstrap>", os.path.dirname(__file__) + os.sep  # noqa: PTH120 - as a frame has it

#: Locks that are held while the process forks.
_held: list[Any] = []


class cached_property(functools.cached_property[Value]):  # noqa: N801 - as the one that it is
    """`functools.cached_property` without the lock that it has in Python 3.11, one for all instances, held while it computes.

    Threads that ask at the same time compute it twice, as they do from Python 3.12 on.
    """

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        super().__init__(compute)
        self.lock = nullcontext()


def before() -> None:
    """Wait until no call in another thread imports or builds what it needs: in the child nobody would finish that.

    Python has a lock for each module that is being imported, and pydantic one for all models whose validators are built when they
    are first used. A child inherits them as they are, and whoever needs the same there waits for ever. Functions import and
    build what few of them need, so that the first of their calls may be at it when another thread forks.
    """
    own = threading.get_ident()
    if _imports(sys._getframe()):
        # This thread may be the one that is waited for.
        return
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        lock = getattr(sys.modules.get("pydantic.main"), "_rebuild_lock", None)
        if lock is None or lock.acquire(timeout=LOOKING):
            frames = sys._current_frames()
            if not any(_imports(frame, PACKAGE) for thread, frame in frames.items() if thread != own):
                _held.extend([] if lock is None else [lock])
                return
            if lock is not None:
                lock.release()
        time.sleep(LOOKING)


def after() -> None:
    """Go on, in either process."""
    while _held:
        _held.pop().release()


def _imports(frame: FrameType | None, caller: str = "") -> bool:
    """Whether a thread with this innermost frame is importing something for a function in a file whose name begins so."""
    importing = False
    while frame is not None:
        file = frame.f_code.co_filename
        if importing and file.startswith(caller) and file != IMPORTING:
            return True
        importing |= file == IMPORTING
        frame = frame.f_back
    return False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=before, after_in_parent=after, after_in_child=after)

"""Handle the effects of a fork.

A forked process has the memory of its parent and a single thread, the one that forked. A lock that another thread held
at that moment is held for ever in the child. Each package rebuilds in the child the objects that it keeps for a
process; this module handles the effects that concern all packages: imports and builds at first use, and values that are
computed once. It takes nothing and imports no package.
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

#: Seconds that a fork waits for other threads to finish their imports, and seconds between two checks.
PATIENCE, LOOKING = 10.0, 0.005

Value = TypeVar("Value")

#: The file name in the frames of imports, and the folder of this package.
IMPORTING, PACKAGE = "<frozen importlib._bootstrap>", os.path.dirname(__file__) + os.sep  # noqa: PTH120 - as a frame has it

#: Locks that are held while the process forks.
_held: list[Any] = []


class cached_property(functools.cached_property[Value]):  # noqa: N801 - as the one that it is
    """`functools.cached_property` without the lock of Python 3.11.

    All instances share that lock, and it is held while a value is computed. If several threads need the value at the
    same time, each computes it, as from Python 3.12 on.
    """

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        super().__init__(compute)
        self.lock = nullcontext()


def before() -> None:
    """Wait until no call in another thread imports or builds at first use.

    No thread of the child would finish that work. Python has a lock for each module that is being imported, and
    pydantic has one for all models whose validators are built at first use. A child inherits these locks in their
    current state, and a thread there that needs one waits for ever. Functions import and build at first use if few of
    them need the result, so a first call may be doing that when another thread forks.
    """
    own = threading.get_ident()
    if _imports(sys._getframe()):
        # Another thread may be waiting for this thread.
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
    """Release the locks, in either process."""
    while _held:
        _held.pop().release()


def _imports(frame: FrameType | None, caller: str = "") -> bool:
    """Return whether a thread with this innermost frame is importing for a file whose name begins with `caller`."""
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

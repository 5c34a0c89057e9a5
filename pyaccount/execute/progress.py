"""How long work tells where it is, by a callback, so that nothing here knows terminals; and how long it may still take."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal

#: What a time limit may leave out once a guarantee is known: the rest of the search for a smaller value, and what stands
#: beside it.
NotComputed = Literal["search", "lower ends", "profile", "curve", "group lemma"]

#: `report(stage, done, total)`: what is being done, steps finished, and steps in all if known.
Report = Callable[[str, int, int | None], None]


def silent(stage: str, done: int, total: int | None) -> None:
    """Report nothing."""


def left(deadline: float | None) -> float | None:
    """The seconds until a deadline, of `time.monotonic`: never quite 0, which the engine then says in its own words."""
    return None if deadline is None else max(deadline - time.monotonic(), 1e-9)

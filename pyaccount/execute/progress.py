"""How long work tells where it is: a callback, so that nothing here knows terminals."""

from __future__ import annotations

from collections.abc import Callable

#: `report(stage, done, total)`: what is being done, steps finished, and steps in all if known.
Report = Callable[[str, int, int | None], None]


def silent(stage: str, done: int, total: int | None) -> None:
    """Report nothing."""

"""A progress bar on standard error, shown only on a terminal and only for work that takes a while."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from pyaccount.execute.progress import Report

#: Work shorter than this many seconds shows nothing.
PATIENCE = 0.7


@contextmanager
def progress_bar() -> Iterator[Report]:
    """A `Report` that draws a bar with the current stage."""
    from rich.console import Console  # only for long work
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )
    task = bar.add_task("starting", total=None)
    began = time.monotonic()
    started = False

    def report(stage: str, done: int, total: int | None) -> None:
        nonlocal started
        if not console.is_terminal:
            return
        if not started and time.monotonic() - began > PATIENCE:
            bar.start()
            started = True
        bar.update(task, description=stage, completed=done, total=total)

    try:
        yield report
    finally:
        bar.stop()

"""Progress and time limits of long work.

Progress is reported by a callback, so that nothing here knows terminals. An error at a time limit states the stage that
was reached and what was known by then.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Literal

from pyaccount import _core
from pyaccount.document.document import Document
from pyaccount.errors import TIME_IS_UP, LimitError, TimeLimit, path_text
from pyaccount.reading.nodes import place_of
from pyaccount.reading.overrides import is_override

#: What a time limit may leave out once a guarantee is known: the rest of the search for a smaller value, and parts of
#: the certificate that the guarantee does not need.
NotComputed = Literal["search", "lower ends", "profile", "curve", "composed bound", "group lemma", "records"]

#: `report(stage, done, total)`: the current work, the number of finished steps, and the number of all steps if known.
Report = Callable[[str, int, int | None], None]


def silent(stage: str, done: int, total: int | None) -> None:
    """Report nothing."""


def left(deadline: float | None) -> float | None:
    """Return the seconds until a deadline of `time.monotonic`, or 1e-9 if it has passed, so that the engine raises."""
    return None if deadline is None else max(deadline - time.monotonic(), 1e-9)


class Stage:
    """A `Report` that remembers the current stage and passes each report on."""

    def __init__(self, report: Report | None) -> None:
        self._report = report or silent
        self.now = ""

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        """Remember the stage, and pass the report on."""
        self.now = stage
        self._report(stage, done, total)


def limit_of(document: Document, given: float | None, set_by: str) -> TimeLimit | None:
    """Return the time limit of a run, with where it was set: the one given by `set_by`, or else the document's."""
    if given is not None:
        return TimeLimit(given, set_by)
    path = ("accounting", "time_limit")
    stated = document.accounting.time_limit
    if stated is None:
        return None
    place = place_of(document.root, path)
    if place.file is None:
        return TimeLimit(stated, path_text(path))
    where = ":".join(str(part) for part in (place.file, place.line, place.column) if part is not None)
    # The name of an override states what it sets.
    return TimeLimit(stated, where if is_override(place) else f"{path_text(path)} ({where})")


@contextmanager
def limited(limit: TimeLimit | None, stage: Stage, since: float | None = None) -> Iterator[float | None]:
    """Limit work to a time from `since` on, or else from now on, both of `time.monotonic`. Yields the deadline.

    A `LimitError` gets the stage and the time limit. Of nested limits it gets the outermost.
    """
    deadline = None if limit is None else (time.monotonic() if since is None else since) + limit.seconds
    try:
        with _core.Deadline(left(deadline)):
            yield deadline
    except LimitError as error:
        error.stage = error.stage or stage.now
        if error.message == TIME_IS_UP:
            error.limit = limit
        raise


@contextmanager
def during(stage: str) -> Iterator[None]:
    """Record this stage in a `LimitError` that names none."""
    try:
        yield
    except LimitError as error:
        error.stage = error.stage or stage
        raise


@contextmanager
def knowing(known: Callable[[], Iterable[str]]) -> Iterator[None]:
    """Add to a `LimitError` what was known when it was raised."""
    try:
        yield
    except LimitError as error:
        error.known = (*known(), *error.known)
        raise


#: The bar appears only for work that takes longer than this many seconds.
PATIENCE = 0.7


@contextmanager
def progress_bar() -> Iterator[Report]:
    """Yield a `Report` that draws a bar with the current stage on stderr, if that is a terminal."""
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


def reported(progress: bool) -> AbstractContextManager[Report | None]:
    """Return a progress bar on standard error, or nothing."""
    return progress_bar() if progress else nullcontext()

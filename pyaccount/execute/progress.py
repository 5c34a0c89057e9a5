"""How long work tells where it is, by a callback, so that nothing here knows terminals; how long it may still take, and what
it says when that is over.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

from pyaccount import _core
from pyaccount.document.nodes import place_of
from pyaccount.document.overrides import is_override
from pyaccount.errors import TIME_IS_UP, LimitError, TimeLimit, path_text

if TYPE_CHECKING:
    from pyaccount.document.document import Document

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


class Stage:
    """A `Report` that remembers what is being done, whoever else is told."""

    def __init__(self, report: Report | None) -> None:
        self._report = report or silent
        self.now = ""

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        """Remember, and pass on."""
        self.now = stage
        self._report(stage, done, total)


def limit_of(document: Document, given: float | None, set_by: str) -> TimeLimit | None:
    """The time limit of a run: the one given by `set_by`, or else the document's, with the place where that is set."""
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
    # An override says by itself what it sets.
    return TimeLimit(stated, where if is_override(place) else f"{path_text(path)} ({where})")


@contextmanager
def limited(limit: TimeLimit | None, stage: Stage, since: float | None = None) -> Iterator[float | None]:
    """Work that ends at a time limit, which counts from now on, or `since` then. Gives its deadline, both of `time.monotonic`.

    What stops the work says at which stage, and which time limit it was: the outermost one, of which others are parts.
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
    """Let what stops the work say at which stage, unless it does."""
    try:
        yield
    except LimitError as error:
        error.stage = error.stage or stage
        raise


@contextmanager
def knowing(known: Callable[[], Iterable[str]]) -> Iterator[None]:
    """Let what stops the work say what was known by then."""
    try:
        yield
    except LimitError as error:
        error.known = (*known(), *error.known)
        raise


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

"""The options of a run: threads, time limit, progress report, seed, and the runner that draws samples."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyaccount.document.document import Document
from pyaccount.execute.progress import Report, Stage, left, limit_of, limited, silent

if TYPE_CHECKING:
    from pyaccount.execute.sampling.jobs import Runner


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options of a run. No option changes whether a bound holds."""

    #: The number of threads of this process; 0 means one for each core. It never changes an answer.
    threads: int = 0
    #: The time limit in seconds, counted from `since`. If it is None, `begun` sets the document's own limit.
    time_limit: float | None = None
    #: The name under which users set `time_limit`, for the message at the limit.
    limited_by: str = "time_limit="
    #: The value of `time.monotonic` from which the limit counts; None means the start of the work.
    since: float | None = None
    report: Report = silent
    #: The seed of all samples. A seed in the document takes precedence; without either, a new one is drawn.
    seed: int | None = None
    #: Runs the jobs that are drawn for the certificate (tests, profiles, estimates), instead of the threads of this process.
    runner: Runner | None = None

    @property
    def remaining(self) -> float | None:
        """The seconds until the time limit, or None without a limit."""
        if self.time_limit is None or self.since is None:
            return self.time_limit
        return left(self.since + self.time_limit)

    @contextmanager
    def begun(self, document: Document) -> Iterator[RunOptions]:
        """Begin work on a document: its time limit counts from now, unless it counts already.

        Yields the options for the parts of the work. A `LimitError` names the outermost limit and the last stage
        reported.
        """
        stage, limit = Stage(self.report), limit_of(document, self.time_limit, self.limited_by)
        with limited(limit, stage, self.since) as deadline:
            if limit is None or deadline is None:
                yield replace(self, report=stage)
            else:
                yield replace(self, report=stage, time_limit=limit.seconds, since=deadline - limit.seconds)

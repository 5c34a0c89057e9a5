"""The functions that workers run, if their core computes the same numbers as the sender's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyaccount.certificate.identity import identity
from pyaccount.errors import ClusterError
from pyaccount.execute.sampling.jobs import Job, Wave

CoreIdentity = tuple[tuple[str, str], ...]


def admitted(sender: CoreIdentity, work: Callable[..., Any], *arguments: Any) -> Any:
    """Return `work(*arguments)`. Raises `ClusterError` on a worker with another core."""
    _admit(sender)
    return work(*arguments)


def wave(sender: CoreIdentity, job: Job, first: int, count: int, time_limit: float | None) -> Wave:
    """Run shards of a job on the threads of the worker, which all its tasks share."""
    _admit(sender)
    return job.run(first, count, threads(), time_limit)


def same(job: Job) -> Job:
    """Return the job. A worker keeps this result, so that the job is sent and prepared only once."""
    return job


def threads() -> int:
    """Return the number of threads of the worker that runs this."""
    from distributed import get_worker  # an extra

    return int(get_worker().state.nthreads)


def refusal_words(worker: str, found: CoreIdentity, asked: CoreIdentity) -> str:
    """Return in words why a worker is refused."""
    other = ", ".join(
        f"{name} {value} (here {dict(asked).get(name)})" for name, value in found if (name, value) not in asked
    )
    return f"the worker {worker} has another core, whose results may differ from those of this one: {other}"


def _admit(sender: CoreIdentity) -> None:
    if identity() != sender:
        from distributed import get_worker  # an extra

        raise ClusterError(refusal_words(get_worker().address, identity(), sender))

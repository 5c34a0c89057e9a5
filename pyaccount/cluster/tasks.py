"""What workers do: whatever they are sent, if their core gives what the sender's does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyaccount.certificate.identity import identity
from pyaccount.errors import ClusterError
from pyaccount.execute.sampling.jobs import Job, Wave

CoreIdentity = tuple[tuple[str, str], ...]


def admitted(sender: CoreIdentity, work: Callable[..., Any], *arguments: Any) -> Any:
    """`work(*arguments)`. Raises `ClusterError` on a worker with another core."""
    _admit(sender)
    return work(*arguments)


def wave(sender: CoreIdentity, job: Job, first: int, count: int, time_limit: float | None) -> Wave:
    """Shards of a job, on the threads of the worker: all that run at the same time share them."""
    _admit(sender)
    return job.run(first, count, threads(), time_limit)


def same(job: Job) -> Job:
    """The job: it is sent once to a worker, which keeps what the core makes of it as long as it is drawn from."""
    return job


def threads() -> int:
    """The threads of the worker that this is."""
    from distributed import get_worker  # an extra

    return int(get_worker().state.nthreads)


def refusal(worker: str, found: CoreIdentity, asked: CoreIdentity) -> str:
    """Why a worker is refused, in words."""
    other = ", ".join(
        f"{name} {value} (here {dict(asked).get(name)})" for name, value in found if (name, value) not in asked
    )
    return f"the worker {worker} has another core, whose sums need not be these: {other}"


def _admit(sender: CoreIdentity) -> None:
    if identity() != sender:
        from distributed import get_worker  # an extra

        raise ClusterError(refusal(get_worker().address, identity(), sender))

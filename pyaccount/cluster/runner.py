"""A runner that lets the workers of a cluster draw its waves."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from pyaccount.certificate.identity import identity
from pyaccount.cluster import tasks
from pyaccount.cluster.waiting import cancel, result_of, threads_of_workers
from pyaccount.execute.sampling.jobs import pieces

if TYPE_CHECKING:
    from distributed import Client, Future

    from pyaccount.cluster.scheduler import Connection
    from pyaccount.execute.sampling.jobs import Balanced, BalancedJob, Job, Remaining, Runner, Wave

#: Waves in progress: for each thread of the workers, and in addition. No thread waits for its next wave, and few waves
#: are drawn in vain.
AHEAD, BEYOND = 2, 2
#: The states of work that can no longer be used.
GONE = ("cancelled", "error", "lost")


@dataclass(frozen=True, slots=True)
class Distributed:
    """Draws waves on the workers of a cluster, in order. Another runner draws estimates, which take only a moment."""

    connection: Connection
    here: Runner

    def waves(self, job: Job, count: int, remaining: Remaining, first: int = 0) -> Generator[Wave, None, None]:
        """Yield the waves in order. Some are in progress at any time; those not asked for are cancelled at the end."""
        connection = self.connection
        shared: Future | None = None
        under_way: deque[tuple[tuple[int, int], Future | None]] = deque()
        left = pieces(job, count, first)

        def send(start: int, shards: int, client: Client) -> Future:
            nonlocal shared
            if shared is None or shared.client is not client or shared.status in GONE:
                # The result of a function is recomputed if the workers that hold it die; scattered data would be lost.
                shared = client.submit(tasks.same, job, pure=False)
            return client.submit(tasks.wave, identity(), shared, start, shards, remaining(), pure=False)

        def ahead(start: int, shards: int) -> Future | None:
            client = connection.client(remaining)
            try:
                return send(start, shards, client)
            except Exception:  # of a client that was closed just now
                if connection.holds(client):
                    raise
                return None

        most, taken = AHEAD * threads_of_workers(connection, remaining) + BEYOND, 0
        try:
            while True:
                # Many jobs end with their first waves, so the number of waves drawn ahead grows with the number used.
                while len(under_way) < min(most, taken + 2) and (piece := next(left, None)) is not None:
                    under_way.append((piece, ahead(*piece)))
                if not under_way:
                    return
                piece, future = under_way.popleft()
                yield result_of(connection, partial(send, *piece), future, remaining)
                taken += 1
        finally:
            cancel([future for future in (*(future for _, future in under_way), shared) if future is not None])

    def balanced(self, job: BalancedJob, count: int, remaining: Remaining) -> Balanced:
        """Return what the other runner draws."""
        return self.here.balanced(job, count, remaining)

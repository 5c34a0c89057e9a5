"""A connection to a scheduler of Dask, which is replaced if it is lost."""

from __future__ import annotations

import asyncio
import json
import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pyaccount import _core
from pyaccount.errors import ClusterError

if TYPE_CHECKING:
    from distributed import Client
    from distributed.security import Security

#: The seconds after which a scheduler that does not answer is given up.
ANSWER = 10.0
#: Seconds: until a lost scheduler is given up; of one try to find it, at most; and between two tries.
PATIENCE, TRY, PAUSE = 120.0, 2.0, 0.2

#: The message for a client whose own thread is not in this process.
FORKED = (
    "this client of Dask was opened in another process, from which this process was forked. The client's thread exists "
    "only there, so that nothing would ever answer. Open a client in this process, or give the address of the scheduler"
)


class Connection:
    """A client of a scheduler, replaced by another client if it loses its connection. Several threads may use it.

    Dask's clients look for a lost scheduler on their own, under the name they had. If the scheduler learns only then
    that the first connection has ended, it confuses the two: it closes the new connection, or forgets it, and work
    waits for ever. So a client that has lost its connection gets no more work, even if it finds the scheduler.
    """

    def __init__(self, client: Client) -> None:
        self._process = os.getpid()
        self._current = (client, client.scheduler_comm)
        self._address, self._security = client.scheduler.address, client.security
        self._opened: list[Client] = []
        # The lock is held by the one thread that looks for the scheduler; the time of the loss; how often it was given
        # up.
        self._lock, self._lost, self._refusals = threading.Lock(), math.inf, 0

    def holds(self, client: Client) -> bool:
        """Return whether this client is in use and has kept its connection."""
        current, link = self._current
        return client is current and client.status == "running" and client.scheduler_comm is link and not link.closed()

    def client(self, look: Callable[[], object] = lambda: None) -> Client:
        """Return the client in use. `look` is called repeatedly while the scheduler does not answer, and may raise.

        Raises `ClusterError` if it has not answered for `PATIENCE` seconds; after that, each call (or several that wait
        together) tries once more. Raises `KeyboardInterrupt` if this thread is cancelled.
        """
        if os.getpid() != self._process:
            raise ClusterError(FORKED)
        refusals = self._refusals
        while not self.holds(self._current[0]):
            _core.Cancellation.check()
            look()
            if self._lock.acquire(timeout=PAUSE):
                try:
                    self._look_for_scheduler()
                finally:
                    self._lock.release()
            elif self._refusals != refusals:
                raise ClusterError("the connection to the scheduler was lost")
        return self._current[0]

    def _look_for_scheduler(self) -> None:
        if self.holds(self._current[0]):
            # Another thread has found the scheduler.
            return
        self._lost = min(self._lost, time.monotonic())
        try:
            client = connected(self._address, self._security, TRY)
        except Exception as error:  # any exception of Dask about what answers there
            if time.monotonic() - self._lost > PATIENCE:
                self._refusals += 1
                raise ClusterError(f"the connection to the scheduler was lost: {error}") from error
            time.sleep(PAUSE)
            return
        self._opened.append(client)
        self._current, self._lost = (client, client.scheduler_comm), math.inf

    def close(self) -> None:
        """Close the clients that were opened here (not the first one), if this is the process that opened them."""
        if os.getpid() != self._process:
            return
        with self._lock:
            for client in self._opened:
                close(client)


def connected(address: str, security: Security | None = None, answer: float | None = None) -> Client:
    """Return a client of the scheduler at an address, which has `answer` seconds (by default `ANSWER`) to answer.

    Raises `ClusterError`, and any exception of Dask about what answers at that address.
    """
    from distributed import Client  # an extra
    from distributed.security import Security
    from distributed.utils import LoopRunner

    security = security or Security()
    LoopRunner(asynchronous=False).run_sync(_answers, address, security, ANSWER if answer is None else answer)
    return Client(address, security=security, timeout=ANSWER, set_as_default=False)


@contextmanager
def closed(client: Client) -> Iterator[Client]:
    """Close the client at the end, even if it has lost its connection."""
    try:
        yield client
    finally:
        close(client)


def close(client: Client) -> None:
    """Close a client, even if it has lost its connection."""
    try:
        client.close()
    except Exception:  # raised by the search for its scheduler
        # Without this it would be closed a second time, and raise a second time, when it is collected.
        client.status = "closed"


def address_of(where: str) -> str:
    """Return the address of a scheduler: `where` itself, or the address in that scheduler file."""
    if not where.endswith(".json"):
        return where
    if not Path(where).is_file():
        raise ClusterError("there is no such scheduler file")
    return str(json.loads(Path(where).read_bytes())["address"])


async def _answers(address: str, security: Security, answer: float) -> None:
    """Raise if no scheduler connects within `answer` seconds, or does not identify itself within as many again.

    This is checked before a client is made. A client that cannot connect closes itself when it is collected, under a
    lock that Dask's clients share, and it deadlocks if that happens while another client starts.
    """
    from distributed.core import connect, send_recv  # an extra

    try:
        # Dask's own time limit ends with the connection, but a peer that accepts the connection may never reply.
        async with asyncio.timeout(2.0 * answer):
            comm = await connect(address, timeout=answer, **security.get_connection_args("client"))
            try:
                made = await send_recv(comm, op="identity", close=True)
            finally:
                comm.abort()
    except TimeoutError as error:
        raise ClusterError("a program accepts the connection but does not reply") from error
    if made["type"] != "Scheduler":
        raise ClusterError(f"a {made['type']} answers there, not a scheduler")

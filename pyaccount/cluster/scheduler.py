"""A connection to a scheduler of Dask, which is made anew where it was lost."""

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

#: Seconds until a scheduler that does not answer is given up.
ANSWER = 10.0
#: Seconds until a scheduler that was lost is given up; that a try to find it again takes at most; and between two tries.
PATIENCE, TRY, PAUSE = 120.0, 2.0, 0.2

#: What is said of a client whose own thread is not in this process.
FORKED = (
    "this client of Dask was opened by another process, from which this one was forked: its thread did not come along, so that "
    "nothing would ever answer. Open a client in this process, or give the address of the scheduler"
)


class Connection:
    """A client of a scheduler, and another one where that has lost its connection. It can be used by several threads.

    Dask's clients look for their scheduler by themselves, under the name they had. A scheduler that learns only then that the
    first connection has ended takes the second for it: it closes it, or forgets it and work waits for ever. So a client that
    has lost its connection, found again or not, gets no more work.
    """

    def __init__(self, client: Client) -> None:
        self._process = os.getpid()
        self._current = (client, client.scheduler_comm)
        self._address, self._security = client.scheduler.address, client.security
        self._opened: list[Client] = []
        # Held by the one thread that looks for the scheduler; when that was lost, and how often it was given up.
        self._lock, self._lost, self._refusals = threading.Lock(), math.inf, 0

    def holds(self, client: Client) -> bool:
        """Whether it is the one in use, and has had its connection ever since."""
        current, link = self._current
        return client is current and client.status == "running" and client.scheduler_comm is link and not link.closed()

    def client(self, look: Callable[[], object] = lambda: None) -> Client:
        """The one in use. `look` is called every moment while the scheduler does not answer, and may raise.

        Raises `ClusterError` where it has not answered for `PATIENCE` seconds, after which it is asked once more for each call,
        or for several that wait together; `KeyboardInterrupt` where this thread is cancelled.
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
            # Another thread has found it.
            return
        self._lost = min(self._lost, time.monotonic())
        try:
            client = connected(self._address, self._security, TRY)
        except Exception as error:  # whatever Dask makes of what answers there
            if time.monotonic() - self._lost > PATIENCE:
                self._refusals += 1
                raise ClusterError(f"the connection to the scheduler was lost: {error}") from error
            time.sleep(PAUSE)
            return
        self._opened.append(client)
        self._current, self._lost = (client, client.scheduler_comm), math.inf

    def close(self) -> None:
        """Close what was opened here, which the first client was not. It belongs to the process that opened it."""
        if os.getpid() != self._process:
            return
        with self._lock:
            for client in self._opened:
                close(client)


def connected(address: str, security: Security | None = None, answer: float | None = None) -> Client:
    """A client of the scheduler at an address, which has `answer` seconds (`ANSWER`) to answer.

    Raises `ClusterError`, and whatever Dask makes of what answers there.
    """
    from distributed import Client  # an extra
    from distributed.security import Security
    from distributed.utils import LoopRunner

    security = security or Security()
    LoopRunner(asynchronous=False).run_sync(_answers, address, security, ANSWER if answer is None else answer)
    return Client(address, security=security, timeout=ANSWER, set_as_default=False)


@contextmanager
def closed(client: Client) -> Iterator[Client]:
    """Closed at the end, whatever became of its connection."""
    try:
        yield client
    finally:
        close(client)


def close(client: Client) -> None:
    """Close a client, whatever became of its connection."""
    try:
        client.close()
    except Exception:  # what looking for its scheduler raised
        # Or it would be closed again, and raise again, when it is collected.
        client.status = "closed"


def address_of(where: str) -> str:
    """Of a scheduler: as given, or as its file says."""
    if not where.endswith(".json"):
        return where
    if not Path(where).is_file():
        raise ClusterError("there is no such scheduler file")
    return str(json.loads(Path(where).read_bytes())["address"])


async def _answers(address: str, security: Security, answer: float) -> None:
    """Raise where no scheduler answers within so many seconds, and as many again to say that it is one.

    It is asked before a client is made: one that cannot connect closes itself when it is collected, under a lock that Dask's
    clients share, and waits for itself for ever if that happens while another one starts.
    """
    from distributed.core import connect, send_recv  # an extra

    try:
        # Dask's own limit of time ends with the connection, and whatever listens there may say nothing.
        async with asyncio.timeout(2.0 * answer):
            comm = await connect(address, timeout=answer, **security.get_connection_args("client"))
            try:
                made = await send_recv(comm, op="identity", close=True)
            finally:
                comm.abort()
    except TimeoutError as error:
        raise ClusterError("what listens there says nothing") from error
    if made["type"] != "Scheduler":
        raise ClusterError(f"this is a {made['type']}")

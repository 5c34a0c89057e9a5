"""Waiting for what workers do, through the deaths of workers and lost connections."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, wait
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pyaccount import _core
from pyaccount.cluster.scheduler import PAUSE
from pyaccount.errors import ClusterError, PyaccountError

if TYPE_CHECKING:
    from distributed import Client, Future

    from pyaccount.cluster.scheduler import Connection

#: Seconds between two looks at whether somebody cancelled.
SLICE = 0.2
#: How often one piece of work is sent again, whatever became of it.
ATTEMPTS = 20


def result_of(
    connection: Connection,
    send: Callable[[Client], Future],
    future: Future | None = None,
    look: Callable[[], object] = lambda: None,
) -> Any:
    """The result of a piece of work, which is sent again where it was lost.

    `send` sends it by a client that has its connection. Work is lost with the connection, and by workers that die of something
    else; work that kills its workers is given up. `look` is called every moment, and may raise. Raises what the work raises,
    `ClusterError`, and `KeyboardInterrupt` where this thread is cancelled; then the work is cancelled too.
    """
    from distributed import KilledWorker  # an extra
    from distributed.comm import CommClosedError

    lost: BaseException | None = None
    for _ in range(ATTEMPTS):
        client = connection.client(look) if future is None else future.client
        try:
            future = send(client) if future is None else future
            return _waited(connection, future, look)
        except PyaccountError:
            raise
        except ModuleNotFoundError as error:
            raise ClusterError(f"a worker has no pyaccount that it can use: {error}") from error
        except Exception as error:
            work_was_lost = isinstance(error, CancelledError | CommClosedError | KilledWorker | ConnectionError)
            if connection.holds(client) and not work_was_lost:
                raise
            lost, future = error, None
    raise ClusterError(f"work was lost {ATTEMPTS} times: {lost}") from lost


def threads_of_workers(connection: Connection, look: Callable[[], object] = lambda: None) -> int:
    """Return how many threads the workers have, now. `look` is called every moment while a lost scheduler is looked for.

    Raises `ClusterError`, and what `look` raises.
    """
    lost: Exception | None = None
    for _ in range(ATTEMPTS):
        try:
            return sum(connection.client(look).nthreads().values())
        except PyaccountError:
            raise
        except Exception as error:  # whatever Dask makes of a scheduler that is gone, or of a client that is closed
            lost = error
            time.sleep(PAUSE)
    raise ClusterError(f"the scheduler does not say which workers there are: {lost}") from lost


def _waited(connection: Connection, future: Future, look: Callable[[], object]) -> Any:
    async def arriving() -> Any:
        return await future

    result = None
    try:
        while True:
            _core.Cancellation.check()
            look()
            if not connection.holds(future.client):
                raise ConnectionError("the connection to the scheduler was lost")
            # In Dask's own thread, and never cut short: a client whose request for a result is cancelled before it is sent gets
            # no result any more.
            result = result or asyncio.run_coroutine_threadsafe(arriving(), future.client.loop.asyncio_loop)
            if wait([result], SLICE).done:
                try:
                    arrived = result.result()
                except asyncio.CancelledError as error:
                    # What asyncio makes of work that raises `CancelledError` itself.
                    raise CancelledError(*error.args) from error
                # What Dask waits with refers to it until it is collected, and workers would keep the result as long.
                future.release()
                return arrived
    except BaseException:
        cancel([future])
        raise


def cancel(futures: list[Future]) -> None:
    """Let go of work, whether it has ended or not."""
    # A client that is closed has let go of it, and one that is being closed may never answer.
    for client in {future.client for future in futures if future.client.status in ("running", "connecting")}:
        with suppress(Exception):
            client.cancel([future for future in futures if future.client is client], force=True)

"""Wait for the results of workers; work is repeated if workers die or connections are lost."""

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

#: The seconds between two checks whether the wait was cancelled.
SLICE = 0.2
#: How often one piece of work is sent before it is given up.
ATTEMPTS = 20


def result_of(
    connection: Connection,
    send: Callable[[Client], Future],
    future: Future | None = None,
    look: Callable[[], object] = lambda: None,
) -> Any:
    """Return the result of a piece of work, which is sent again if it was lost.

    `send` sends it through a client that has its connection. Work is lost with the connection, or if its worker dies of
    another cause; work that kills its workers is given up. `look` is called repeatedly and may raise. Raises what the
    work raises, `ClusterError`, and `KeyboardInterrupt` if this thread is cancelled; the work is then cancelled too.
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
            raise ClusterError(f"a worker has no usable installation of pyaccount: {error}") from error
        except Exception as error:
            work_was_lost = isinstance(error, CancelledError | CommClosedError | KilledWorker | ConnectionError)
            if connection.holds(client) and not work_was_lost:
                raise
            lost, future = error, None
    raise ClusterError(f"work was lost {ATTEMPTS} times: {lost}") from lost


def threads_of_workers(connection: Connection, look: Callable[[], object] = lambda: None) -> int:
    """Return how many threads the workers have now. `look` is called repeatedly while a lost scheduler is sought.

    Raises `ClusterError`, and what `look` raises.
    """
    lost: Exception | None = None
    for _ in range(ATTEMPTS):
        try:
            return sum(connection.client(look).nthreads().values())
        except PyaccountError:
            raise
        except Exception as error:  # any exception of Dask about a scheduler that is gone or a client that is closed
            lost = error
            time.sleep(PAUSE)
    raise ClusterError(f"the scheduler does not report its workers: {lost}") from lost


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
            # This runs in Dask's own thread and is never cut short: a client whose request for a result is cancelled
            # before it is sent never gets that result.
            result = result or asyncio.run_coroutine_threadsafe(arriving(), future.client.loop.asyncio_loop)
            if wait([result], SLICE).done:
                try:
                    arrived = result.result()
                except asyncio.CancelledError as error:
                    # asyncio raises its own exception for work that raises `CancelledError` itself.
                    raise CancelledError(*error.args) from error
                # Dask's waiting task refers to the future until it is collected, and workers would keep the result
                # until then.
                future.release()
                return arrived
    except BaseException:
        cancel([future])
        raise


def cancel(futures: list[Future]) -> None:
    """Release work, whether it has ended or not."""
    # A closed client has released its work already, and a client that is being closed may never answer.
    for client in {future.client for future in futures if future.client.status in ("running", "connecting")}:
        with suppress(Exception):
            client.cancel([future for future in futures if future.client is client], force=True)

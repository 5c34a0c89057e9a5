"""Waiting for what workers do, through the deaths of workers and lost connections."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pyaccount import _core
from pyaccount.errors import ClusterError, PyaccountError

if TYPE_CHECKING:
    from distributed import Client, Future

    from pyaccount.cluster.scheduler import Connection

#: Seconds between two looks at whether somebody cancelled.
SLICE = 0.2
#: Seconds that a result takes at most to come here, and to be made once more where its worker has died. A client of Dask whose
#: request for a result is cancelled before it is sent gets no result any more, so it is asked for what there is, and given time.
FETCH = 10.0
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
    from distributed import KilledWorker  # noqa: PLC0415 - an extra
    from distributed.client import FutureCancelledError  # noqa: PLC0415
    from distributed.comm import CommClosedError  # noqa: PLC0415

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
            work_was_lost = isinstance(error, FutureCancelledError | CommClosedError | KilledWorker | ConnectionError)
            if connection.holds(client) and not work_was_lost:
                raise
            lost, future = error, None
    raise ClusterError(f"work was lost {ATTEMPTS} times: {lost}") from lost


def _waited(connection: Connection, future: Future, look: Callable[[], object]) -> Any:
    ended = threading.Event()
    future.add_done_callback(lambda _: ended.set())
    try:
        while True:
            _core.Cancellation.check()
            look()
            if ended.wait(SLICE):
                try:
                    result = future.result(timeout=FETCH)
                except TimeoutError:
                    # One of the work's own, perhaps.
                    if future.status == "error":
                        raise future.exception() from None
                else:
                    # What Dask waits with refers to it until it is collected, and workers would keep the result as long.
                    future.release()
                    return result
            if not connection.holds(future.client):
                raise ConnectionError("the connection to the scheduler was lost")
    except BaseException:
        cancel([future])
        raise


def cancel(futures: list[Future]) -> None:
    """Let go of work, whether it has ended or not."""
    for client in {future.client for future in futures}:
        with suppress(Exception):  # a client that was closed has let go of it
            client.cancel([future for future in futures if future.client is client], force=True)

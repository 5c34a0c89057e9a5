"""Waiting for what workers do, through the deaths of workers and lost connections."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyaccount import _core
from pyaccount.errors import ClusterError, PyaccountError

if TYPE_CHECKING:
    from distributed import Client, Future

#: Seconds between two looks at whether somebody cancelled.
SLICE = 0.2
#: How often one piece of work is sent again, whatever became of it; and seconds until a lost scheduler is given up.
ATTEMPTS, PATIENCE = 20, 120.0


def result_of(
    client: Client,
    send: Callable[[], Future],
    future: Future | None = None,
    look: Callable[[], object] = lambda: None,
) -> Any:
    """The result of a piece of work, which is sent again where it was lost.

    Work is lost with the connection to the scheduler, and by workers that die of something else; work that kills its workers is
    given up. `look` is called every moment, and may raise. Raises what the work raises, `ClusterError`, and `KeyboardInterrupt`
    where this thread is cancelled; then the work is cancelled too.
    """
    from distributed import KilledWorker  # noqa: PLC0415 - an extra
    from distributed.client import FutureCancelledError  # noqa: PLC0415
    from distributed.comm import CommClosedError  # noqa: PLC0415

    lost: BaseException | None = None
    for _ in range(ATTEMPTS):
        try:
            future = send() if future is None else future
            return _waited(future, look)
        except PyaccountError:
            raise
        except (FutureCancelledError, CommClosedError, KilledWorker, ConnectionError) as error:
            lost, future = error, None
            _reconnected(client, error, look)
        except ModuleNotFoundError as error:
            raise ClusterError(f"a worker has no pyaccount that it can use: {error}") from error
    raise ClusterError(f"work was lost {ATTEMPTS} times: {lost}") from lost


def _waited(future: Future, look: Callable[[], object]) -> Any:
    try:
        while True:
            _core.Cancellation.check()
            look()
            try:
                result = future.result(timeout=SLICE)
            except TimeoutError:
                # One of the work's own, perhaps, or the work ended just now.
                if future.status == "error":
                    raise future.exception() from None
            else:
                # What Dask waits with refers to it until it is collected, and workers would keep the result as long.
                future.release()
                return result
    except BaseException:
        future.cancel(force=True)
        raise


def _reconnected(client: Client, error: BaseException, look: Callable[[], object]) -> None:
    """Wait until the client has its scheduler again, which it looks for by itself."""
    began = time.monotonic()
    while client.status != "running":
        if client.status == "closed" or time.monotonic() - began > PATIENCE:
            raise ClusterError(f"the connection to the scheduler was lost: {error}") from error
        _core.Cancellation.check()
        look()
        time.sleep(SLICE)

"""Open the cluster of Dask that `--cluster` names."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pyaccount.errors import ClusterError, MissingExtraError

if TYPE_CHECKING:
    from concurrent.futures import Executor

#: The seconds after which a scheduler that does not answer is given up.
ANSWER = 10.0


@contextmanager
def executor_at(where: str | None) -> Iterator[Executor | None]:
    """Open an executor on the cluster of Dask with this address or scheduler file, or yield `None` if there is none.

    Raises `ClusterError` if no scheduler answers, and `MissingExtraError` without Dask.
    """
    if where is None:
        yield None
        return
    try:
        from distributed import Client  # an extra
    except ImportError as error:
        raise MissingExtraError.of("distributed", "a cluster of Dask needs it") from error
    try:
        address = where if not where.endswith(".json") else str(json.loads(Path(where).read_bytes())["address"])
        asyncio.run(_check_scheduler(address))
        client = Client(address, timeout=ANSWER, set_as_default=False)
    except Exception as error:  # any content of a file, and any exception of Dask about what answers at an address
        raise ClusterError(f"{where}: no scheduler of Dask answers: {str(error) or type(error).__name__}") from error
    with client:
        yield client.get_executor()


async def _check_scheduler(address: str) -> None:
    """Raise if no scheduler answers. A client would wait for a peer that accepts a connection and says nothing.

    A client that cannot connect may also wait for itself when it is collected.
    """
    from distributed.core import connect, send_recv  # an extra
    from distributed.security import Security

    async with asyncio.timeout(2.0 * ANSWER):
        comm = await connect(address, timeout=ANSWER, **Security().get_connection_args("client"))
        try:
            made = await send_recv(comm, op="identity", close=True)
        finally:
            comm.abort()
    if made["type"] != "Scheduler":
        raise ClusterError(f"a {made['type']} answers there, not a scheduler")

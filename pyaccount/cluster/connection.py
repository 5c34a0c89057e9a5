"""Connect to a cluster, and check its workers before any work is sent."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

from pyaccount.certificate.identity import identity
from pyaccount.cluster.runner import Distributed
from pyaccount.cluster.scheduler import ANSWER, FORKED, Connection, address_of, closed, connected
from pyaccount.cluster.tasks import admitted, refusal_words
from pyaccount.cluster.waiting import result_of, threads_of_workers
from pyaccount.errors import ClusterError, MissingExtraError

if TYPE_CHECKING:
    from distributed import Client

    from pyaccount.execute.sampling.jobs import Runner

#: The seconds after which a cluster without workers is given up.
WORKERS = 60.0

_LOCAL = re.compile(r"local:(?P<workers>[0-9]{1,4})(?::(?P<memory>[0-9.]+ ?[kKMGT]?i?B))?")

Result = TypeVar("Result")


class Cluster:
    """Workers of Dask whose cores compute the same numbers as this one. Several threads may use it."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def threads(self) -> int:
        """Return how many threads the workers have now. Raises `ClusterError`."""
        return threads_of_workers(self.connection)

    def runner(self, here: Runner) -> Runner:
        """Return a runner that draws waves on the workers and estimates `here`."""
        return Distributed(self.connection, here)

    def call(self, work: Callable[..., Result], *arguments: Any) -> Result:
        """Return `work(*arguments)`, computed by a worker. `work` is a function of a module; arguments can be pickled.

        Raises what `work` raises, and `ClusterError`.
        """
        result: Result = result_of(
            self.connection, lambda client: client.submit(admitted, identity(), work, *arguments, pure=False)
        )
        return result


@contextmanager
def open_cluster(where: Any) -> Iterator[Cluster]:
    """Open a cluster for this context. What is opened here is closed at its end; a client that was given stays open.

    `where` is the address of a scheduler (`tcp://10.0.0.1:8786`), the name of a scheduler file (`scheduler.json`),
    `local:4` for workers on this machine with one thread each (`local:4:2GB` limits the memory of each), or a
    `distributed.Client`. Raises `ClusterError` if there is no scheduler or no worker, or if a worker has another core;
    `MissingExtraError` without Dask.
    """
    if isinstance(where, Cluster):
        yield where
        return
    try:
        from distributed import Client  # an extra
    except ImportError as error:
        raise MissingExtraError.of("distributed", "a cluster of Dask needs it") from error
    if not isinstance(where, str | Client):
        raise TypeError(f"a cluster is an address, local:N or a distributed.Client, not {type(where).__name__}")
    with _client(where) if isinstance(where, str) else nullcontext(where) as client:
        _check(client)
        with closing(Connection(client)) as connection:
            yield Cluster(connection)


@contextmanager
def _client(where: str) -> Iterator[Client]:
    from distributed import Client, LocalCluster  # an extra

    local = _LOCAL.fullmatch(where)
    if (where == "local" or where.startswith("local:")) and (local is None or int(local["workers"]) < 1):
        raise ClusterError(
            f"{where}: write local:4 for four workers on this machine, or local:4:2GB to limit their memory too"
        )
    if local is not None:
        cluster = LocalCluster(
            n_workers=int(local["workers"]),
            threads_per_worker=1,
            memory_limit=local["memory"] or "auto",
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
            # Ctrl-C reaches every process of a terminal; the caller handles it and ends the workers.
            preload=["import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"],
        )
        with cluster, closed(Client(cluster, set_as_default=False)) as client:
            yield client
        return
    try:
        client = connected(address_of(where))
    except Exception as error:  # any content of a file, and any exception of Dask about what answers at an address
        raise ClusterError(f"{where}: no scheduler of Dask answers: {error}") from error
    with closed(client):
        yield client


def _check(client: Client) -> None:
    """Raise `ClusterError` if a worker has another core than this process, or if no worker can be asked."""
    if client.status != "running":
        raise ClusterError(f"the client of Dask is {client.status}, so it cannot reach any workers")
    _check_thread(client)
    if not client.nthreads():
        try:
            client.wait_for_workers(1, timeout=WORKERS)
        except TimeoutError as error:
            raise ClusterError(f"{_name(client)}: the cluster has no workers") from error
    try:
        found = client.run(identity, on_error="return")
    except Exception as error:  # any exception of a worker without pyaccount
        raise ClusterError(f"{_name(client)}: its workers do not report their core: {error}") from error
    for worker, made in found.items():
        if isinstance(made, OSError):
            # This also happens if the worker was ended at its memory limit.
            raise ClusterError(f"the worker {worker} was lost before it reported its core: {made}")
        if isinstance(made, BaseException):
            raise ClusterError(f"the worker {worker} has no usable installation of pyaccount: {made}")
        if made != identity():
            raise ClusterError(refusal_words(worker, made, identity()))


def _check_thread(client: Client) -> None:
    """Raise `ClusterError` if the client's own thread does not answer, as after a fork: it is in another process."""
    answered = threading.Event()
    client.loop.add_callback(answered.set)
    if not answered.wait(ANSWER):
        raise ClusterError(FORKED)


def _name(client: Client) -> str:
    return str(client.scheduler.address) if client.scheduler is not None else "the cluster"

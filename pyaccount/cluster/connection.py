"""A connection to a cluster, and what is asked of its workers before any work."""

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
from pyaccount.cluster.tasks import admitted, refusal
from pyaccount.cluster.waiting import result_of, threads_of_workers
from pyaccount.errors import ClusterError, MissingExtraError

if TYPE_CHECKING:
    from distributed import Client

    from pyaccount.execute.sampling.jobs import Runner

#: Seconds until a cluster that has no worker is given up.
WORKERS = 60.0

_LOCAL = re.compile(r"local:(?P<workers>[0-9]{1,4})(?::(?P<memory>[0-9.]+ ?[kKMGT]?i?B))?")

Result = TypeVar("Result")


class Cluster:
    """Workers of Dask whose cores give what this one gives. It can be used by several threads."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def threads(self, look: Callable[[], object] = lambda: None) -> int:
        """How many threads its workers have, now. `look` is called every moment while a lost scheduler is looked for.

        Raises `ClusterError`, and what `look` raises.
        """
        return threads_of_workers(self.connection, look)

    def runner(self, here: Runner) -> Runner:
        """Who draws waves there, and what is estimated `here`."""
        return Distributed(self.connection, here)

    def call(self, work: Callable[..., Result], *arguments: Any) -> Result:
        """`work(*arguments)`, done by a worker: a function of a module, of arguments that can be pickled.

        Raises what it raises, and `ClusterError`.
        """
        result: Result = result_of(
            self.connection, lambda client: client.submit(admitted, identity(), work, *arguments, pure=False)
        )
        return result


@contextmanager
def open_cluster(where: Any) -> Iterator[Cluster]:
    """A cluster for as long as it is used. What is opened here is closed here; a client that was given stays open.

    `where` is the address of a scheduler (`tcp://10.0.0.1:8786`), the name of a scheduler file (`scheduler.json`), `local:4` for
    workers on this machine, each with one thread (`local:4:2GB`: and with so much memory at most), or a `distributed.Client`.
    Raises `ClusterError` where there is no scheduler, no worker, or one with another core; `MissingExtraError` without Dask.
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
            f"{where}: workers on this machine are written local:4, or local:4:2GB with a limit of memory"
        )
    if local is not None:
        cluster = LocalCluster(
            n_workers=int(local["workers"]),
            threads_per_worker=1,
            memory_limit=local["memory"] or "auto",
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
            # Ctrl-C reaches every process of a terminal; who answers it is the caller, which ends them.
            preload=["import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"],
        )
        with cluster, closed(Client(cluster, set_as_default=False)) as client:
            yield client
        return
    try:
        client = connected(address_of(where))
    except Exception as error:  # whatever stands in a file, and whatever Dask makes of what answers at an address
        raise ClusterError(f"{where}: no scheduler of Dask answers there: {error}") from error
    with closed(client):
        yield client


def _check(client: Client) -> None:
    """Raise `ClusterError` where a worker has another core than this one, and where nobody can be asked."""
    if client.status != "running":
        raise ClusterError(f"a client of Dask that is {client.status} reaches no workers")
    _check_thread(client)
    if not client.nthreads():
        try:
            client.wait_for_workers(1, timeout=WORKERS)
        except TimeoutError as error:
            raise ClusterError(f"{_name(client)}: the cluster has no workers") from error
    try:
        found = client.run(identity, on_error="return")
    except Exception as error:  # whatever a worker without pyaccount makes of it
        raise ClusterError(f"{_name(client)}: its workers cannot be asked what they have: {error}") from error
    for worker, made in found.items():
        if isinstance(made, OSError):
            # Also where its limit of memory ended it.
            raise ClusterError(f"the worker {worker} was lost before it had said what it has: {made}")
        if isinstance(made, BaseException):
            raise ClusterError(f"the worker {worker} has no pyaccount that it can use: {made}")
        if made != identity():
            raise ClusterError(refusal(worker, made, identity()))


def _check_thread(client: Client) -> None:
    """Raise `ClusterError` where the thread that does a client's work does not answer: it is not here in a forked process."""
    answered = threading.Event()
    client.loop.add_callback(answered.set)
    if not answered.wait(ANSWER):
        raise ClusterError(FORKED)


def _name(client: Client) -> str:
    return str(client.scheduler.address) if client.scheduler is not None else "the cluster"

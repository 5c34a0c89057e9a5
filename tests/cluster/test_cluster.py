"""Clusters: the same certificates, whoever draws and whoever dies; other cores and clusters that are not there are refused."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import yaml
from made import sampled
from plain_documents import document, one_step

import pyaccount
from pyaccount import _core
from pyaccount.cluster import open_cluster
from pyaccount.errors import ClusterError, LimitError, NumericsError
from pyaccount.execute.sampling.jobs import WAVE, Bet, BetTable, Job, Local, Proposal

distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed: clusters are NOT tested")

DOCUMENT = document(
    privacy={"adjacency": "zero-out", "epsilon": 1.5, "delta": 1e-3},
    training={"dataset_size": 1000, "expected_batch_size": 20, "iterations": 24},
    sampler={"kind": "b-min-sep", "min_separation": 4},
    matrix={"kind": "banded-square-root", "bands": 4},
    noise={"multiplier": 0.9},
    accounting={"tolerance": 0.05, "seed": 5},
)


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


def job(key: int = 7) -> Job:
    table = BetTable(0.5, 50.0, (Bet(0.1, 0.01),))
    return Job(
        sampled("renewal", [0.8, 0.4], 9, 3, 0.2, True), None, "remove", Proposal(0.3, 1.5), (table,), (key, 2, 1, 0)
    )


def same(one: pyaccount.Certificate, other: pyaccount.Certificate) -> bool:
    dateless = [
        {k: v for k, v in json.loads(c.to_json()).items() if k not in ("created", "content_sha256")}
        for c in (one, other)
    ]
    return dateless[0] == dateless[1]


def test_certificates_are_those_of_one_machine(client: Any, tmp_path: Path) -> None:
    here = pyaccount.certify(DOCUMENT)
    assert same(pyaccount.certify(DOCUMENT, cluster=client), here)
    # Kept waves are not asked of anybody.
    assert same(pyaccount.certify(DOCUMENT, cluster=client, store=tmp_path / "runs.db"), here)
    assert same(pyaccount.certify(DOCUMENT, store=tmp_path / "runs.db"), here)
    assert same(pyaccount.certify(one_step(2.0), cluster=client), pyaccount.certify(one_step(2.0)))


def test_workers_get_what_was_read_from_files(client: Any, tmp_path: Path) -> None:
    """And not what lies by that name where they are, or will lie there later."""
    matrices = [np.tril(np.full((4, 4), fill)) + np.eye(4) for fill in (0.0, 1.0)]
    np.save(tmp_path / "c.npy", matrices[0])
    source = document(
        privacy={"adjacency": "zero-out", "epsilon": "solve", "delta": 1e-5},
        training={"iterations": 4},
        sampler={"kind": "none", "max_participations": 4},
        matrix={"kind": "dense", "file": "c.npy", "normalize": False},
        noise={"multiplier": 4.0},
    )
    (tmp_path / "document.yaml").write_text(yaml.safe_dump(source), encoding="utf-8")
    here = pyaccount.certify(tmp_path / "document.yaml")
    plan = pyaccount.compile(tmp_path / "document.yaml")
    np.save(tmp_path / "c.npy", matrices[1])
    store = tmp_path / "runs.db"
    assert same(plan.run(cluster=client, store=store), here)
    # In the store it is the run of the matrix that was read, and of no other.
    other = pyaccount.certify(tmp_path / "document.yaml", store=store)
    assert other.epsilon > 1.5 * here.epsilon
    np.save(tmp_path / "c.npy", matrices[0])
    assert same(pyaccount.certify(tmp_path / "document.yaml", store=store), here)


def test_sweeps_are_those_of_one_machine(client: Any) -> None:
    source = {
        "pyaccount": 1,
        "kind": "sweep",
        "documents": [one_step(1.0), DOCUMENT],
        "vary": {"noise.multiplier": [2, 0]},
    }
    runs = [pyaccount.sweep(source, cluster=where) for where in (client, None)]
    told = [[one.model_dump(exclude={"seconds"}) for one in run.entries()] for run in runs]
    assert told[0] == told[1]
    assert [one.place for one in runs[0].failures] == [1, 3]


def test_waves_come_in_order_and_no_more_than_are_asked_for(client: Any) -> None:
    count = 5 * WAVE + 3
    whole = list(Local(1).waves(job(), count, lambda: None))
    with open_cluster(client) as cluster:
        runner = cluster.runner(Local(1))
        assert list(runner.waves(job(), count, lambda: None)) == whole
        assert list(runner.waves(job(), count, lambda: None, first=2 * WAVE)) == whole[2:]
        assert list(runner.waves(job(), 0, lambda: None)) == []
        few = runner.waves(job(), 10**6, lambda: None)
        assert [next(few), next(few)] == whole[:2]
        few.close()
    # What was drawn ahead is let go of.
    for _ in range(100):
        if not client.who_has():
            break
        time.sleep(0.1)
    assert not client.who_has()


def test_lost_workers_are_lost_time_only(client: Any) -> None:
    count = 40 * WAVE
    whole = list(Local(1).waves(job(), count, lambda: None))
    pids = iter(client.run(os.getpid).values())
    found = []
    with open_cluster(client) as cluster:
        for place, wave in enumerate(cluster.runner(Local(1)).waves(job(), count, lambda: None)):
            found.append(wave)
            if place in (3, 9):
                os.kill(next(pids), signal.SIGKILL)
    assert found == whole


#: A client of Dask that is closed while it looks for its scheduler leaves a socket behind.
leaves_a_socket = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")


def abort(used: Any) -> None:
    """End its connection to the scheduler."""
    used.loop.add_callback(used.scheduler_comm.comm.abort)


@leaves_a_socket
def test_a_lost_connection_is_lost_time_only(client: Any) -> None:
    """The scheduler is found again, which has forgotten what was asked for."""
    _waves_that_lose(client.scheduler.address, abort)


@leaves_a_socket
@pytest.mark.parametrize("late", [0.02, 0.1, 0.5])
def test_a_scheduler_that_notices_late_is_lost_time_only(
    client: Any, late: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It closes or forgets Dask's client, which is there again under its old name when its first connection has ended."""
    scheduler = client.cluster.scheduler
    handles = scheduler.handle_stream

    async def handles_late(*arguments: Any, **options: Any) -> None:
        try:
            await handles(*arguments, **options)
        finally:
            await asyncio.sleep(late)

    monkeypatch.setattr(scheduler, "handle_stream", handles_late)
    lost = _waves_that_lose(client.scheduler.address, abort)
    # None raises again what it died of when it is collected.
    assert {one.status for one in lost} == {"closed"}


@leaves_a_socket
def test_a_client_that_was_closed_is_lost_time_only(client: Any) -> None:
    with distributed.Client(client.scheduler.address, set_as_default=False) as given:
        assert _waves_that_lose(given, lambda used: used.close())[0] is given
        assert given.status == "closed"


def _waves_that_lose(where: Any, lose: Callable[[Any], object]) -> list[Any]:
    """Three clients that were lost while waves were drawn, which are those of one machine."""
    count, found, lost = 12 * WAVE, [], []
    with open_cluster(where) as cluster:
        for place, wave in enumerate(cluster.runner(Local(1)).waves(job(), count, lambda: None)):
            found.append(wave)
            if place in (0, 5, 6):
                lost.append(cluster.connection.client())
                lose(lost[-1])
        assert len({id(one) for one in (*lost, cluster.connection.client())}) == 4
    gc.collect()
    assert found == list(Local(1).waves(job(), count, lambda: None))
    return lost


@leaves_a_socket
def test_a_scheduler_that_is_gone_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyaccount.cluster import scheduler

    monkeypatch.setattr(scheduler, "PATIENCE", 0.5)
    monkeypatch.setattr(scheduler, "TRY", 0.2)
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as made,
        open_cluster(made.scheduler_address) as cluster,
    ):
        waves = cluster.runner(Local(1)).waves(job(), 12 * WAVE, lambda: None)
        next(waves)
        made.close()
        with pytest.raises(ClusterError, match="the connection to the scheduler was lost"):
            list(waves)
    gc.collect()


def gone() -> Any:
    """What is looked at of a client of Dask that has lost its scheduler."""
    return SimpleNamespace(
        status="closed", scheduler=SimpleNamespace(address="tcp://a:1"), security=None, scheduler_comm=None
    )


def test_a_scheduler_that_was_given_up_is_asked_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep of a thousand cells does not wait for it a thousand times."""
    from pyaccount.cluster import scheduler

    tries = []

    def connected(*_: object) -> None:
        tries.append(time.monotonic())
        raise OSError("refused")

    for name, value in {"PATIENCE": 0.3, "PAUSE": 0.01, "connected": connected}.items():
        monkeypatch.setattr(scheduler, name, value)
    connection = scheduler.Connection(gone())
    with pytest.raises(ClusterError, match="was lost: refused"):
        connection.client()
    assert len(tries) > 1
    before = len(tries)
    with pytest.raises(ClusterError, match="was lost: refused"):
        connection.client()
    assert len(tries) == before + 1


class Threads:
    """Three that ask for a lost scheduler's client: one looks for it until it may go on, the others wait."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, patience: float, found: Any) -> None:
        from pyaccount.cluster import scheduler

        self._looks, self._may_go_on = threading.Event(), threading.Event()

        def connected(*_: object) -> Any:
            self._looks.set()
            self._may_go_on.wait()
            if found is None:
                raise ClusterError("a Worker answers there, not a scheduler")
            return found

        monkeypatch.setattr(scheduler, "PATIENCE", patience)
        monkeypatch.setattr(scheduler, "PAUSE", 0.01)
        monkeypatch.setattr(scheduler, "connected", connected)
        self._connection = scheduler.Connection(gone())
        self.cancellations = [_core.Cancellation() for _ in range(3)]
        self.ended: list[Any] = [None] * 3
        self.threads = [threading.Thread(target=self._work, args=(place,)) for place in range(3)]

    def _work(self, place: int) -> None:
        with self.cancellations[place]:
            try:
                self.ended[place] = self._connection.client()
            except BaseException as error:  # it is looked at by the test
                self.ended[place] = error

    def start(self) -> None:
        self.threads[0].start()
        assert self._looks.wait(60)
        for thread in self.threads[1:]:
            thread.start()

    def go_on(self) -> None:
        self._may_go_on.set()
        for thread in self.threads:
            thread.join(60)


def test_threads_that_wait_for_the_one_that_looks_can_be_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    three = Threads(monkeypatch, 60.0, None)
    try:
        three.start()
        for cancellation in three.cancellations[1:]:
            cancellation.cancel()
        for thread in three.threads[1:]:
            thread.join(60)
        assert [type(one) for one in three.ended] == [type(None), KeyboardInterrupt, KeyboardInterrupt]
    finally:
        three.cancellations[0].cancel()
        three.go_on()
    assert isinstance(three.ended[0], KeyboardInterrupt)


def test_what_one_thread_finds_out_is_told_to_those_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the scheduler was away for longer than it is waited for, and is found then."""
    back = SimpleNamespace(status="running", scheduler_comm=SimpleNamespace(closed=lambda: False))
    for found in (None, back):
        three = Threads(monkeypatch, -1.0, found)
        try:
            three.start()
            # Many looks of those that wait.
            time.sleep(0.2)
            assert three.ended == [None] * 3
        finally:
            three.go_on()
        if found is None:
            assert [type(one) for one in three.ended] == [ClusterError] * 3
        else:
            assert three.ended == [back] * 3


def test_what_listens_and_says_nothing_is_no_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a forwarded port or a balancer of loads has lost what stood behind it."""
    from pyaccount.cluster import scheduler

    monkeypatch.setattr(scheduler, "ANSWER", 0.2)
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        pytest.raises(ClusterError, match=r"no scheduler of Dask.*does not reply"),
    ):
        pyaccount.certify(one_step(1.0), cluster=f"tcp://127.0.0.1:{silent.getsockname()[1]}")


def test_callbacks_of_dask_may_certify(client: Any) -> None:
    """They are called one after the other: whoever waits for another one waits for ever."""
    found: list[pyaccount.Certificate] = []
    ended = threading.Event()

    def certify(_: object) -> None:
        try:
            found.append(pyaccount.certify(one_step(2.0), cluster=client))
        finally:
            ended.set()

    asked = client.submit(len, "x", pure=False)
    asked.add_done_callback(certify)
    assert ended.wait(60)
    assert same(found[0], pyaccount.certify(one_step(2.0)))
    asked.release()


def test_what_work_raises_comes_back(client: Any) -> None:
    with open_cluster(client) as cluster:
        with pytest.raises(NumericsError, match="as planned"):
            cluster.call(_raise, NumericsError("as planned"))
        with pytest.raises(TimeoutError, match="mine"):
            cluster.call(_raise, TimeoutError("mine"))
        failing = cluster.runner(Local(1)).waves(job(), WAVE, _over)
        with pytest.raises(LimitError, match="over"):
            next(failing)
    limited = pyaccount.load(DOCUMENT, overrides=["noise.multiplier=solve", "accounting.time_limit=0.001"])
    with pytest.raises(LimitError, match="time limit"):
        pyaccount.certify(limited, cluster=client)


def test_cancelling_lets_the_workers_go(client: Any) -> None:
    cancellation = _core.Cancellation()
    raised: list[BaseException] = []

    def work() -> None:
        with cancellation, open_cluster(client) as cluster:
            try:
                cluster.call(time.sleep, 4)
            except BaseException as error:  # it is looked at below
                raised.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    while not client.processing() or not any(client.processing().values()):
        time.sleep(0.05)
    cancellation.cancel()
    thread.join(timeout=20)
    assert not thread.is_alive()
    assert isinstance(raised[0], KeyboardInterrupt)
    # Nobody waits for what a worker still does.
    assert not any(client.processing().values())


def test_workers_with_another_core_are_refused() -> None:
    """One that has another version, one whose samples differ in a bit, and one that cannot import pyaccount."""
    with distributed.LocalCluster(n_workers=0, dashboard_address=":0", silence_logs=50, protocol="tcp") as cluster:
        other = "import pyaccount.certificate.provenance as p; m = p.versions(); p.versions = lambda: {**m, 'core': '0.0.9'}"
        odd = "import pyaccount.certificate.identity as i; i._SMALL = ((1.0, 0.5, 0.376), *i._SMALL[1:])"
        none = "import sys; sys.modules['pyaccount'] = None"
        for preload, words in (
            (other, r"core 0\.0\.9 \(here"),
            (odd, "samples"),
            (none, "no usable installation of pyaccount|do not report their core"),
        ):
            program = [sys.executable, "-m", "distributed.cli.dask_worker", cluster.scheduler_address]
            options = ["--no-nanny", "--nthreads", "1", "--no-dashboard", "--preload", preload]
            worker = subprocess.Popen([*program, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                with distributed.Client(cluster, set_as_default=False) as client:
                    client.wait_for_workers(1, timeout=60)
                    with pytest.raises(ClusterError, match=words):
                        pyaccount.certify(one_step(1.0), cluster=client)
            finally:
                worker.terminate()
                worker.wait()
                while cluster.scheduler.workers:
                    time.sleep(0.05)


def test_workers_that_too_little_memory_ends_are_told_as_lost() -> None:
    with pytest.raises(ClusterError, match=r"was lost|no workers"):
        pyaccount.certify(one_step(1.0), cluster="local:1:20MB")


def test_a_worker_that_comes_later_is_asked_too(client: Any) -> None:
    from pyaccount.cluster.tasks import admitted

    asked = client.submit(admitted, (("core", "0.0.9"),), len, "x", pure=False)
    with pytest.raises(ClusterError, match=r"another core.*core 0\.0\.9|core .* \(here 0\.0\.9\)"):
        asked.result()
    # The error's traceback would keep it, and other tests ask what is kept.
    asked.release()


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("local:x", "local:4"),
        ("local:0", "local:4"),
        ("local", "local:4"),
        ("tcp://127.0.0.1:9", "no scheduler of Dask"),
        ("nonsense://here", "no scheduler of Dask"),
        ("no such file.json", "no such scheduler file"),
        ("localhost:9", "no scheduler of Dask"),
    ],
)
def test_clusters_that_are_not_there(where: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyaccount.cluster import scheduler

    monkeypatch.setattr(scheduler, "ANSWER", 0.5)
    # None that was left half made: it closes itself when it is collected, and may wait for itself then.
    before = clients()
    with pytest.raises(ClusterError, match=words):
        pyaccount.certify(one_step(1.0), cluster=where)
    assert all(any(one is other for other in before) for one in clients())


def clients() -> list[Any]:
    """Dask's clients, closed or not."""
    gc.collect()
    return [one for one in gc.get_objects() if isinstance(one, distributed.Client)]


def test_a_worker_is_no_scheduler(client: Any) -> None:
    worker = next(iter(client.scheduler_info()["workers"]))
    with pytest.raises(ClusterError, match="a Worker answers there"):
        pyaccount.certify(one_step(1.0), cluster=worker)


@pytest.mark.parametrize("text", ["{}", "xx", '{"address": 3}', "[]", '{"address": "tcp://127.0.0.1:9"}'])
def test_files_that_name_no_scheduler(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyaccount.cluster import scheduler

    monkeypatch.setattr(scheduler, "ANSWER", 0.5)
    (tmp_path / "scheduler.json").write_text(text, encoding="utf-8")
    with pytest.raises(ClusterError, match="no scheduler of Dask"):
        pyaccount.certify(one_step(1.0), cluster=str(tmp_path / "scheduler.json"))


def test_a_client_that_is_closed_is_no_cluster(client: Any) -> None:
    with distributed.Client(client.scheduler.address, set_as_default=False) as given:
        pass
    with pytest.raises(ClusterError, match="is closed"):
        pyaccount.certify(one_step(1.0), cluster=given)


def test_other_things_are_no_clusters() -> None:
    with pytest.raises(TypeError, match="an address"):
        pyaccount.certify(one_step(1.0), cluster=3)  # type: ignore[arg-type]


def test_errors_and_waves_are_pickled_whole() -> None:
    wave = next(Local(1).waves(job(), 1, lambda: None))
    assert pickle.loads(pickle.dumps(wave)) == wave
    error = LimitError("over", stage="testing", samples=3, seed=4)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def _raise(error: BaseException) -> None:
    raise error


def _over() -> float | None:
    raise LimitError("over")

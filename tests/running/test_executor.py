"""Executors: the same certificates whoever draws; workers with another core and executors that fail are refused."""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from made import sampled
from plain_documents import document, one_step
from snapshots import Snapshot

import pyaccount
from pyaccount import _core, cli
from pyaccount.cli import options
from pyaccount.errors import ClusterError, LimitError, NumericsError
from pyaccount.execute.sampling.jobs import WAVE, Bet, BetTable, Job, Local, Proposal
from pyaccount.running.executor import OnExecutor

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
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as made,
        distributed.Client(made, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def processes() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        yield pool


@pytest.fixture(params=["Dask", "processes", "threads"])
def executor(request: pytest.FixtureRequest) -> Iterator[Executor]:
    if request.param == "Dask":
        yield request.getfixturevalue("client").get_executor()
    elif request.param == "processes":
        yield request.getfixturevalue("processes")
    else:
        with ThreadPoolExecutor(2) as pool:
            yield pool


def job(key: int = 7) -> Job:
    table = BetTable(0.5, 50.0, (Bet(0.1, 0.01),))
    return Job(
        sampled("renewal", [0.8, 0.4], 9, 3, 0.2, True), None, "remove", Proposal(0.3, 1.5), (table,), (key, 2, 1, 0)
    )


def without_limit() -> float | None:
    return None


def dateless(certificate: str) -> dict[str, Any]:
    return {k: v for k, v in json.loads(certificate).items() if k not in ("created", "content_sha256")}


def same(one: pyaccount.Certificate, other: pyaccount.Certificate) -> bool:
    return dateless(one.to_json()) == dateless(other.to_json())


def test_certificates_are_those_of_this_process(executor: Executor, tmp_path: Path) -> None:
    here = pyaccount.certify(DOCUMENT)
    assert same(pyaccount.certify(DOCUMENT, executor=executor), here)
    assert same(pyaccount.certify(DOCUMENT, executor=executor, store=tmp_path / "runs.db"), here)
    # What is not sampled needs no worker.
    assert same(pyaccount.certify(one_step(2.0), executor=executor), pyaccount.certify(one_step(2.0)))


def test_waves_are_those_of_this_process_and_come_in_order(executor: Executor) -> None:
    count = 5 * WAVE + 3
    whole = list(Local(1).waves(job(), count, without_limit))
    runner = OnExecutor(executor, Local(1))
    assert list(runner.waves(job(), count, without_limit)) == whole
    assert list(runner.waves(job(), 0, without_limit)) == []
    few = runner.waves(job(), 10**6, without_limit)
    assert [next(few), next(few)] == whole[:2]
    few.close()


def test_sweeps_are_those_of_this_process(processes: Executor) -> None:
    source = {
        "pyaccount": 1,
        "kind": "sweep",
        "documents": [one_step(1.0), DOCUMENT],
        "vary": {"noise.multiplier": [2, 0]},
    }
    runs = [pyaccount.sweep(source, executor=where) for where in (processes, None)]
    told = [[one.model_dump(exclude={"seconds"}) for one in run.entries()] for run in runs]
    assert told[0] == told[1]
    assert [one.place for one in runs[0].failures] == [1, 3]


def test_the_command_draws_on_the_cluster_of_an_address_or_a_scheduler_file(
    client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[int] = []
    waves = OnExecutor.waves

    def counted(self: OnExecutor, *arguments: Any, **more: Any) -> Any:
        for wave in waves(self, *arguments, **more):
            drawn.append(len(wave.sums))
            yield wave

    monkeypatch.setattr(OnExecutor, "waves", counted)
    (tmp_path / "document.yaml").write_text(yaml.safe_dump(DOCUMENT), encoding="utf-8")
    (tmp_path / "scheduler.json").write_text(json.dumps({"address": client.scheduler.address}), encoding="utf-8")
    here = dateless(pyaccount.certify(tmp_path / "document.yaml").to_json())
    for where in (client.scheduler.address, str(tmp_path / "scheduler.json")):
        output = str(tmp_path / "made.cert.json")
        drawn.clear()
        assert cli.run(["certify", str(tmp_path / "document.yaml"), "--cluster", where, "-o", output, "--quiet"]) == 0
        assert drawn
        assert dateless(Path(output).read_text(encoding="utf-8")) == here


def test_lost_workers_of_a_cluster_are_lost_time_only(client: Any) -> None:
    """Dask repeats what they had begun."""
    count = 12 * WAVE
    whole = list(Local(1).waves(job(), count, without_limit))
    pid = next(iter(client.run(os.getpid).values()))
    found = []
    for place, wave in enumerate(OnExecutor(client.get_executor(), Local(1)).waves(job(), count, without_limit)):
        found.append(wave)
        if place == 3:
            os.kill(pid, signal.SIGKILL)
    assert found == whole


def test_a_pool_that_has_lost_a_process_fails() -> None:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        os.kill(pool.submit(os.getpid).result(), signal.SIGKILL)
        with pytest.raises(ClusterError, match=r"the executor failed: BrokenProcessPool: A .*process"):
            list(OnExecutor(pool, Local(1)).waves(job(), 10 * WAVE, without_limit))


def other_core() -> None:
    """Make this process one whose samples differ in a bit."""
    import pyaccount.certificate.provenance as known

    known._SMALL = ((1.0, 0.5, 0.376), *known._SMALL[1:])


def test_workers_with_another_core_are_refused() -> None:
    with (
        ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), initializer=other_core) as pool,
        pytest.raises(
            ClusterError, match=r"the worker .*, process [0-9]+, has another core.*: samples \w+ \(here \w+\)"
        ),
    ):
        pyaccount.certify(DOCUMENT, executor=pool)


def test_workers_of_a_cluster_with_another_core_are_refused() -> None:
    other = (
        "import pyaccount.certificate.provenance as p; m = p.versions(); p.versions = lambda: {**m, 'core': '0.0.9'}"
    )
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, dashboard_address=":0", silence_logs=50, preload=[other]
        ) as made,
        distributed.Client(made, set_as_default=False) as client,
        pytest.raises(ClusterError, match=r"another core.*: core 0\.0\.9 \(here"),
    ):
        list(OnExecutor(client.get_executor(), Local(1)).waves(job(), WAVE, without_limit))


def test_joint_certificates_are_drawn_by_the_executor(snapshot: Snapshot) -> None:
    plain = one_step(2.0)
    both = [DOCUMENT, plain | {"privacy": plain["privacy"] | {"adjacency": "zero-out"}}]
    snapshot.raised(lambda: pyaccount.compose(both, epsilon=2.5, delta=1e-3, executor=Doing(_not_submitted)))


class Doing(Executor):
    """An executor whose futures are what `do` makes of them."""

    def __init__(self, do: Callable[[Future[Any]], object]) -> None:
        self.futures: list[Future[Any]] = []
        self._do = do

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.futures.append(future)
        self._do(future)
        return future


def _not_submitted(_: Future[Any]) -> None:
    raise RuntimeError("cannot schedule new futures after shutdown")


@pytest.mark.parametrize(
    "do",
    [
        _not_submitted,
        lambda future: future.set_exception(BrokenProcessPool("a process died")),
        lambda future: future.set_exception(ConnectionError("lost")),
        lambda future: future.cancel() and future.set_running_or_notify_cancel(),
    ],
)
def test_what_an_executor_raises_is_located(do: Callable[[Future[Any]], object], snapshot: Snapshot) -> None:
    with snapshot.raises(ClusterError) as raised:
        list(OnExecutor(Doing(do), Local(1)).waves(job(), WAVE, without_limit))
    assert isinstance(raised.value.__cause__, RuntimeError | BrokenProcessPool | ConnectionError | CancelledError)


def test_a_result_that_is_lost_is_drawn_once_more() -> None:
    """As a worker of Dask may take a result along that nobody has fetched yet."""
    whole = list(Local(1).waves(job(), 3 * WAVE, without_limit))
    lost = [ConnectionError("lost"), None, None, ValueError("lost too")]

    class Losing(ThreadPoolExecutor):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            future = super().submit(fn, *args, **kwargs)
            if lost and (error := lost.pop(0)):
                future = Future()
                future.set_exception(error)
            return future

    with Losing(1) as executor:
        assert list(OnExecutor(executor, Local(1)).waves(job(), 3 * WAVE, without_limit)) == whole
    assert lost == []


@pytest.mark.parametrize("error", [NumericsError("as planned"), LimitError("over"), MemoryError()])
def test_what_a_job_raises_comes_back(error: Exception) -> None:
    with pytest.raises(type(error)) as raised:
        list(OnExecutor(Doing(lambda future: future.set_exception(error)), Local(1)).waves(job(), WAVE, without_limit))
    assert raised.value is error


def test_a_time_limit_ends_the_wait_and_cancels_the_waves(snapshot: Snapshot) -> None:
    idle, looks = Doing(lambda _: None), iter([None, None, None])

    def limited() -> float | None:
        for look in looks:
            return look
        raise LimitError("over")

    snapshot.raised(lambda: list(OnExecutor(idle, Local(1)).waves(job(), 10 * WAVE, limited)))
    assert [one.cancelled() for one in idle.futures] == [True, True]


def test_cancelling_ends_the_wait_and_cancels_the_waves() -> None:
    submitted = threading.Event()
    idle, cancellation = Doing(lambda _: submitted.set()), _core.Cancellation()
    raised: list[BaseException] = []

    def work() -> None:
        with cancellation:
            try:
                pyaccount.certify(DOCUMENT, executor=idle)
            except BaseException as error:  # it is looked at below
                raised.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    assert submitted.wait(60)
    cancellation.cancel()
    thread.join(timeout=60)
    assert isinstance(raised[0], KeyboardInterrupt)
    assert all(one.cancelled() for one in idle.futures)


@pytest.mark.parametrize("other", [3, "tcp://127.0.0.1:8786"])
def test_other_things_are_no_executors(other: Any, snapshot: Snapshot) -> None:
    snapshot.raised(lambda: pyaccount.certify(one_step(1.0), executor=other))


@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
@pytest.mark.parametrize(
    "where", ["tcp://127.0.0.1:9", "nonsense://here", "no such file.json", "localhost:9", "silent"]
)
def test_clusters_that_are_not_there(
    where: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(options, "ANSWER", 0.5)
    (tmp_path / "document.yaml").write_text(yaml.safe_dump(one_step(1.0)), encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"tcp://127.0.0.1:{listening.getsockname()[1]}" if where == "silent" else where
        assert cli.run(["certify", str(tmp_path / "document.yaml"), "--cluster", address]) == 3
    assert f"{address}: no scheduler of Dask answers: " in capsys.readouterr().err


@pytest.mark.parametrize("text", ["{}", "xx", '{"address": 3}', "[]", '{"address": "tcp://127.0.0.1:9"}'])
def test_files_that_name_no_scheduler(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "ANSWER", 0.5)
    (tmp_path / "scheduler.json").write_text(text, encoding="utf-8")
    where = str(tmp_path / "scheduler.json")
    with pytest.raises(ClusterError, match="no scheduler of Dask answers"), options.executor_at(where):
        pass


def test_what_was_read_from_files_is_what_is_computed_and_stored(tmp_path: Path) -> None:
    """Whatever lies by that name later."""
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
    assert same(plan.run(store=store), here)
    # In the store it is the run of the matrix that was read, and of no other.
    other = pyaccount.certify(tmp_path / "document.yaml", store=store)
    assert other.epsilon > 1.5 * here.epsilon
    np.save(tmp_path / "c.npy", matrices[0])
    assert same(pyaccount.certify(tmp_path / "document.yaml", store=store), here)


def test_errors_and_waves_are_pickled_whole() -> None:
    wave = next(Local(1).waves(job(), 1, without_limit))
    assert pickle.loads(pickle.dumps(wave)) == wave
    error = LimitError("over", stage="testing", samples=3, seed=4)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)

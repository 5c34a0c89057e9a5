"""Certifying under asyncio: many at once, one cancelled and the others not."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from plain_documents import document, one_step
from snapshots import Snapshot

import pyaccount
from pyaccount import _core
from pyaccount.running.executor import in_thread


def test_many_at_once_give_what_each_gives_alone() -> None:
    documents = [one_step(1.0 + 0.1 * k) for k in range(32)]

    async def all_of_them() -> list[pyaccount.Certificate]:
        return await asyncio.gather(*(pyaccount.certify_async(one) for one in documents))

    found = asyncio.run(all_of_them())
    assert [one.delta for one in found] == [pyaccount.certify(one).delta for one in documents]


def test_a_store_may_be_its_file_or_open(tmp_path: Path) -> None:
    with pyaccount.Store(tmp_path / "runs.db") as store:
        for given in (store, tmp_path / "runs.db", str(tmp_path / "runs.db")):
            asyncio.run(pyaccount.certify_async(one_step(1.0), store=given))
            pyaccount.sweep({**one_step(1.0), "vary": {"noise.multiplier": [1.0, 2.0]}}, store=given)
        assert len(store.runs()) == 2


def test_cancelling_one_leaves_the_others() -> None:
    """The cancelled one has an hour of samples to draw; the others and the loop go on."""
    long: dict[str, Any] = document(
        privacy={"adjacency": "zero-out", "epsilon": 1.0, "delta": 1e-9},
        training={"dataset_size": 10_000, "expected_batch_size": 100, "iterations": 2000},
        sampler={"kind": "b-min-sep", "min_separation": 16},
        matrix={"kind": "banded-square-root", "bands": 16},
        noise={"multiplier": "solve"},
        accounting={"seed": 1},
    )

    async def both() -> tuple[float, int]:
        slow = asyncio.create_task(pyaccount.certify_async(long))
        await asyncio.sleep(0.3)
        before = threading.active_count()
        quick = asyncio.create_task(pyaccount.certify_async(one_step(2.0)))
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow
        return (await quick).delta, before

    delta, _ = asyncio.run(both())
    assert delta == pyaccount.certify(one_step(2.0)).delta


def test_what_waits_for_its_turn_is_never_begun() -> None:
    from concurrent.futures import ThreadPoolExecutor

    begun: list[str] = []
    gate = threading.Event()

    def first() -> str:
        begun.append("first")
        gate.wait(20)
        return "done"

    async def run() -> str:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        one = asyncio.create_task(in_thread(first))
        other = asyncio.create_task(in_thread(lambda: begun.append("other")))
        await asyncio.sleep(0.05)
        other.cancel()
        with pytest.raises(asyncio.CancelledError):
            await other
        gate.set()
        return await one

    assert asyncio.run(run()) == "done"
    assert begun == ["first"]


def test_errors_come_back_as_they_are(snapshot: Snapshot) -> None:
    async def wrong(source: Any) -> Any:
        return await pyaccount.certify_async(source)

    snapshot.raised(lambda: asyncio.run(wrong({"pyaccount": 1})))

    def interrupted() -> None:
        raise KeyboardInterrupt

    async def alone() -> None:
        await in_thread(interrupted)

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(alone())


def test_a_thread_that_is_cancelled_ends_its_calls_and_no_others() -> None:
    cancellation = _core.Cancellation()
    _core.Cancellation.check()
    with cancellation:
        _core.Cancellation.check()
        cancellation.cancel()
        with pytest.raises(KeyboardInterrupt):
            _core.Cancellation.check()
        with pytest.raises(KeyboardInterrupt):
            pyaccount.certify(document())
    _core.Cancellation.check()
    assert pyaccount.certify(one_step(2.0)).holds

"""What all tests share: examples of properties may take as long as a busy machine needs."""

from __future__ import annotations

import os

# Before NumPy is there. Each worker has a core, and matrices of some twenty rows gain nothing from a second thread that waits for
# them. What other numbers of threads give is compared in `helpers/processors.py`.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Nor do short pieces of the engine's work gain from threads that contend with other workers' for two cores: a twentieth of the
# suite went there. Tests that are about threads say how many they want.
os.environ.setdefault("RAYON_NUM_THREADS", "1")

import gc
import random
import secrets
from collections.abc import Iterator
from typing import Any

import pytest
from drawn_once import Drawn
from hypothesis import settings

from pyaccount.certificate import Certificate
from pyaccount.execute import Answer, Engine, Question
from pyaccount.plan import DirectedBounds
from pyaccount.running import Plan

# A deadline would assert timings, and examples that differ from run to run would find what nobody can find again.
settings.register_profile("patient", deadline=None, derandomize=True)
settings.load_profile("patient")

# How wide the terminal is in which tests are started is no part of any.
os.environ.pop("COLUMNS", None)


#: Other seeds than the usual ones, to see that no test passes by luck: PYACCOUNT_TEST_SEED=7 pytest.
OTHER = os.environ.get("PYACCOUNT_TEST_SEED", "")

#: Where seeds come from that a document leaves to the operating system: the same in every run, unless a test is marked `entropy`.
_drawn, _source = secrets.randbits, {"bits": random.Random(0).getrandbits}


def _bits(count: int) -> int:
    return _source["bits"](count)


secrets.randbits = _bits


def drawn_by(item: pytest.Item) -> str:
    """What a test's numbers are drawn by: its module and its name, wherever the module or the checkout lies."""
    name = item.nodeid.partition("::")[2].replace(str(item.config.rootpath), "")
    return f"{item.path.name}::{name}"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores, unless it is said: some tests wait for other processes."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return int(os.environ.get("PYTEST_XDIST_AUTO_NUM_WORKERS") or cores + 1)


def pytest_collection_finish() -> None:
    """What is there once the tests are collected stays to the end: looking through it for garbage is a twentieth of the suite."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Start each test's seeds anew, so that they do not depend on the tests before."""
    real = item.get_closest_marker("entropy") is not None
    _source["bits"] = _drawn if real else random.Random(OTHER + drawn_by(item)).getrandbits


@pytest.fixture(scope="session", autouse=True)
def _state(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Marks of runs are kept where no other run of the tests finds them, and not with the user's own."""
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))


@pytest.fixture(scope="session", autouse=True)
def _garbage() -> Iterator[None]:
    """What leaked in a cycle is found while a test can still fail of it: at a worker's exit nobody is told."""
    yield
    gc.collect()


@pytest.fixture(scope="module")
def drawn() -> Drawn:
    """What a module's tests have drawn."""
    return Drawn()


@pytest.fixture
def drawn_once(drawn: Drawn) -> Iterator[None]:
    """Samples of equal jobs are drawn once in a module: it is what is made of them that is tested."""
    with drawn.used():
        yield


@pytest.fixture
def remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Certificates of equal documents and seeds are computed once in a test: it is the comparison that is tested."""
    _remember(monkeypatch)


@pytest.fixture(scope="module")
def remembered_throughout() -> Iterator[None]:
    """The same in a module whose tests compare the same certificates."""
    with pytest.MonkeyPatch.context() as patch:
        _remember(patch)
        yield


def _remember(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: dict[tuple[str, object], Certificate] = {}
    original = Plan.run

    def run_once(self: Plan, *, seed: int | None = None, **options: Any) -> Certificate:
        key = ((self.asked or self.document).sha256, seed)
        if key not in kept:
            kept[key] = original(self, seed=seed, **options)
        return kept[key]

    monkeypatch.setattr(Plan, "run", run_once)
    asked: dict[object, Answer] = {}
    ask = Engine.ask

    def ask_once(self: Engine, bounds: DirectedBounds, question: Question) -> Answer:
        key = (tuple(bounds.items()), question)
        if key not in asked:
            asked[key] = ask(self, bounds, question)
        return asked[key]

    monkeypatch.setattr(Engine, "ask", ask_once)

"""Asks the package questions in child processes whose parent has asked them before the fork.

Its arguments are the name of a scene and numbers for it. It prints the outcome of each child as JSON: `right` if the child got
the same answer as its parent. A child that hangs is ended and reported.
"""

import asyncio
import ctypes
import json
import multiprocessing
import os
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from plain_documents import doc

import pyaccount

#: The seconds after which a child counts as hanging; on an idle machine it takes at most one.
HANGS = 40

BASE: dict[str, Any] = doc(
    "name=forked adjacency=add-remove dataset_size=10_000 expected_batch_size=100 iterations=100",
    "sampler=poisson multiplier=1.0 profile=[1.0]",
)
KNOWN = {**BASE, "privacy": {**BASE["privacy"], "epsilon": 8.0}}
SAMPLED: dict[str, Any] = {
    **BASE,
    "privacy": {"adjacency": "zero-out", "epsilon": 2.0, "delta": 0.05},
    "training": {"dataset_size": 100, "expected_batch_size": 25, "iterations": 4},
    "sampler": {"kind": "b-min-sep", "min_separation": 2},
    "matrix": {"kind": "toeplitz", "coefficients": [1.0, 0.5]},
    "accounting": {"profile": [1.0], "seed": 3},
}
#: A document for which the binding caches a distribution.
ALLOCATED: dict[str, Any] = {
    **BASE,
    "training": {"dataset_size": 10_000, "iterations": 20},
    "sampler": {"kind": "random-allocation", "iterations_per_allocation": 20},
    "noise": {"multiplier": 3.0},
}
#: A document whose samples would take hours.
LONG: dict[str, Any] = {
    **BASE,
    "privacy": {"adjacency": "zero-out", "epsilon": 1.0, "delta": 1e-9},
    "training": {"dataset_size": 10_000, "expected_batch_size": 100, "iterations": 2000},
    "sampler": {"kind": "b-min-sep", "min_separation": 16},
    "matrix": {"kind": "banded-square-root", "bands": 16},
    "noise": {"multiplier": "solve"},
    "accounting": {"seed": 1},
}


def guarantee(certificate: pyaccount.Certificate) -> tuple[float, float, float]:
    found = certificate.data.guarantee
    return found.epsilon, found.delta, found.epsilon_lower


def stored() -> object:
    with tempfile.TemporaryDirectory() as folder:
        found = [guarantee(pyaccount.certify(SAMPLED, store=Path(folder) / "runs.db")) for _ in range(2)]
        return found, len(pyaccount.Store(Path(folder) / "runs.db").runs())


def counted() -> float:
    accountant = pyaccount.Accountant(adjacency="add-remove", delta=1e-5, epsilon=3)
    accountant.step(40, noise_multiplier=1.0, sampling_probability=0.01)
    return accountant.epsilon_spent()


def trained(size: int) -> list[tuple[int, ...]]:
    import numpy as np

    with tempfile.TemporaryDirectory() as folder, pyaccount.TrainingRun(KNOWN, folder, records=10_000) as run:
        shapes = []
        for _ in range(2):
            with run.step() as step:
                assert len(step.batch) > 0
                shapes.append(np.shape(step.release(np.zeros(size))))
        return shapes


def late() -> str:
    try:
        pyaccount.certify(LONG, time_limit=0.2)
    except pyaccount.LimitError as error:
        return error.message
    return "it had hours of samples to draw"


QUESTIONS: dict[str, Callable[[], object]] = {
    "certify": lambda: guarantee(pyaccount.certify(BASE)),
    "certify one thread": lambda: guarantee(pyaccount.certify(BASE, threads=1)),
    "certify_async": lambda: guarantee(asyncio.run(pyaccount.certify_async(BASE))),
    "sampled": lambda: guarantee(pyaccount.certify(SAMPLED)),
    "allocated": lambda: guarantee(pyaccount.certify(ALLOCATED)),
    "stored": stored,
    "verify": lambda: bool(pyaccount.verify(pyaccount.certify(BASE))),
    "matrix": lambda: pyaccount.matrix(LONG).phases[0].mean_square_error,
    "profile": lambda: pyaccount.certify(BASE).profile.delta(1.1),
    "compare": lambda: pyaccount.compare([BASE, ALLOCATED]).to_dict()["epsilon"],
    "sweep": lambda: [row.epsilon for row in pyaccount.sweep({**BASE, "vary": {"noise.multiplier": [1.0, 2.0]}}).rows],
    "counted": counted,
    # Rows that use no thread of a pool, short rows that use some, and long rows.
    "trained, short": lambda: trained(10),
    "trained": lambda: trained(20_000),
    "trained, long": lambda: trained(100_000),
    "time limit": late,
}


def forked(work: Callable[[], object], right: object, fork: Callable[[], int] = os.fork) -> int:
    """Fork a child that does the work and exits with 0 if the result is `right`; return its process id."""
    child = fork()
    if child == 0:
        signal.alarm(HANGS)
        code = 2
        try:
            code = int(work() != right)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return child


def outcome(child: int) -> str:
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return {0: "right", 1: "another answer", 2: "an error", -signal.SIGALRM: "hung"}.get(code, f"ended with {code}")


def children() -> Iterator[tuple[str, str]]:
    """Ask every question in children forked by Python and by the C library, in grandchildren, and in a pool of processes."""
    library = ctypes.CDLL(None)
    answers = {name: ask() for name, ask in QUESTIONS.items()}
    for name, ask in QUESTIONS.items():
        yield name, outcome(forked(ask, answers[name]))
        yield f"{name}, libc", outcome(forked(ask, answers[name], library.fork))
    ask, answer = QUESTIONS["certify"], answers["certify"]

    def asked_and_forked() -> object:
        return ask() == answer and outcome(forked(ask, answer))

    yield "grandchild", outcome(forked(asked_and_forked, "right"))
    with multiprocessing.get_context("fork").Pool(2) as pool:
        found = pool.map_async(_asked, ["certify"] * 4).get(HANGS)
    yield "pool", "right" if found == [answer] * 4 else "another answer"
    yield "parent", "right" if ask() == answer else "another answer"


def _asked(name: str) -> object:
    return QUESTIONS[name]()


def busy(*rounds: str) -> Iterator[tuple[str, str]]:
    """Ask in children of a process whose other threads ask all the time, and check the answers of these threads."""
    names = ["certify", "stored", "certify_async", "trained", "allocated"]
    answers = {name: QUESTIONS[name]() for name in names}
    wrong: list[str] = []
    ended = threading.Event()

    def ask_on(name: str) -> None:
        while not ended.is_set():
            try:
                if QUESTIONS[name]() != answers[name]:
                    wrong.append(f"another answer: {name}")
            except BaseException as error:
                wrong.append(f"{name}: {error!r}")
            time.sleep(0.02)

    threads = [threading.Thread(target=ask_on, args=(name,), daemon=True) for name in names]
    for thread in threads:
        thread.start()
    for k in range(int(rounds[0])):
        name = names[k % len(names)]
        yield f"{k}: {name}", outcome(forked(QUESTIONS[name], answers[name]))
    ended.set()
    for name, thread in zip(names, threads, strict=True):
        thread.join(HANGS)
        yield f"thread: {name}", "hung" if thread.is_alive() else "right"
    yield "threads", ", ".join(wrong) or "right"


def first(seconds: str) -> Iterator[tuple[str, str]]:
    """Fork a child some seconds after another thread has begun the first call of the process, with all imports of that call."""
    found: list[object] = []
    asking = threading.Thread(target=lambda: found.append(QUESTIONS["certify"]()))
    asking.start()
    time.sleep(float(seconds))
    child = forked(lambda: bool(QUESTIONS["certify"]()), right=True)
    yield "child", outcome(child)
    asking.join(HANGS)
    yield "parent", "right" if found == [QUESTIONS["certify"]()] else "another answer"


def interrupted() -> Iterator[tuple[str, str]]:
    """Send SIGINT to children in the middle of a call."""
    # A shell that starts tests in the background has them ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    QUESTIONS["certify"]()
    for name in ("certify", "certify_async"):

        def interruptible(name: str = name) -> str:
            threading.Timer(0.7, os.kill, (os.getpid(), signal.SIGINT)).start()
            try:
                if name == "certify":
                    pyaccount.certify(LONG)
                else:
                    asyncio.run(pyaccount.certify_async(LONG))
            except KeyboardInterrupt:
                return "interrupted"
            return "not interrupted"

        yield name, outcome(forked(interruptible, "interrupted"))


def handler() -> Iterator[tuple[str, str]]:
    """Fork a child in a signal handler in the middle of a call. The child reports that it has no threads, or that time is up
    if the signal came between two calls of the core.
    """
    parent, made = os.getpid(), []
    signal.signal(signal.SIGUSR1, lambda *_: made.append(os.fork()))
    threading.Timer(0.4, os.kill, (parent, signal.SIGUSR1)).start()
    try:
        pyaccount.certify(LONG, time_limit=1)
    except pyaccount.LimitError as error:
        if os.getpid() != parent:
            os._exit(0)
        yield "parent", "right" if error.limit is not None else "another answer"
    yield "child", outcome(made[0])


def connected() -> Iterator[tuple[str, str]]:
    """Keep values in a store that was open at the fork, in a child and its parent; the parent closes it first."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "runs.db"
        store = pyaccount.Store(path)
        pyaccount.certify(BASE, store=store)
        begun, go_on = os.pipe(), os.pipe()

        def kept() -> int:
            another = pyaccount.Store(path)
            pyaccount.certify(SAMPLED, store=another)
            os.write(begun[1], b"!")
            os.read(go_on[0], 1)
            pyaccount.certify(ALLOCATED, store=another)
            # The child opens a connection of its own.
            return len(store.runs())

        child = forked(kept, 3)
        os.read(begun[0], 1)
        store.close()
        os.write(go_on[1], b"!")
        yield "child", outcome(child)
        with pyaccount.Store(path) as again:
            yield "kept", "right" if [run.name for run in again.runs()] == ["forked"] * 3 else "another answer"


def training() -> Iterator[tuple[str, str]]:
    """Check that a child of a training process can draw batches, cannot release, and does not keep the run locked."""
    import numpy as np

    document = {**KNOWN, "sampler": {"kind": "b-min-sep", "min_separation": 2, "start": "warm"}}
    document |= {"privacy": {"adjacency": "zero-out", "epsilon": 8.0, "delta": 1e-5}}
    with tempfile.TemporaryDirectory() as folder:
        run = pyaccount.TrainingRun(document, folder, records=10_000, uncertified=True)
        batches = [run.batch(number).indices.tolist() for number in range(3)]

        def refused(work: Callable[[], object]) -> str:
            try:
                work()
            except pyaccount.RunError as error:
                return str(error).partition(":")[0]
            return "released"

        def several() -> object:
            with run.step() as step:
                return step.release(np.zeros(3))

        elsewhere = "another process opened this run, and only that process can continue it"
        yield "a step", outcome(forked(lambda: refused(several), elsewhere))
        with run.step() as step:
            yield "an open step", outcome(forked(lambda: refused(lambda: step.release(np.ones(3))), elsewhere))
            step.release(np.zeros(3))
        yield "a state", outcome(forked(lambda: refused(lambda: run.load_state_dict(run.state_dict())), "released"))

        # Another thread is drawing a batch when the process forks.
        held, done = threading.Event(), threading.Event()

        def hold() -> None:
            with run._lock:
                held.set()
                done.wait(HANGS)

        holder = threading.Thread(target=hold)
        holder.start()
        held.wait()
        yield "batches", outcome(forked(lambda: [run.batch(number).indices.tolist() for number in range(3)], batches))
        done.set()
        holder.join()

        # The child lives on after its parent has closed the run, and another process continues the run.
        go_on = os.pipe()
        waiting = forked(lambda: os.read(go_on[0], 1), b"!")
        run.close()
        with pyaccount.TrainingRun(document, folder, records=10_000, uncertified=True) as again:
            yield "taken up", "right" if again.round == 1 else "another answer"
        os.write(go_on[1], b"!")
        yield "waiting", outcome(waiting)


SCENES = {scene.__name__: scene for scene in (children, busy, first, interrupted, handler, connected, training)}

if __name__ == "__main__":
    print(json.dumps(dict(SCENES[sys.argv[1]](*sys.argv[2:]))))

"""What sweeps, clusters and many callers cost beside the work itself: python benchmarks/scale.py [--cells 1000] [--waves 60]

Each figure is a ratio of two things done in this run, one after the other, or a cost of one piece that is drawn from nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import pickle
import statistics
import time
from pathlib import Path
from typing import Any

import distributed

import pyaccount
from pyaccount.directions import DIRECTIONS
from pyaccount.execute.sampling.jobs import SHARD, WAVE, Bet, BetTable, Job, Local, Proposal
from pyaccount.profiles.base import Recipe
from pyaccount.running.executor import OnExecutor

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"

CELL: dict[str, Any] = {
    "pyaccount": 1,
    "name": "cell",
    "privacy": {"adjacency": "zero-out", "epsilon": "solve", "delta": 1e-5},
    "training": {"dataset_size": 50_000, "expected_batch_size": 500, "iterations": 2000},
    "sampler": {"kind": "poisson"},
    "noise": {"multiplier": 1.0},
}


def sweeps(cells: int) -> None:
    """A sweep of Poisson cells beside the engine's own time for them: compiled plans executed one after another."""
    from pyaccount.execute import run

    values = {"start": 500, "stop": 500 + 5 * (cells - 1), "step": 5}
    grid = {**CELL, "vary": {"training.iterations": values}}
    plans = [pyaccount.compile(cell) for cell in _documents(cells)]
    ratios = []
    for _ in range(3):
        began = time.perf_counter()
        for plan in plans:
            run(plan, threads=0)
        engine = time.perf_counter() - began
        began = time.perf_counter()
        pyaccount.sweep(grid)
        ratios.append((time.perf_counter() - began) / engine)
        print(f"engine {engine:.1f} s, sweep {ratios[-1]:.2f} times that")
    print(f"sweep of {cells} Poisson cells: {statistics.median(ratios):.2f} times the engine's own time (median of 3)")


def _documents(cells: int) -> list[dict[str, Any]]:
    return [{**CELL, "training": {**CELL["training"], "iterations": 500 + 5 * k}} for k in range(cells)]


def callers(count: int = 32) -> None:
    """Calls at the same time beside the same calls one after another."""
    documents = _documents(count)

    async def at_once() -> None:
        await asyncio.gather(*(pyaccount.certify_async(one) for one in documents))

    ratios = []
    for _ in range(3):
        began = time.perf_counter()
        for one in documents:
            pyaccount.certify(one)
        alone = time.perf_counter() - began
        began = time.perf_counter()
        asyncio.run(at_once())
        ratios.append((time.perf_counter() - began) / alone)
    print(f"{count} calls of certify_async at once: {statistics.median(ratios):.2f} times one after another")


def production() -> Job:
    """The test of examples/production-b-min-sep.yaml, in its harder direction."""
    plan = pyaccount.compile(str(EXAMPLES / "production-b-min-sep.yaml"))
    mechanism = plan.at().mechanism()
    table = BetTable(float(plan.document.privacy.epsilon), 2.0, (Bet(1e-8, 0.1),))
    proposal = Proposal(mechanism.recipe.core.plain_parameter, 1.0)
    return Job(mechanism.recipe, None, DIRECTIONS[0], proposal, (table,), (1, 2, 3, 0))


def nothing() -> Job:
    """Shards that cost little more than being asked for."""
    recipe: Recipe[Any] = Recipe("Sampled.renewal", ((1.0,), 1, 1, 0.1, False))
    return Job(recipe, None, DIRECTIONS[0], Proposal(1.0, 1.0), (BetTable(0.5, 2.0, (Bet(0.1, 0.01),)),), (1, 2, 3, 0))


def clusters(waves: int) -> None:
    """Two processes with a thread each beside one with two threads; then what a wave costs the scheduler and its client."""
    job, count = production(), waves * WAVE
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as local,
        distributed.Client(local, set_as_default=False) as client,
    ):
        runner, ratios = OnExecutor(client.get_executor(), Local(2)), []
        list(runner.waves(job, 4 * WAVE, lambda: None))
        for _ in range(3):
            rates = []
            for one in (Local(2), runner):
                began = time.perf_counter()
                list(one.waves(job, count, lambda: None))
                rates.append(count * SHARD / (time.perf_counter() - began))
            ratios.append(rates[1] / rates[0])
            print(f"samples a second: one process {rates[0]:.0f}, cluster {rates[1]:.0f}, ratio {ratios[-1]:.3f}")
        print(f"production on two workers: {statistics.median(ratios):.3f} of one process's samples a second")
        wave_seconds = WAVE * SHARD / (rates[0] / 2)
        empty = nothing()
        began = time.perf_counter()
        found = list(runner.waves(empty, 2000 * WAVE, lambda: None))
        each = (time.perf_counter() - began) / 2000
        began = time.perf_counter()
        list(Local(2).waves(empty, 2000 * WAVE, lambda: None))
        own = (time.perf_counter() - began) / 2000
    result = len(pickle.dumps(found[0]))
    asked = len(pickle.dumps(job))
    print(f"a wave of nothing: {1e3 * each:.2f} ms through the cluster, {1e3 * own:.3f} ms without")
    print(f"bytes: {result} for the sums of a wave, {asked} for its job")
    overhead = each - own
    print(
        f"a production wave: {wave_seconds:.2f} s of one core; so one scheduler keeps {wave_seconds / overhead:.0f} busy"
    )
    for workers in (10, 100, 1000, 10_000):
        rate = min(workers / wave_seconds, 1.0 / overhead) * WAVE * SHARD
        print(f"{workers} workers: {rate:.3g} samples a second")


def main() -> None:
    """All of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=1000)
    parser.add_argument("--waves", type=int, default=20)
    parser.add_argument("--only", choices=["sweeps", "callers", "clusters"])
    asked = parser.parse_args()
    if asked.only in (None, "clusters"):
        clusters(asked.waves)
    if asked.only in (None, "callers"):
        callers()
    if asked.only in (None, "sweeps"):
        sweeps(asked.cells)


if __name__ == "__main__":
    main()

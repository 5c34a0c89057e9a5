"""Batches of 2,000 out of 14.7 million records: pyaccount's from a secret key, beside jax_privacy's and opake's samplers.

Times are CPU of the process, so that they mean something on a busy machine: until the first batch is there, and of each further
one. pyaccount's laws are exact and its stream is ChaCha20; the peers draw with numpy's generator and floating-point numbers.
opake's samplers are in its wheels opake-dpsgd and opake-dpftrl, which need torch: they are left out where they are not installed.

`--records`, `--rounds`; targets are 1 ms for Poisson and 5 ms for b-min-sep, and one that is not met is printed as such.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from jax_privacy import batch_selection
from rich.console import Console
from rich.table import Table

from pyaccount import load
from pyaccount.plan.protection import Protection
from pyaccount.training.batches import batches_of
from pyaccount.training.key import RunKey

BATCH, SEPARATION, MOST = 2000, 64, {"poisson": 1.0, "b-min-sep": 5.0}


@dataclass(frozen=True)
class Timing:
    """Milliseconds of CPU: to the first batch, and of each further one; and the mean size."""

    first: float
    later: float
    mean: float


def timed(begin: Callable[[], Iterator[Any]], rounds: int) -> Timing:
    """Of an iterator of batches."""
    start = time.process_time()
    batches = begin()
    sizes = [len(next(batches))]
    first = time.process_time() - start
    later = []
    for _ in range(rounds):
        start = time.process_time()
        sizes.append(len(next(batches)))
        later.append(time.process_time() - start)
    return Timing(1e3 * first, 1e3 * statistics.mean(later), statistics.mean(sizes))


def ours(kind: str, records: int, rounds: int) -> Iterator[Any]:
    """pyaccount's batches."""
    sampler = {"kind": kind} | ({"min_separation": SEPARATION} if kind == "b-min-sep" else {})
    document = load(
        {
            "pyaccount": 1,
            "name": "benchmark",
            "privacy": {"adjacency": "zero-out", "epsilon": 8, "delta": 1e-8},
            "training": {"dataset_size": records, "expected_batch_size": BATCH, "iterations": rounds + 1},
            "sampler": sampler,
            "noise": {"multiplier": 1},
        }
    )
    batches = batches_of(Protection.of(document).runs()[0], RunKey(bytes(32)))
    return (batches.batch(t).indices for t in range(rounds + 1))


def jax_privacy(kind: str, records: int, rounds: int) -> Iterator[Any]:
    """jax_privacy's batches: cyclic Poisson sampling with one part is Poisson sampling."""
    rate = BATCH / records
    probability = rate / (1 - rate * (SEPARATION - 1))
    strategy = (
        batch_selection.CyclicPoissonSampling(sampling_prob=rate, iterations=rounds + 1)
        if kind == "poisson"
        else batch_selection.BMinSepSampling(probability, iterations=rounds + 1, min_sep=SEPARATION, warm_start=True)
    )
    return strategy.batch_iterator(records, rng=np.random.default_rng(0))


def opake(kind: str, records: int, rounds: int) -> Iterator[Any]:
    """opake's batches, as lists."""
    rate, data, key = BATCH / records, range(records), importlib.import_module("opake.random").key(0)
    probability = rate / (1 - rate * (SEPARATION - 1))
    if kind == "poisson":
        poisson = importlib.import_module("opake.dpsgd.sampling").PoissonSampler
        return iter(poisson(data, rate, rounds + 1, key=key))
    separated = importlib.import_module("opake.dpftrl.sampling").BMinSepSampler
    return iter(separated(data, SEPARATION, probability, rounds + 1, key=key))


def installed(*modules: str) -> bool:
    """Whether these can be imported."""
    try:
        for module in modules:
            importlib.import_module(module)
    except ImportError:
        return False
    return True


CONTESTANTS: dict[str, Callable[[str, int, int], Iterator[Any]]] = {
    "pyaccount": ours,
    "jax_privacy": jax_privacy,
}
if installed("opake.dpsgd.sampling", "opake.dpftrl.sampling", "opake.random"):
    CONTESTANTS["opake"] = opake


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=14_745_600)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--peer-rounds", type=int, default=5)
    options = parser.parse_args()
    table = Table(title=f"Batches of {BATCH:,} of {options.records:,} records, CPU")
    for column in ("sampler", "who", "first, ms", "each further, ms", "mean size", "target, ms", ""):
        table.add_column(column, justify="right" if "ms" in column else "left")
    for kind, most in MOST.items():
        for who, begin in CONTESTANTS.items():
            rounds = options.rounds if who == "pyaccount" else options.peer_rounds
            found = timed(partial(begin, kind, options.records, rounds), rounds)
            verdict = ("met" if found.later <= most else "not met") if who == "pyaccount" else ""
            target = f"{most:g}" if who == "pyaccount" else ""
            table.add_row(kind, who, f"{found.first:.3g}", f"{found.later:.3g}", f"{found.mean:.1f}", target, verdict)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()

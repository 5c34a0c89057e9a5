"""Rows of correlated noise: pyaccount beside what the generator and the memory allow, and beside jax_privacy 2.0.0.

A row of banded noise needs one fresh row of normal numbers and one reading of the bands − 1 rows that are kept. Each is measured
by itself in the same run, in turns: the generator by independent noise of the same size, the memory by reading as many rows of as
many bytes on all cores. Medians are compared with the sum of both. jax_privacy's row is that of its streaming matrix, compiled,
from jax's normal numbers; opake-accounting draws no noise. For scale, numpy's normal numbers and a copy of a row are beside
these; `taskset --cpu-list 0` measures all on one core. On a busy machine the clock also counts waiting, and the processor does
not: what it takes on two cores, halved, is what two idle cores would take at best. Times never fail the run: it prints whether
the target is met and exits with 0.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import pyaccount
from pyaccount.plan.protection import Protection
from pyaccount.training.key import RunKey
from pyaccount.training.noise import NoiseStream, noise_of

#: What a row may take, in units of what the generator and the memory take for it.
TARGET = 1.5
#: Rows of the peer are so few numbers, and its times are scaled.
PEER_NUMBERS = 1_000_000


def stream_of(matrix: dict[str, Any], numbers: int) -> NoiseStream:
    document = pyaccount.load(
        {
            "pyaccount": 1,
            "name": "noise",
            "privacy": {"adjacency": "zero-out", "epsilon": 8, "delta": 1e-5},
            "training": {"dataset_size": 50_000, "expected_batch_size": 500, "iterations": 2000},
            "sampler": {"kind": "b-min-sep", "min_separation": 64},
            "matrix": matrix,
            "noise": {"multiplier": 1.0},
        }
    )
    noise = noise_of(Protection.of(document).runs()[0], RunKey(bytes(32)), phase=0, clip_norm=1.0)
    return noise.stream({"w": (numbers,)})


def reading(rows: int, numbers: int) -> Callable[[], object]:
    """Reads so many rows of float32 on all cores: the largest entry of a vector that fits no cache is as fast as the memory."""
    data = np.ones((rows, numbers), np.float32)
    pool = ThreadPoolExecutor(os.cpu_count())
    parts = [part for row in data for part in np.array_split(row, max(os.cpu_count() or 1, 1))]
    return lambda: list(pool.map(np.max, parts))


def peer(bands: int) -> Callable[[], object] | None:
    """jax_privacy's streaming inverse of the same matrix, and its normal numbers."""
    try:
        import jax
        from jax_privacy.matrix_factorization import toeplitz
    except ImportError:
        return None
    column = np.cumprod([1.0, *((2 * j - 1) / (2 * j) for j in range(1, bands))])
    streaming = toeplitz.inverse_as_streaming_matrix(column / np.linalg.norm(column))
    state = streaming.init_multiply(jax.ShapeDtypeStruct((PEER_NUMBERS,), np.float32))
    key = jax.random.key(0)

    @jax.jit
    def step(key: Any, state: Any) -> Any:
        key, this = jax.random.split(key)
        row, state = streaming.multiply_next(jax.random.normal(this, (PEER_NUMBERS,)), state)
        return key, state, row

    held = [key, state]

    def one() -> None:
        held[0], held[1], row = step(*held)
        row.block_until_ready()

    return one


def measured(works: dict[str, Callable[[], object]], repeats: int) -> tuple[dict[str, float], dict[str, float]]:
    """The median seconds of each by the clock, and of the processor, in turns; a first time of each is not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in works}
    busy: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(repeats + 1):
        for name, work in works.items():
            start, worked = time.perf_counter(), time.process_time()
            work()
            if turn:
                seconds[name].append(time.perf_counter() - start)
                busy[name].append(time.process_time() - worked)
    by_clock, of_processor = (
        {name: statistics.median(times) for name, times in some.items()} for some in (seconds, busy)
    )
    return by_clock, of_processor


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--numbers", type=int, default=10_000_000, help="numbers of a row")
    parser.add_argument("--bands", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    numbers, bands = arguments.numbers, arguments.bands
    banded = stream_of({"kind": "banded-square-root", "bands": bands}, numbers)
    works: dict[str, Callable[[], object]] = {
        "generator: independent noise": stream_of({"kind": "identity"}, numbers).next,
        f"memory: {bands - 1} rows read": reading(bands - 1, numbers),
        f"banded-square-root, {bands} bands": banded.next,
        "blt, 4 buffers": stream_of({"kind": "blt", "buffers": 4}, numbers).next,
        "banded-inverse, 4 bands": stream_of({"kind": "banded-inverse", "bands": 4}, numbers).next,
    }
    drawn, copied = np.random.default_rng(1), np.ones(numbers, np.float32)
    works["numpy's normal numbers, one core"] = lambda: drawn.standard_normal(numbers, np.float32)
    works["a copy of memory, one core"] = copied.copy
    found = peer(bands)
    if found is not None:
        works["jax_privacy"] = found
    times, busy = measured(works, arguments.repeats)
    if found is not None:
        for some in (times, busy):
            some["jax_privacy"] *= numbers / PEER_NUMBERS
    generator, memory, row, *_ = times.values()
    table = Table(title=f"a row of {numbers:.3g} float32 numbers, {os.cpu_count()} cores")
    table.add_column("")
    table.add_column("ms", justify="right")
    table.add_column("ns a number", justify="right")
    table.add_column("ns of processor", justify="right")
    for name, seconds in times.items():
        table.add_row(
            name, f"{1e3 * seconds:.1f}", f"{1e9 * seconds / numbers:.2f}", f"{1e9 * busy[name] / numbers:.2f}"
        )
    console = Console()
    console.print(table)
    ratio = row / (generator + memory)
    console.print(f"banded / (generator + memory) = {ratio:.2f}: {'meets' if ratio <= TARGET else 'misses'} {TARGET}")
    if found is None:
        console.print("jax_privacy is not installed here")


if __name__ == "__main__":
    main()

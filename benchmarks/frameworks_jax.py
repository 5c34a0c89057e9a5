"""Seconds of a private step in JAX, paired: a plan of jax_privacy alone, the plan of a run, and JAX alone with a run.

    python benchmarks/frameworks_jax.py [--repeats 40] [--width 256] [--batch 64]

Needs pyaccount and jax_privacy. A round of pairs runs one step of each on the same model and batches of one expected size, in
physical batches of one padded size, which are compiled once; the medians of the times, of the processor time of all threads, and
of the ratios of times within rounds are printed, with quartiles. What a run adds is timed alone.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax_privacy.batch_selection import split_and_pad_global_batch
from jax_privacy.experimental.execution_plan import BandMFExecutionPlanConfig
from rich.console import Console
from rich.table import Table

import pyaccount
from pyaccount.integrations.jax_privacy import execution_plan
from pyaccount.training.jax import clipped_sum, release

RECORDS, FEATURES, SIGMA = 4096, 64, 1.0
#: The first steps compile.
WARM = 5


def net(width: int) -> Any:
    keys = jax.random.split(jax.random.key(1), 3)
    sizes = [(FEATURES, width), (width, width), (width, 10)]
    return [
        (jax.random.normal(key, size) / size[0] ** 0.5, jnp.zeros(size[1]))
        for key, size in zip(keys, sizes, strict=True)
    ]


def example_loss(parameters: Any, features: Any, label: Any) -> Any:
    *hidden, (weights, offset) = parameters
    for one, other in hidden:
        features = jax.nn.relu(features @ one + other)
    return optax.softmax_cross_entropy_with_integer_labels(features @ weights + offset, label)


def loss(parameters: Any, features: Any, labels: Any) -> Any:
    return example_loss(parameters, features, labels).mean()


def data() -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(1)
    features = generator.normal(size=(RECORDS, FEATURES)).astype(np.float32)
    return features, generator.integers(10, size=RECORDS).astype(np.int32)


def opened(folder: Path, batch: int, rounds: int) -> pyaccount.TrainingRun:
    document = {
        "pyaccount": 1,
        "name": "timed",
        "privacy": {"adjacency": "zero-out", "epsilon": 1000.0, "delta": 1e-5},
        "training": {"dataset_size": RECORDS, "expected_batch_size": batch, "iterations": rounds},
        "sampler": {"kind": "poisson"},
        "noise": {"multiplier": SIGMA},
    }
    return pyaccount.TrainingRun(document, folder, records=RECORDS, uncertified=True)


def by_plan(plan: Any, width: int, batch: int, *, compiled: bool) -> Iterator[None]:
    """Make the steps of an execution plan. Only the updates of jax_privacy's own plan may be compiled."""
    features, labels = data()
    parameters, rows = net(width), 3 * batch // 2
    clipped = jax.jit(plan.clipped_grad(loss, batch_argnums=(1, 2)))
    optimizer = optax.chain(plan.noise_addition_transform, optax.sgd(0.1))
    state, update = optimizer.init(parameters), jax.jit(optimizer.update) if compiled else optimizer.update
    applied = jax.jit(optax.apply_updates)
    for indices in plan.batch_selection_strategy.batch_iterator(RECORDS):
        sums = None
        for part in split_and_pad_global_batch(indices, rows):
            more = clipped(parameters, features[part], labels[part], is_padding_example=part < 0)
            sums = more if sums is None else jax.tree.map(jnp.add, sums, more)
        updates, state = update(sums, state)
        parameters = jax.block_until_ready(applied(parameters, updates))
        yield


def by_functions(run: pyaccount.TrainingRun, width: int, batch: int) -> Iterator[None]:
    """Make steps with JAX alone."""
    features, labels = data()
    parameters, clipped, rows = net(width), clipped_sum(example_loss, run), 3 * batch // 2
    stepped = jax.jit(lambda parameters, means: jax.tree.map(lambda p, m: p - 0.1 * m, parameters, means))
    while True:
        with run.step() as step:
            sums = None
            for indices, mask in step.batch.micro_batches(rows):
                more = clipped(parameters, features[indices], labels[indices], mask=mask)
                sums = more if sums is None else jax.tree.map(jnp.add, sums, more)
            means = release(step, sums)
        parameters = jax.block_until_ready(stepped(parameters, means))
        yield


def of_the_run(run: pyaccount.TrainingRun, width: int) -> Iterator[None]:
    """Draw the batch, draw the noise and record the round: what a run adds to a step."""
    zeros = {str(number): np.zeros(leaf.shape, np.float32) for number, leaf in enumerate(jax.tree.leaves(net(width)))}
    while True:
        with run.step() as step:
            assert step.batch.indices is not None
            step.release(zeros)
        yield


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--batch", type=int, default=64)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    rounds = asked.repeats + WARM
    theirs = BandMFExecutionPlanConfig(
        iterations=rounds,
        strategy=np.ones(1),
        epsilon=None,
        delta=None,
        noise_multiplier=SIGMA,
        sampling_prob=asked.batch / RECORDS,
        noise_seed=1,
    ).plan
    with tempfile.TemporaryDirectory() as temporary:
        runs = [opened(Path(temporary) / str(number), asked.batch, rounds) for number in range(3)]
        ways = {
            "jax_privacy alone": by_plan(theirs, asked.width, asked.batch, compiled=True),
            "the plan of a run": by_plan(execution_plan(runs[0]), asked.width, asked.batch, compiled=False),
            "JAX alone with a run": by_functions(runs[1], asked.width, asked.batch),
            "what a run adds": of_the_run(runs[2], asked.width),
        }
        times: dict[str, list[float]] = {name: [] for name in ways}
        busy: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(rounds):
            for name, steps in ways.items():
                began, worked = time.perf_counter(), time.process_time()
                next(steps)
                times[name].append(time.perf_counter() - began)
                busy[name].append(time.process_time() - worked)
        for run in runs:
            run.close()
    table = Table("step", "median, ms", "processor, ms", "ratio to jax_privacy alone", "quartiles")
    first = times["jax_privacy alone"][WARM:]
    for name, found in times.items():
        ratios = [one / other for one, other in zip(found[WARM:], first, strict=True)]
        low, _, high = statistics.quantiles(ratios, n=4)
        table.add_row(
            name,
            f"{1e3 * statistics.median(found[WARM:]):.2f}",
            f"{1e3 * statistics.median(busy[name][WARM:]):.2f}",
            f"{statistics.median(ratios):.3f}",
            f"{low:.3f} to {high:.3f}",
        )
    parameters = sum(leaf.size for leaf in jax.tree.leaves(net(asked.width)))
    console = Console()
    console.print(f"{parameters:_} parameters, batches of {asked.batch}")
    console.print(table)


if __name__ == "__main__":
    main()

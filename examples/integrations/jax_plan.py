"""A loop for execution plans of jax_privacy, with the plan of a certified run: batches, noise and the record are the run's.

    python examples/integrations/jax_plan.py [--folder runs/plan] [--epsilon 8]

Needs `pip install "pyaccount-dp[jax]"`. A small network on records drawn here, cyclic Poisson batches and a banded matrix, which
is the mechanism of jax_privacy's `BandMFExecutionPlanConfig`; zero-out of one record at δ = 1e-5. The training is interrupted and
goes on from its checkpoint.
"""

from __future__ import annotations

import argparse
import json
import pickle
import tempfile
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax_privacy.batch_selection import split_and_pad_global_batch

import pyaccount
from pyaccount.integrations.jax_privacy import execution_plan

RECORDS, FEATURES, BATCH, BANDS, ROUNDS, ROWS = 2000, 8, 50, 4, 64, 32


def records() -> tuple[np.ndarray, np.ndarray]:
    """Features, and labels that follow from them."""
    features = np.random.default_rng(1).normal(size=(RECORDS, FEATURES)).astype(np.float32)
    return features, (features @ np.linspace(-1.0, 1.0, FEATURES) > 0.0).astype(np.int32)


def document(epsilon: float) -> dict[str, object]:
    """BandMF: the records are in four parts, whose rounds alternate, and noise is correlated over four rounds."""
    return {
        "pyaccount": 1,
        "name": "BandMF with jax_privacy",
        "privacy": {"adjacency": "zero-out", "epsilon": epsilon, "delta": 1e-5},
        "training": {"dataset_size": RECORDS, "expected_batch_size": BATCH, "iterations": ROUNDS},
        "sampler": {"kind": "cyclic-poisson", "partitions": BANDS},
        "matrix": {"kind": "banded-square-root", "bands": BANDS},
        "noise": {"multiplier": "solve"},
    }


def begun() -> dict[str, jax.Array]:
    """The parameters of a network with one hidden layer."""
    first, second = jax.random.split(jax.random.key(3))
    return {
        "hidden": jax.random.normal(first, (FEATURES, 8)) / FEATURES**0.5,
        "out": jax.random.normal(second, (8, 2)) / 8**0.5,
    }


def outputs(parameters: dict[str, jax.Array], features: jax.Array) -> jax.Array:
    return jnp.tanh(features @ parameters["hidden"]) @ parameters["out"]


def loss(parameters: dict[str, jax.Array], features: jax.Array, labels: jax.Array) -> jax.Array:
    return optax.softmax_cross_entropy_with_integer_labels(outputs(parameters, features), labels).mean()


def train(run: pyaccount.TrainingRun, checkpoint: Path, until: int) -> tuple[Any, dict[str, float]]:
    """Train until a round, and save a checkpoint. Return the parameters, and what is logged."""
    features, labels = records()
    plan = execution_plan(run)
    clipped = jax.jit(plan.clipped_grad(loss, batch_argnums=(1, 2)))
    optimizer = optax.chain(plan.noise_addition_transform, optax.sgd(0.5, momentum=0.5))
    parameters = begun()
    state = optimizer.init(parameters)
    if checkpoint.exists():
        saved = pickle.loads(checkpoint.read_bytes())
        parameters, state = saved["parameters"], saved["state"]
        run.load_state_dict(saved["run"])
    for indices in plan.batch_selection_strategy.batch_iterator(RECORDS):
        sums = jax.tree.map(jnp.zeros_like, parameters)
        for part in split_and_pad_global_batch(indices, ROWS):
            more = clipped(parameters, features[part], labels[part], is_padding_example=part < 0)
            sums = jax.tree.map(jnp.add, sums, more)
        updates, state = optimizer.update(sums, state, parameters)  # records the round, hence not compiled
        parameters = optax.apply_updates(parameters, updates)
        if run.round == until:
            break
    checkpoint.write_bytes(pickle.dumps({"parameters": parameters, "state": state, "run": run.state_dict()}))
    return parameters, plan.logged()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--epsilon", type=float, default=8.0)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        certificate = pyaccount.certify(document(asked.epsilon))
        print(certificate.statement)
        for until in (ROUNDS // 2, ROUNDS):  # the second run goes on where the first one stopped
            with pyaccount.TrainingRun(certificate, folder / "run", records=RECORDS, clip_norm=1.0) as run:
                parameters, logged = train(run, folder / "checkpoint.pickle", until)
        certificate.save(folder / "training.cert.json")
    features, labels = records()
    accuracy = float((outputs(parameters, features).argmax(1) == labels).mean())
    print(json.dumps({"accuracy": accuracy, **logged}))


if __name__ == "__main__":
    main()

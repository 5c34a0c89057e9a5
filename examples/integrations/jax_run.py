"""A certified run in JAX: indices and noise as arrays, beside the same training by jax_privacy alone.

    python examples/integrations/jax_run.py [--rounds 64] [--epsilon 8] [--folder runs/jax]

Needs `pip install "pyaccount-dp[jax-privacy]"`. A logistic regression on records drawn here, b-min-sep batches and a banded
matrix, zero-out of one record at δ = 1e-5. Gradients are clipped and summed by jax_privacy's `clipped_grad` in both, in batches
of one padded size, so that nothing is compiled twice.

* `certified`: batches and noise are those of `pyaccount.TrainingRun`, as they were accounted, with a record of what was released.
* `alone`: batches of jax_privacy's `BMinSepSampling`, noise of its `matrix_factorization_privatizer`, at the certificate's σ, its
  matrix and its probability. Nothing counts or records its rounds.
"""

from __future__ import annotations

import argparse
import json
import secrets
import tempfile
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax_privacy import batch_selection, clipping, noise_addition
from jax_privacy.matrix_factorization import toeplitz

import pyaccount

RECORDS, FEATURES, BATCH, APART, CLIP, RATE = 2000, 8, 50, 8, 1.0, 0.5
#: Physical batches have so many rows, some of them padding.
ROWS = 64


def records() -> tuple[np.ndarray, np.ndarray]:
    """Features of norm 1 and labels that follow from them."""
    generator = np.random.default_rng(1)
    features = generator.normal(size=(RECORDS, FEATURES))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    return features.astype(np.float32), (features @ np.linspace(-1.0, 1.0, FEATURES) > 0.0).astype(np.float32)


def document(epsilon: float, rounds: int) -> dict[str, Any]:
    """The mechanism document."""
    return {
        "pyaccount": 1,
        "name": "jax",
        "privacy": {"adjacency": "zero-out", "epsilon": epsilon, "delta": 1e-5},
        "training": {"dataset_size": RECORDS, "expected_batch_size": BATCH, "iterations": rounds},
        "sampler": {"kind": "b-min-sep", "min_separation": APART},
        "matrix": {"kind": "banded-square-root", "bands": APART},
        "noise": {"multiplier": "solve"},
        "accounting": {"seed": 20261123, "tolerance": 0.05},
    }


def certify(asked: dict[str, Any], folder: Path) -> pyaccount.Certificate:
    """The certificate of the run in a folder, made if it is not there: a run goes on with its own."""
    path = folder / "training.cert.json"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        pyaccount.certify(asked).save(path)
    return pyaccount.Certificate.load(path)


def loss(weights: jax.Array, features: jax.Array, labels: jax.Array) -> jax.Array:
    """Of a batch of one, as `clipped_grad` calls it."""
    return jnp.mean(jax.nn.softplus(features @ weights) - labels * (features @ weights))


@jax.jit
def clipped_sum(weights: jax.Array, features: jax.Array, labels: jax.Array, padding: jax.Array) -> jax.Array:
    """Σ of the clipped gradients of the rows that are no padding."""
    summed = clipping.clipped_grad(loss, l2_clip_norm=CLIP, batch_argnums=(1, 2))
    return summed(weights, features, labels, is_padding_example=padding)


def certified(certificate: pyaccount.Certificate, folder: Path) -> np.ndarray:
    """The weights after a run of the certificate."""
    features, labels = records()
    weights = jnp.zeros(FEATURES)
    with pyaccount.TrainingRun(certificate, folder, records=RECORDS, clip_norm=CLIP) as run:
        while run.round < run.rounds:
            with run.step() as step:
                total = jnp.zeros_like(weights)
                # One at least: an empty batch is all padding, and its sum of zeros is released as any other.
                for indices, mask in step.batch.micro_batches(ROWS):
                    total += clipped_sum(weights, features[indices], labels[indices], ~mask)
                weights -= RATE * jnp.asarray(step.release(np.asarray(total)))
    return np.asarray(weights)


def alone(certificate: pyaccount.Certificate) -> np.ndarray:
    """The weights after the same rounds by jax_privacy."""
    features, labels = records()
    phase = certificate.data.phases[0]
    rate = BATCH / RECORDS
    sampler = batch_selection.BMinSepSampling(rate / (1 - rate * (APART - 1)), phase.iterations, APART)
    assert certificate.matrix is not None
    privatizer = noise_addition.matrix_factorization_privatizer(
        toeplitz.inverse_as_streaming_matrix(jnp.asarray(certificate.matrix.coefficients)),
        stddev=phase.noise_multiplier * CLIP,
        # Without a key it takes one of 31 bits, and of an integer JAX uses 32 bits.
        prng_key=jax.random.wrap_key_data(jnp.asarray(np.frombuffer(secrets.token_bytes(8), np.uint32))),
    )
    weights = jnp.zeros(FEATURES)
    state = privatizer.init(weights)
    for batch in sampler.batch_iterator(RECORDS):
        total = jnp.zeros_like(weights)
        for part in batch_selection.split_and_pad_global_batch(batch, ROWS):
            total += clipped_sum(weights, features[part], labels[part], part < 0)
        noisy, state = privatizer.update(total, state)
        weights -= RATE * noisy / BATCH
    return np.asarray(weights)


def accuracy(weights: np.ndarray) -> float:
    """On the records trained on, which is enough to see that something was learned."""
    features, labels = records()
    return float(np.mean((features @ weights > 0.0) == labels))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=64)
    parser.add_argument("--epsilon", type=float, default=8.0)
    parser.add_argument("--folder", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.folder or Path(temporary) / "run"
        certificate = certify(document(asked.epsilon, asked.rounds), folder)
        print(certificate.statement)
        seen = {"certified": accuracy(certified(certificate, folder)), "alone": accuracy(alone(certificate))}
    print(json.dumps(seen))


if __name__ == "__main__":
    main()

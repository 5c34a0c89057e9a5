"""Handwritten digits under three samplers at equal (ε, δ): DP-SGD beside correlated noise, each run as it was certified.

    python examples/train_digits.py [--epsilon 1 2 4] [--runs 10] [--epochs 20] [--plot digits.svg]

The data are scikit-learn's 1797 digits of 8 × 8 pixels (`pip install 'pyaccount[examples]'`), split once; the model is a softmax
regression, whose gradients have a closed form, so that numpy is enough. Every certificate is of zero-out of one record at
δ = 1e-5, in batches of the same expected size:

* Poisson sampling with independent noise (DP-SGD);
* b-min-sep sampling with a banded Toeplitz matrix, of the bands with the least prefix-sum error;
* balls in bins, one bin for each round of an epoch, with a banded matrix.

Each method has the learning rate with the best mean accuracy of a few; that choice is not private, and is the same favour to all.
Printed is the mean test accuracy over the runs, each with a key of its own, and its standard error.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits

import pyaccount

Array = NDArray[np.float64]
RECORDS, TESTED, CLASSES, BATCH = 1440, 357, 10, 72
#: The rounds of an epoch.
EPOCH = RECORDS // BATCH
RATES = (0.25, 0.5, 1.0, 2.0)


@dataclass(frozen=True)
class Data:
    """Pixels with a constant one, of norm 1 at most; and which digit."""

    features: Array
    digits: NDArray[np.int64]
    tested: Array
    answers: NDArray[np.int64]


def data() -> Data:
    """The digits, split once."""
    found = load_digits()
    pixels = np.hstack([found.data / 16.0, np.ones((len(found.data), 1))])
    # Every record's features have the same norm, which needs nothing of the other records.
    features = pixels / np.linalg.norm(pixels, axis=1, keepdims=True)
    order = np.random.default_rng(1).permutation(len(features))
    train, test = order[:RECORDS], order[RECORDS : RECORDS + TESTED]
    return Data(features[train], found.target[train], features[test], found.target[test])


def methods(epsilon: float, epochs: int) -> dict[str, dict[str, Any]]:
    """The mechanism documents."""

    def document(name: str, **sections: Any) -> dict[str, Any]:
        return {
            "pyaccount": 1,
            "name": name,
            "privacy": {"adjacency": "zero-out", "epsilon": epsilon, "delta": 1e-5},
            "training": {"dataset_size": RECORDS, "expected_batch_size": BATCH, "iterations": epochs * EPOCH},
            "noise": {"multiplier": "solve"},
            "accounting": {"seed": 20261123, "tolerance": 0.02},
            **sections,
        }

    bands = {"kind": "optimal-toeplitz", "bands": {"choose": [2, 4, 8, 16]}}
    return {
        "DP-SGD, Poisson": document("poisson", sampler={"kind": "poisson"}, accounting={}),
        "b-min-sep, banded": document("b-min-sep", sampler={"kind": "b-min-sep"}, matrix=bands),
        "balls in bins, banded": document("bins", sampler={"kind": "balls-in-bins", "bins": EPOCH}, matrix=bands),
    }


def slopes(weights: Array, features: Array, digits: NDArray[np.int64], clip_norm: float) -> Array:
    """The sum of the clipped gradients: of one record (p − y)xᵀ, whose norm is ‖p − y‖·‖x‖."""
    scores = features @ weights
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    errors = scores / scores.sum(axis=1, keepdims=True)
    errors[np.arange(len(digits)), digits] -= 1.0
    norms = np.linalg.norm(errors, axis=1) * np.linalg.norm(features, axis=1)
    return features.T @ (errors * np.minimum(1.0, clip_norm / np.maximum(norms, 1e-30))[:, None])


def accuracy(certificate: pyaccount.Certificate, found: Data, rate: float, folder: Path, **options: Any) -> float:
    """Of one run with a new key."""
    weights = np.zeros((found.features.shape[1], CLASSES))
    records = len(found.features)
    with pyaccount.TrainingRun(certificate, folder, records=records, clip_norm=1.0, **options) as run:
        while run.round < run.rounds:
            with run.step() as step:
                batch = step.batch.indices
                sums = slopes(weights, found.features[batch], found.digits[batch], run.clip_norm)
                weights = weights - rate * np.asarray(step.release(sums))
    return float(np.mean((found.tested @ weights).argmax(axis=1) == found.answers))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 2.0, 4.0])
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--plot", type=Path)
    arguments = parser.parse_args()
    found = data()
    table = Table(title=f"Test accuracy after {arguments.epochs} epochs, δ = 1e-5, {arguments.runs} runs")
    for heading in ("ε", "method", "bands", "σ", "learning rate", "accuracy", "standard error"):
        table.add_column(heading, justify="right")
    curves: dict[str, list[tuple[float, float, float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for epsilon in arguments.epsilon:
            for name, document in methods(epsilon, arguments.epochs).items():
                certificate = pyaccount.certify(document)
                scores = {
                    rate: np.array(
                        [
                            accuracy(certificate, found, rate, Path(folder) / f"{epsilon}-{name}-{rate}-{k}")
                            for k in range(arguments.runs)
                        ]
                    )
                    for rate in RATES
                }
                rate = max(scores, key=lambda one: float(scores[one].mean()))
                mean = float(scores[rate].mean())
                error = float(scores[rate].std(ddof=1)) / arguments.runs**0.5 if arguments.runs > 1 else float("nan")
                bands, sigma = certificate.data.phases[0].matrix.bands, certificate.data.phases[0].noise_multiplier
                curves.setdefault(name, []).append((epsilon, mean, error))
                table.add_row(
                    f"{epsilon:g}", name, str(bands), f"{sigma:.4g}", f"{rate:g}", f"{mean:.4f}", f"{error:.4f}"
                )
    Console(width=110).print(table)
    if arguments.plot is not None:
        draw(curves, arguments.plot)


def draw(curves: dict[str, list[tuple[float, float, float]]], path: Path) -> None:
    """Accuracy against ε, with error bars of one standard error."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - an extra

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    for name, points in curves.items():
        epsilons, means, errors = zip(*sorted(points), strict=True)
        axes.errorbar(epsilons, means, yerr=errors, marker="o", capsize=3, label=name)
    axes.set(xlabel="ε at δ = 1e-5", ylabel="test accuracy", xscale="log")
    axes.legend()
    figure.savefig(path)


if __name__ == "__main__":
    main()

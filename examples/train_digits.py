"""Handwritten digits under three samplers at equal (ε, δ): DP-SGD beside correlated noise, each run as it was certified.

    python examples/train_digits.py [--epsilon 2] [--runs 10] [--trials 3] [--epochs 20] [--save digits.json]

The data are scikit-learn's 1797 digits of 8 × 8 pixels (`pip install "pyaccount-dp[examples]"`), split once; the model is a
softmax regression, whose gradients have a closed form, so that numpy is enough. Every certificate is of zero-out of one record
at δ = 1e-5, in batches of the same expected size:

* Poisson sampling with independent noise (DP-SGD);
* b-min-sep sampling with a banded Toeplitz matrix, of the bands with the least prefix-sum error;
* balls in bins, one bin for each round of an epoch, with a banded matrix.

Each method has the learning rate with the best mean test accuracy of a few, over a few runs that are not counted; that choice is
not private, and is the same favour to all. Printed is the mean test accuracy over further runs, each with a key of its own, and
its standard error. `--save` writes the accuracy of every run, from which docs/pictures/digits.py draws.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
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
#: The learning rates that are tried.
RATES = (0.5, 1.0, 2.0, 4.0)


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
        print(f"{folder.name}: head {run.head}", file=sys.stderr)
    return float(np.mean((found.tested @ weights).argmax(axis=1) == found.answers))


@dataclass(frozen=True)
class Learned:
    """What the runs of a certificate have learned, at the learning rate that did best in runs of its own."""

    rate: float
    accuracies: list[float]

    @property
    def mean(self) -> float:
        """Over the runs."""
        return float(np.mean(self.accuracies))

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        count = len(self.accuracies)
        return float(np.std(self.accuracies, ddof=1)) / count**0.5 if count > 1 else float("nan")

    def cells(self) -> tuple[str, str, str]:
        """For a table."""
        return f"{self.rate:g}", f"{self.mean:.4f}", f"{self.error:.4f}"


def learned(run: Callable[[float, Path], float], runs: int, trials: int, folder: Path) -> Learned:
    """The accuracies of so many runs at the learning rate that did best in so many trials of each.

    `run` is given a rate and a new folder.
    """
    tried = {rate: [run(rate, folder / f"{rate}-{k}") for k in range(trials)] for rate in RATES}
    best = max(tried, key=lambda rate: float(np.mean(tried[rate])))
    return Learned(best, [run(best, folder / f"{k}") for k in range(runs)])


def save(path: Path | None, settings: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    """Write what was seen, if asked for: a line for each row."""
    if path is not None:
        lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
        path.write_text(f'{json.dumps(settings)[:-1]}, "rows": [\n{lines}\n]}}\n', encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[2.0])
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--save", type=Path)
    arguments = parser.parse_args()
    found, rows = data(), []
    table = Table(title=f"Test accuracy after {arguments.epochs} epochs, δ = 1e-5, {arguments.runs} runs")
    for heading in ("ε", "method", "bands", "σ", "learning rate", "accuracy", "standard error"):
        table.add_column(heading, justify="right")
    with tempfile.TemporaryDirectory() as folder:
        for epsilon in arguments.epsilon:
            for name, document in methods(epsilon, arguments.epochs).items():
                certificate = pyaccount.certify(document)
                run, place = partial(accuracy, certificate, found), Path(folder) / f"{epsilon}-{name}"
                seen = learned(run, arguments.runs, arguments.trials, place)
                bands, sigma = certificate.data.phases[0].matrix.bands, certificate.data.phases[0].noise_multiplier
                error = certificate.data.utility.prefix_sum_rmse
                rows.append(
                    {"epsilon": epsilon, "method": name, "bands": bands, "sigma": sigma, "rmse": error, **asdict(seen)}
                )
                table.add_row(f"{epsilon:g}", name, str(bands), f"{sigma:.4g}", *seen.cells())
    Console(width=110).print(table)
    save(arguments.save, {"epochs": arguments.epochs, "trials": arguments.trials}, rows)


if __name__ == "__main__":
    main()

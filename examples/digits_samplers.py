"""Six ways to form batches at equal noise: what they cost in privacy, and what the model learns.

    python examples/digits_samplers.py [--noise 2] [--runs 10] [--trials 3] [--epochs 10] [--save samplers.json]

The samplers of the paper on two-stage sampling (arXiv:2312.13389). Every one gets the same noise, batch and number of rounds, and
accuracies are compared. Beside each stands the ε that is certified for it at δ = 1e-5, zero-out of one record, which is not the
same for all: at equal noise the samplers are not equally private. (The paper gives every sampler the noise at which its formulas
have one ε for each round; docs/results.md says what comes of either.) The data and the model are those of train_digits.py.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from train_digits import BATCH, EPOCH, RECORDS, accuracy, data, learned, save

import pyaccount

#: The subset that the two-stage samplers draw batches from.
SUBSET = 4 * BATCH
SAMPLERS: dict[str, dict[str, Any]] = {
    "poisson": {},
    "fixed-size": {},
    "with-replacement": {},
    "must-ow": {"subset_size": SUBSET},
    "must-wo": {"subset_size": SUBSET},
    "must-ww": {"subset_size": SUBSET},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--noise", type=float, default=2.0)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--save", type=Path)
    arguments = parser.parse_args()
    found, rows = data(), []
    table = Table(title=f"σ = {arguments.noise:g}, {arguments.epochs} epochs, δ = 1e-5, {arguments.runs} runs")
    for heading in ("sampler", "ε at least", "ε at most", "learning rate", "accuracy", "standard error"):
        table.add_column(heading, justify="right")
    with tempfile.TemporaryDirectory() as folder:
        for kind, fields in SAMPLERS.items():
            certificate = pyaccount.certify(
                {
                    "pyaccount": 1,
                    "name": kind,
                    "privacy": {"adjacency": "zero-out", "epsilon": "solve", "delta": 1e-5},
                    "training": {
                        "dataset_size": RECORDS,
                        "expected_batch_size": BATCH,
                        "iterations": arguments.epochs * EPOCH,
                    },
                    "sampler": {"kind": kind, **fields},
                    "noise": {"multiplier": arguments.noise},
                }
            )
            seen = learned(partial(accuracy, certificate, found), arguments.runs, arguments.trials, Path(folder) / kind)
            rows.append(
                {"sampler": kind, "least": certificate.epsilon_lower, "most": certificate.epsilon, **asdict(seen)}
            )
            table.add_row(kind, f"{certificate.epsilon_lower:.4g}", f"{certificate.epsilon:.4g}", *seen.cells())
    Console(width=110).print(table)
    save(arguments.save, {"sigma": arguments.noise, "epochs": arguments.epochs, "trials": arguments.trials}, rows)


if __name__ == "__main__":
    main()

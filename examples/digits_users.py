"""Users who share records: digits that belong to one or two users each, trained on by user-b-min-sep sampling.

    python examples/digits_users.py [--epsilon 8 16] [--runs 10] [--trials 3] [--rounds 160] [--save users.json]

Every record of train_digits.py gets a user, and every fifth a second one; whoever has more than two keeps two. A user with all of
its records is protected (zero-out, δ = 1e-4). Two runs at the same ε: on the records that nobody shares, where users are
sampled in secret, and on all records, where only the bound with public participations holds (docs/sampling.md). Printed is how
much noise either takes, and what it learns.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from train_digits import accuracy, data, learned, save

import pyaccount

#: The most records of a user, the rounds between two participations, the probability of a record, and how many users there are.
MOST, APART, PROBABILITY, USERS = 2, 8, 0.06, 800


def attributed(records: int, shared: bool) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of a record and a user, in two columns, of the records that are kept: nobody has more than `MOST`."""
    generator = np.random.default_rng(2)
    counted: Counter[int] = Counter()
    pairs: list[tuple[int, int]] = []
    for record in range(records):
        owners = generator.choice(USERS, size=2 if record % 5 == 0 else 1, replace=False).tolist()
        if (shared or len(owners) == 1) and all(counted[user] < MOST for user in owners):
            counted.update(owners)
            pairs += [(record, user) for user in owners]
    columns = np.array(pairs, dtype=np.int64).T
    return columns[0], columns[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[8.0, 16.0])
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=160)
    parser.add_argument("--save", type=Path)
    arguments = parser.parse_args()
    rows = []
    table = Table(
        title=f"{arguments.rounds} rounds, δ = 1e-4, users with at most {MOST} records, {arguments.runs} runs"
    )
    for heading in ("ε", "records", "kept", "σ", "learning rate", "accuracy", "standard error"):
        table.add_column(heading, justify="right")
    with tempfile.TemporaryDirectory() as folder:
        for epsilon in arguments.epsilon:
            for shared in (False, True):
                cells, row = one_row(epsilon, shared, arguments, Path(folder))
                table.add_row(*cells)
                rows.append(row)
    Console(width=110).print(table)
    save(arguments.save, {"rounds": arguments.rounds, "trials": arguments.trials}, rows)


def one_row(epsilon: float, shared: bool, asked: argparse.Namespace, folder: Path) -> tuple[list[str], dict[str, Any]]:
    """Certify, train, and put it in words."""
    found = data()
    records, users = attributed(len(found.features), shared)
    kept, numbers = np.unique(records, return_inverse=True)
    found = replace(found, features=found.features[kept], digits=found.digits[kept])
    certificate = pyaccount.certify(document(epsilon, shared, asked.rounds, len(kept)))
    options: dict[str, Any] = {
        "attribution": np.stack([numbers, users]),
        # What a batch has if nobody waits: a constant, known without the data.
        "normaliser": PROBABILITY * len(kept) / 2,
    }
    run = partial(accuracy, certificate, found, **options)
    seen = learned(run, asked.runs, asked.trials, folder / f"{epsilon}-{shared}")
    records_are, sigma = "shared too" if shared else "unshared", certificate.noise_multiplier
    cells = [f"{epsilon:g}", records_are, str(len(kept)), f"{sigma:.4g}", *seen.cells()]
    return cells, {"epsilon": epsilon, "records": records_are, "kept": len(kept), "sigma": sigma, **asdict(seen)}


def document(epsilon: float, shared: bool, rounds: int, records: int) -> dict[str, Any]:
    """The mechanism document."""
    return {
        "pyaccount": 1,
        "name": "users-sharing-records" if shared else "users",
        "privacy": {"adjacency": "zero-out", "epsilon": epsilon, "delta": 1e-4},
        "training": {"dataset_size": records, "sampling_probability": PROBABILITY, "iterations": rounds},
        "sampler": {
            "kind": "user-b-min-sep",
            "records_per_user": MOST,
            "attribution": "shared" if shared else "single",
            "min_separation": APART,
        },
        "matrix": {"kind": "optimal-toeplitz", "bands": APART},
        "noise": {"multiplier": "solve"},
        "accounting": {"tolerance": 0.02} if shared else {"tolerance": 0.02, "seed": 20261123},
    }


if __name__ == "__main__":
    main()

"""User-level privacy in the arXiv setting of the b-min-sep paper: prefix-sum MSE, ours beside its Figure 6.

    python examples/arxiv_users.py [--epsilon 4 --epsilon 8 ...]

1000 iterations, an expected batch of 1024 of about 300,000 papers, at most two papers for each author, δ = 2e-6, the best of
2 to 32 bands. Four rows:

* DP-SGD with Poisson sampling, judged by the mixture for groups of two records;
* a matrix of 128 bands without sampling, no author in more than 7 batches and these 128 apart;
* b-min-sep sampling as if no paper had two authors, which is what the paper's analysis assumes;
* b-min-sep sampling with papers that have several authors: the bound of public participations, which holds.

Who wrote which paper is not public, so the sampling probability is an assumption, stated in the table: for Poisson sampling
1024/300000; for b-min-sep sampling the one at which an author of two papers that nobody shares has them drawn that often. With
shared papers the true one is larger, since more of them wait. Expect neither the paper's digits nor, with sharing, its order.
"""

from __future__ import annotations

import argparse
import sys
import time
from itertools import product
from typing import Any

from rich.console import Console
from rich.table import Table
from scipy.optimize import brentq  # type: ignore[import-untyped]

import pyaccount
from pyaccount.execute.options import RunOptions
from pyaccount.execute.sampling.forecast import forecast
from pyaccount.plan.matrices import strategy

EPSILONS = (1.0, 2.0, 4.0, 8.0, 16.0)
DELTA, ITERATIONS, RATE, RECORDS = 2e-6, 1000, 1024 / 300_000, 2
BANDS = [2, 4, 8, 16, 32]

#: Figure 6 of arXiv:2602.09338v1.
PAPER = {
    "dp-sgd": [379.60, 262.66, 177.80, 117.39, 77.52],
    "unamplified": [2156.55, 604.99, 174.46, 52.63, 16.92],
    "as if unshared": [537.39, 170.98, 58.75, 21.42, 8.75],
    "shared": [537.39, 170.98, 58.75, 21.42, 8.75],
}


def probability(separation: int) -> float:
    """p at which each of a user's records is drawn at the rate wanted: rate = p/(1 + (b − 1)(1 − (1 − p)^k))."""

    def excess(p: float) -> float:
        return p / (1.0 + (separation - 1) * (1.0 - (1.0 - p) ** RECORDS)) - RATE

    return float(brentq(excess, RATE, 1.0, xtol=1e-15))


def documents(row: str, epsilon: float) -> list[dict[str, Any]]:
    """The mechanism documents of a cell, of which the best counts."""
    common: dict[str, Any] = {"pyaccount": 1, "name": row, "noise": {"multiplier": "solve"}}
    privacy: dict[str, Any] = {"adjacency": "zero-out", "epsilon": epsilon, "delta": DELTA}
    training: dict[str, Any] = {"iterations": ITERATIONS}
    if row == "dp-sgd":
        group = {"privacy": privacy | {"group_size": RECORDS}, "sampler": {"kind": "poisson"}}
        return [common | group | {"training": training | {"sampling_probability": RATE}}]
    kinds: dict[str, Any] = {"kind": {"choose": ["banded-square-root", "optimal-toeplitz"]}}
    if row == "unamplified":
        sampler: dict[str, Any] = {"kind": "none", "min_separation": 128, "max_participations": 7}
        parts = {"privacy": privacy, "training": training, "sampler": sampler, "matrix": kinds | {"bands": 128}}
        return [common | parts]
    found = []
    # Where δ is sampled, candidates are compared by the pilot, one by one.
    sampled = row != "shared"
    for bands, kind in product(BANDS, kinds["kind"]["choose"] if sampled else [kinds["kind"]]):
        sampler = {
            "kind": "user-b-min-sep",
            "records_per_user": RECORDS,
            "attribution": "shared" if row == "shared" else "single",
            "min_separation": bands,
            "start": "cold",
        }
        parts = {
            "privacy": privacy,
            "training": training | {"sampling_probability": probability(bands)},
            "sampler": sampler,
            "matrix": {"kind": kind, "bands": bands},
        }
        accounting = {"accounting": {"seed": 20260209, "profile": [], "tolerance": 0.02}} if sampled else {}
        found.append(common | parts | accounting)
    return found


def estimated_error(document: dict[str, Any]) -> float:
    """The mean square error of prefix sums, with the noise that the pilot estimates."""
    plan = pyaccount.compile(document)
    sigma = forecast(plan, RunOptions()).noise_multiplier
    assert sigma is not None
    return sigma * sigma * strategy(plan.theorems[0]).error.mean_square


def certified(row: str, epsilon: float) -> pyaccount.Certificate:
    """The certificate of the best document of a cell."""
    candidates = documents(row, epsilon)
    if row == "as if unshared":
        candidates = [min(candidates, key=estimated_error)]
    return min((pyaccount.certify(document) for document in candidates), key=error)


def error(certificate: pyaccount.Certificate) -> float:
    """The mean square error of prefix sums."""
    assert certificate.data.utility is not None
    return certificate.data.utility.prefix_sum_mse


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epsilon", type=float, action="append", choices=EPSILONS)
    parser.add_argument("--rows", nargs="+", choices=list(PAPER), default=list(PAPER))
    arguments = parser.parse_args()
    table = Table(title=f"Prefix-sum MSE, {RECORDS} records a user, n = {ITERATIONS}, δ = {DELTA:g}")
    for heading in ("row", "ε", "ours, certified", "guarantee", "σ", "matrix", "p assumed", "paper", "ours/paper", "s"):
        table.add_column(heading, justify="right")
    for row in arguments.rows:
        for epsilon in sorted(arguments.epsilon or EPSILONS):
            began = time.monotonic()
            best = certified(row, epsilon)
            phase, paper = best.data.phases[0], PAPER[row][EPSILONS.index(epsilon)]
            cells = (
                row,
                f"{epsilon:g}",
                f"{error(best):.2f}",
                best.data.guarantee.kind,
                f"{best.data.noise_multiplier:.5g}",
                f"{phase.matrix.kind} {phase.matrix.bands}",
                "none" if phase.sampling_probability is None else f"{phase.sampling_probability:.5f}",
                f"{paper:.2f}",
                f"{error(best) / paper:.3f}",
                f"{time.monotonic() - began:.0f}",
            )
            table.add_row(*cells)
            print("  ".join(cells), file=sys.stderr, flush=True)
    Console(width=150).print(table)


if __name__ == "__main__":
    main()

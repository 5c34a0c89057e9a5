"""Matrices of least error, side by side in one run: pyaccount's searches and jax_privacy 2.0.0's, where both have one.

Banded Toeplitz matrices and BLTs without sampling, and bands chosen under cyclic Poisson sampling. What is found is judged by
neither: C is written out, and the error of prefix sums is taken from its dense inverse. The peer's functions are compiled by jax
the first time: `first` is that time, `later` the median of the further ones, in turns. pyaccount's searches have no such first
time, and no random numbers. opake 0.16.1 optimises no matrix. Times never fail the run.
"""

from __future__ import annotations

import argparse
import logging
import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax_privacy.matrix_factorization import buffered_toeplitz, toeplitz
from rich.console import Console
from rich.table import Table
from scipy import linalg

import pyaccount
from pyaccount import strategies

jax.config.update("jax_enable_x64", True)
# dp_accounting tells of every Rényi order that it leaves out.
logging.getLogger("absl").setLevel(logging.ERROR)

Vector = np.ndarray[Any, np.dtype[np.float64]]

#: The CIFAR-10 setting of the b-min-sep paper, and BLTs for twenty epochs of it.
ITERATIONS, RECORDS, BATCH, EPSILON, DELTA = 2000, 50_000, 500, 8.0, 1e-5
APART, PARTICIPATIONS = 100, 20


@dataclass(frozen=True)
class Contest:
    """A matrix that both look for, each by a function without arguments, and how it is judged: less is better."""

    label: str
    ours: Callable[[], Any]
    peers: Callable[[], Any]
    judged: Callable[[Any], float]


def error(column: Vector, rounds: range) -> float:
    """The root mean square error of prefix sums, times ‖Cx‖ for participation in these rounds, from dense matrices."""
    first = np.zeros(ITERATIONS)
    first[: len(column)] = column
    matrix = linalg.toeplitz(first, np.zeros(ITERATIONS))
    sums = linalg.solve_triangular(matrix.T, np.tril(np.ones((ITERATIONS, ITERATIONS))).T, lower=False)
    return float(np.linalg.norm(sums) / math.sqrt(ITERATIONS) * np.linalg.norm(matrix[:, list(rounds)].sum(axis=1)))


def banded(bands: int) -> Contest:
    """Columns of so many coefficients, of which one counts at a time."""
    return Contest(
        f"{bands} bands",
        lambda: strategies.optimal_toeplitz(ITERATIONS, bands),
        lambda: np.asarray(toeplitz.optimize_banded_toeplitz(ITERATIONS, bands)),
        lambda column: error(column, range(1)),
    )


def buffers(count: int, participations: int) -> Contest:
    """BLTs: their columns do not increase, so that rounds as near as they may be are the worst."""

    def peers() -> Vector:
        found = buffered_toeplitz.optimize(
            n=ITERATIONS,
            min_sep=APART,
            max_participations=participations,
            error="mean",
            min_buffers=count,
            max_buffers=count,
        )
        return np.asarray(found.toeplitz_coefs(ITERATIONS))

    return Contest(
        f"BLT, {count} buffers, {participations} participation{'s' if participations > 1 else ''}",
        lambda: strategies.blt(*strategies.optimal_blt(ITERATIONS, count, APART, participations), ITERATIONS),
        peers,
        lambda column: error(column, range(0, participations * APART, APART)),
    )


def cyclic() -> Contest:
    """The number of bands, with a part for each; both are certified by pyaccount, with the coefficients that were found."""
    widths = [width for width in range(1, RECORDS // BATCH + 1) if RECORDS % width == 0]

    def document(matrix: dict[str, Any]) -> dict[str, Any]:
        return {
            "pyaccount": 1,
            "name": "cyclic",
            "privacy": {"adjacency": "add-remove", "epsilon": EPSILON, "delta": DELTA},
            "training": {"dataset_size": RECORDS, "expected_batch_size": BATCH, "iterations": ITERATIONS},
            "sampler": {"kind": "cyclic-poisson"},
            "matrix": matrix,
            "noise": {"multiplier": "solve"},
        }

    def ours() -> Vector:
        choice = {"kind": "optimal-toeplitz", "bands": {"choose": widths}}
        return np.asarray(pyaccount.certify(document(choice)).matrix.coefficients)

    def peers() -> Vector:
        found, _ = toeplitz.optimize_coefs_for_amplifications(
            ITERATIONS, dataset_size=RECORDS, expected_batch_size=BATCH, epsilon=EPSILON, delta=DELTA
        )
        return np.asarray(found)

    def judged(column: Vector) -> float:
        found = pyaccount.certify(document({"kind": "toeplitz", "coefficients": column.tolist()}))
        assert found.noise_multiplier is not None
        stated = np.asarray(found.matrix.coefficients)
        return found.noise_multiplier * error(stated, range(1)) / float(np.linalg.norm(stated))

    return Contest(f"cyclic Poisson, bands chosen, ε = {EPSILON:g}", ours, peers, judged)


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    found = work()
    return time.perf_counter() - start, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3, help="further times of each")
    arguments = parser.parse_args()
    table = Table(title=f"RMSE of prefix sums at n = {ITERATIONS}, and the seconds that the search took")
    for heading in ("matrix", "jax_privacy", "pyaccount", "jax_privacy, first", "later", "pyaccount, first", "later"):
        table.add_column(heading, justify="left" if heading == "matrix" else "right")
    for contest in (banded(16), banded(64), buffers(3, 1), buffers(3, PARTICIPATIONS), cyclic()):
        seconds: tuple[list[float], list[float]] = ([], [])
        errors = [0.0, 0.0]
        for turn in range(arguments.repeats + 1):
            for side, work in enumerate((contest.peers, contest.ours)):
                took, found = timed(work)
                seconds[side].append(took)
                if turn == 0:
                    errors[side] = contest.judged(found)
        table.add_row(
            contest.label,
            *(f"{one:.6g}" for one in errors),
            *(f"{one:.3g}" for side in seconds for one in (side[0], statistics.median(side[1:] or side))),
        )
        print(contest.label, *(f"{one:.6g}" for one in errors), flush=True)
    Console(width=140).print(table)


if __name__ == "__main__":
    main()

"""Whole certificates beside opake-accounting 0.16.1, in one run: `pyaccount.certify`, and opake's distribution and its ε.

opake's Python layer does not import under every interpreter, so that its extension module is loaded by itself, and nothing of
it is kept between calls. pyaccount's tolerance is tightened, outside of the timed part, until its ε is at most opake's; then both
take turns. Every call has another σ, by a relative 1e-12, so that nothing that was kept is of use. pyaccount's time has the
document, both directions and ends, and the certificate in it; opake's the upper end alone. b-min-sep is sampled by both: opake's
bound holds with probability 1 − 1e-6, and pyaccount's with what its certificate says, which is printed.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import itertools
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from opake_native import native
from rich.console import Console
from rich.table import Table

import pyaccount

LOOSEST, STEP, TIGHTEST = 0.1, 10**-0.5, 1e-6


OPAKE = native()


@dataclass(frozen=True)
class Row:
    """A setting: the parts of its document that are its own, σ, and what opake says of it."""

    label: str
    delta: float
    sigma: float
    sections: dict[str, Any]
    peer: Callable[[float], Any]
    adjacency: str = "add-remove"

    def document(self, sigma: float, tolerance: float) -> dict[str, Any]:
        """With ε blank and no profile."""
        return {
            "pyaccount": 1,
            "name": "benchmark",
            "privacy": {"adjacency": self.adjacency, "epsilon": "solve", "delta": self.delta},
            "noise": {"multiplier": sigma},
            "accounting": {"tolerance": tolerance, "profile": [], "seed": 20261122},
        } | self.sections

    def ours(self, sigma: float, tolerance: float) -> pyaccount.Certificate:
        """pyaccount's answer."""
        return pyaccount.certify(self.document(sigma, tolerance))

    def theirs(self, sigma: float) -> float:
        """opake's ε."""
        return float(self.peer(sigma).epsilon_at(self.delta))


def square_root(bands: int) -> list[float]:
    """The first coefficients of the square root of the prefix sums, with norm 1."""
    found = [1.0]
    for j in range(1, bands):
        found.append(found[-1] * (2 * j - 1) / (2 * j))
    norm = sum(value * value for value in found) ** 0.5
    return [value / norm for value in found]


def rows() -> list[Row]:
    """Poisson sampling, truncated and in several draws; random allocation; b-min-sep."""
    config = OPAKE.DiscretizationConfig()

    def poisson(rate: float, rounds: int) -> Callable[[float], Any]:
        return lambda sigma: OPAKE.poisson_pld(OPAKE.gaussian_pld(sigma, config), rate).self_compose(rounds)

    def sampled(rate: float, rounds: int, **sampler: int) -> dict[str, Any]:
        training = {"sampling_probability": rate, "iterations": rounds}
        return {"training": training, "sampler": {"kind": "poisson", **sampler}}

    def allocated(count: int) -> dict[str, Any]:
        sampler = {"kind": "random-allocation", "iterations_per_allocation": 100}
        return {"training": {"iterations": 100 * count}, "sampler": sampler}

    def allocation(count: int) -> Callable[[float], Any]:
        return lambda sigma: OPAKE.random_allocation_gaussian_pld(sigma, 100, 1, config).self_compose(count)

    truncated = sampled(0.01, 2_000, truncate_to=550)
    truncated["training"]["dataset_size"] = 50_000
    kept = square_root(8)
    correlated = {
        "training": {"sampling_probability": 0.02, "iterations": 256},
        "sampler": {"kind": "b-min-sep", "min_separation": 8},
        "matrix": {"kind": "toeplitz", "coefficients": kept},
    }
    return [
        Row("Poisson, p = 0.01, σ = 1, n = 2000", 1e-6, 1.0, sampled(0.01, 2_000), poisson(0.01, 2_000)),
        Row("Poisson, p = 0.001, σ = 0.8, n = 100,000", 1e-6, 0.8, sampled(0.001, 100_000), poisson(0.001, 100_000)),
        Row(
            "four draws, p = 0.01 each, σ = 1, n = 2000",
            1e-6,
            1.0,
            sampled(0.01, 2_000, draws_per_iteration=4),
            lambda sigma: OPAKE.parallel_poisson_gaussian_pld(sigma, 0.01, 4, config).self_compose(2_000),
        ),
        Row(
            "truncated to 550, p = 0.01, N = 50,000, σ = 1, n = 2000",
            1e-6,
            1.0,
            truncated,
            lambda sigma: OPAKE.truncated_poisson_gaussian_pld(sigma, 0.01, 550, 50_000, config).self_compose(2_000),
            "zero-out",
        ),
        Row("random allocation, t = 100, σ = 1", 1e-5, 1.0, allocated(1), allocation(1)),
        Row("random allocation, t = 100, σ = 1, 20 times", 1e-5, 1.0, allocated(20), allocation(20)),
        Row(
            "b-min-sep, b = 8, p = 0.02, n = 256, σ = 1.2",
            1e-4,
            1.2,
            correlated,
            lambda sigma: OPAKE.bandmf_b_min_sep_warm_mc_pld(kept, 256, 0.02, sigma, config),
        ),
    ]


def tight(row: Row, theirs: float) -> tuple[float, pyaccount.Certificate]:
    """The loosest tolerance with an ε at most opake's, and the certificate there; the tightest if there is none."""
    tolerance = LOOSEST
    while True:
        found = row.ours(row.sigma, tolerance)
        if found.epsilon <= theirs or tolerance <= TIGHTEST:
            return tolerance, found
        tolerance *= STEP


def clock(work: Callable[[], object]) -> float:
    """Seconds of a call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def near(sigma: float) -> Iterator[float]:
    """Values of σ that nobody has seen, so near that nothing else changes."""
    return (sigma * (1.0 + 1e-12 * turn) for turn in itertools.count(1))


def main() -> None:
    """Compare, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default="", help="run only the rows whose label has this text")
    arguments = parser.parse_args()
    table = Table(title=f"pyaccount beside opake-accounting {importlib.metadata.version('opake-accounting')}")
    for heading in (
        "setting",
        "opake: ε ≤",
        "pyaccount: ε in",
        "fails with",
        "tolerance",
        "opake",
        "pyaccount",
        "ratio",
    ):
        table.add_column(heading)
    console = Console(width=170)
    for row in rows():
        if arguments.only not in row.label:
            continue
        theirs = row.theirs(row.sigma)
        tolerance, found = tight(row, theirs)
        sigmas, peer, own = near(row.sigma), [], []
        for _ in range(arguments.repeats):
            peer.append(clock(lambda: row.theirs(next(sigmas))))  # noqa: B023 - called at once
            own.append(clock(lambda: row.ours(next(sigmas), tolerance)))  # noqa: B023 - called at once
        guarantee = found.data.guarantee
        ratio = statistics.median(peer) / statistics.median(own)
        lower = "?" if guarantee.epsilon_lower is None else f"{guarantee.epsilon_lower:.5f}"
        table.add_row(
            row.label,
            f"{theirs:.5f}",
            f"[{lower}, {guarantee.epsilon:.5f}]{'' if found.epsilon <= theirs else ' NOT AS TIGHT'}",
            f"{guarantee.failure_probability:.0e}",
            f"{tolerance:.1e}",
            f"{statistics.median(peer):.3g} s",
            f"{statistics.median(own):.3g} s",
            f"{ratio:.1f}×",
        )
        console.print(f"{row.label}: {ratio:.1f}×")
    console.print(table)


if __name__ == "__main__":
    main()

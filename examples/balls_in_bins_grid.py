"""Balls in bins with matrices: how much less the error of prefix sums is than without sampling, as in the paper's grid.

    python examples/balls_in_bins_grid.py [--epochs 16 --bins 128 --epsilon 1 ...] [--plot grid.svg]

The settings of arXiv:2410.06266, Section 5.1 and Appendix B: 8, 16 or 32 epochs of 32, 64 or 128 iterations (16 of 128 make its
2048 iterations), δ = 1e-5. In each cell the reduction of the RMSE of prefix sums over the best banded matrix without sampling:

* `banded`: the best of the two banded matrices with 1 to 256 bands, by `choose:`;
* `blt 3`, `blt 4`: buffered linear Toeplitz matrices with 3 and 4 buffers.

Matrices are those of least error without sampling; the paper's, made for the sampling, are not among them. Every number is from
certified noise multipliers.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

from rich.console import Console
from rich.table import Table

import pyaccount

EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
EPOCHS, BINS, DELTA = (8, 16, 32), (32, 64, 128), 1e-5
BANDS = [1, 2, 4, 8, 16, 32, 64, 128, 256]
KINDS = {"choose": ["banded-square-root", "optimal-toeplitz"]}


def rmse(epochs: int, bins: int, epsilon: float, sampler: dict[str, Any], matrix: dict[str, Any]) -> float:
    """The certified root mean square error of prefix sums."""
    document = {
        "pyaccount": 1,
        "name": f"{epochs}-epochs-of-{bins}",
        "privacy": {"adjacency": "zero-out", "epsilon": epsilon, "delta": DELTA},
        "training": {"iterations": epochs * bins},
        "sampler": sampler,
        "matrix": matrix,
        "noise": {"multiplier": "solve"},
    }
    if sampler["kind"] != "none":
        document["accounting"] = {"seed": 20241008, "profile": [], "tolerance": 0.01}
    certificate = pyaccount.certify(document)
    assert certificate.data.utility is not None
    return certificate.data.utility.prefix_sum_rmse


def cell(epochs: int, bins: int, epsilon: float) -> dict[str, float]:
    """The reductions of one cell, as shares of the error without sampling."""
    bands = [width for width in BANDS if width <= epochs * bins]
    apart = {"kind": "none", "min_separation": bins, "max_participations": epochs}
    plain = rmse(epochs, bins, epsilon, apart, {"kind": KINDS, "bands": {"choose": bands}})
    sampled = {"kind": "balls-in-bins", "bins": bins}
    matrices = {
        "banded": {"kind": KINDS, "bands": {"choose": bands}},
        "blt 3": {"kind": "blt", "buffers": 3},
        "blt 4": {"kind": "blt", "buffers": 4},
    }
    return {
        "unamplified": plain,
        **{name: 1.0 - rmse(epochs, bins, epsilon, sampled, matrix) / plain for name, matrix in matrices.items()},
    }


def draw(found: dict[tuple[int, int], dict[float, dict[str, float]]], path: str) -> None:
    """One small picture for each setting."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - an extra

    rows, columns = sorted({e for e, _ in found}), sorted({b for _, b in found})
    figure = Figure(figsize=(3.2 * len(columns), 2.6 * len(rows)), layout="constrained")
    axes = figure.subplots(len(rows), len(columns), squeeze=False, sharex=True, sharey=True)
    for (epochs, bins), cells in found.items():
        one = axes[rows.index(epochs)][columns.index(bins)]
        for name, style in (("banded", "o-"), ("blt 3", "s--"), ("blt 4", "^:")):
            one.plot(list(cells), [100.0 * cell[name] for cell in cells.values()], style, label=name, markersize=4)
        one.set_xscale("log", base=2)
        one.set_xticks(list(cells), [f"{epsilon:g}" for epsilon in cells])
        one.set_title(f"{epochs} epochs of {bins}", fontsize=9)
    axes[0][0].legend(fontsize=8)
    figure.supxlabel("ε", fontsize=9)
    figure.supylabel("reduction of the RMSE, %", fontsize=9)
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, action="append", choices=EPOCHS)
    parser.add_argument("--bins", type=int, action="append", choices=BINS, help="iterations an epoch")
    parser.add_argument("--epsilon", type=float, action="append", choices=EPSILONS)
    parser.add_argument("--plot", help="also a picture, to this file (extra `plot`)")
    arguments = parser.parse_args()
    table = Table(title="RMSE of prefix sums with balls in bins, below that of the best banded matrix without sampling")
    for heading in ("epochs", "bins", "ε", "without sampling", "banded", "blt 3", "blt 4", "s"):
        table.add_column(heading, justify="right")
    found: dict[tuple[int, int], dict[float, dict[str, float]]] = {}
    for epochs in sorted(arguments.epochs or EPOCHS):
        for bins in sorted(arguments.bins or BINS):
            for epsilon in sorted(arguments.epsilon or EPSILONS):
                began = time.monotonic()
                numbers = cell(epochs, bins, epsilon)
                found.setdefault((epochs, bins), {})[epsilon] = numbers
                shares = (f"{100.0 * numbers[name]:.1f} %" for name in ("banded", "blt 3", "blt 4"))
                cells = (str(epochs), str(bins), f"{epsilon:g}", f"{numbers['unamplified']:.3f}", *shares)
                cells += (f"{time.monotonic() - began:.0f}",)
                table.add_row(*cells)
                print("  ".join(cells), file=sys.stderr, flush=True)
    Console(width=120).print(table)
    if arguments.plot is not None:
        draw(found, arguments.plot)


if __name__ == "__main__":
    main()

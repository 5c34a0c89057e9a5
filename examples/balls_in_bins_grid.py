"""Balls in bins with matrices: how much less the error of prefix sums is than without sampling, as in the paper's grid.

    python examples/balls_in_bins_grid.py [--epochs 16 --bins 128 --epsilon 1 ...] [--plot grid.svg]

The settings of arXiv:2410.06266, Section 5.1 and Appendix B: 8, 16 or 32 epochs of 32, 64 or 128 iterations (16 of 128 make its
2048 iterations), δ = 1e-5. In each cell the reduction of the RMSE of prefix sums over the best banded matrix without sampling:

* `banded`: the best of the two banded matrices with 1 to 256 bands, by `choose:`;
* `cyclic`: the same under cyclic Poisson sampling from as many fixed parts as there are bands;
* `blt 3`, `blt 4`: buffered linear Toeplitz matrices with 3 and 4 buffers, of least error without sampling;
* `blt 3 s`, `blt 4 s`, `bands s`: buffers, and as many bands as there are bins, optimised for the sampling at this ε
  (`optimize_for: sampling`), as the paper's are.

Every number is from certified noise multipliers. `--matrices` leaves some of them out.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

import pyaccount

EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
EPOCHS, BINS, DELTA = (8, 16, 32), (32, 64, 128), 1e-5
BANDS = [1, 2, 4, 8, 16, 32, 64, 128, 256]
KINDS = {"choose": ["banded-square-root", "optimal-toeplitz"]}
FOR_SAMPLING = {"optimize_for": "sampling"}
MATRICES = ("cyclic", "banded", "blt 3", "blt 4", "blt 3 s", "blt 4 s", "bands s")


def rmse(epochs: int, bins: int, epsilon: float, sampler: dict[str, Any], matrix: dict[str, Any]) -> float:
    """The certified root mean square error of prefix sums."""
    document = {
        "pyaccount": 1,
        "name": f"{epochs}-epochs-of-{bins}",
        "privacy": {"adjacency": "zero-out", "epsilon": epsilon, "delta": DELTA},
        "training": {"iterations": epochs * bins}
        | ({"participation_rate": 1.0 / bins} if sampler["kind"] == "cyclic-poisson" else {}),
        "sampler": sampler,
        "matrix": matrix,
        "noise": {"multiplier": "solve"},
    }
    if sampler["kind"] == "balls-in-bins":
        document["accounting"] = {"seed": 20241008, "profile": [], "tolerance": 0.01}
    certificate = pyaccount.certify(document)
    assert certificate.data.utility is not None
    return certificate.data.utility.prefix_sum_rmse


def cell(epochs: int, bins: int, epsilon: float, asked: Sequence[str]) -> dict[str, float]:
    """The reductions of one cell, as shares of the error without sampling."""
    bands = [width for width in BANDS if width <= epochs * bins]
    apart = {"kind": "none", "min_separation": bins, "max_participations": epochs}
    plain = rmse(epochs, bins, epsilon, apart, {"kind": KINDS, "bands": {"choose": bands}})
    sampled, cyclic = {"kind": "balls-in-bins", "bins": bins}, {"kind": "cyclic-poisson"}
    matrices: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "cyclic": (cyclic, {"kind": "optimal-toeplitz", "bands": {"choose": [one for one in bands if one <= bins]}}),
        "banded": (sampled, {"kind": KINDS, "bands": {"choose": bands}}),
        **{f"blt {buffers}": (sampled, {"kind": "blt", "buffers": buffers}) for buffers in (3, 4)},
        **{f"blt {buffers} s": (sampled, {"kind": "blt", "buffers": buffers} | FOR_SAMPLING) for buffers in (3, 4)},
        "bands s": (sampled, {"kind": "optimal-toeplitz", "bands": bins} | FOR_SAMPLING),
    }
    return {
        "unamplified": plain,
        **{name: 1.0 - rmse(epochs, bins, epsilon, *matrices[name]) / plain for name in asked},
    }


def draw(found: dict[tuple[int, int], dict[float, dict[str, float]]], path: str) -> None:
    """One small picture for each setting."""
    from matplotlib.figure import Figure  # an extra

    rows, columns = sorted({e for e, _ in found}), sorted({b for _, b in found})
    figure = Figure(figsize=(3.2 * len(columns), 2.6 * len(rows)), layout="constrained")
    axes = figure.subplots(len(rows), len(columns), squeeze=False, sharex=True, sharey=True)
    for (epochs, bins), cells in found.items():
        one = axes[rows.index(epochs)][columns.index(bins)]
        names = [name for name in MATRICES if name in next(iter(cells.values()))]
        for name, style in zip(names, ("x-", "o-", "s--", "^:", "D--", "v:", "P-"), strict=False):
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
    parser.add_argument("--matrices", nargs="+", choices=MATRICES, default=list(MATRICES))
    parser.add_argument("--plot", help="also a picture, to this file (needs matplotlib)")
    arguments = parser.parse_args()
    table = Table(title="RMSE of prefix sums with balls in bins, below that of the best banded matrix without sampling")
    for heading in ("epochs", "bins", "ε", "without sampling", *arguments.matrices, "s"):
        table.add_column(heading, justify="right")
    found: dict[tuple[int, int], dict[float, dict[str, float]]] = {}
    for epochs in sorted(arguments.epochs or EPOCHS):
        for bins in sorted(arguments.bins or BINS):
            for epsilon in sorted(arguments.epsilon or EPSILONS):
                began = time.monotonic()
                numbers = cell(epochs, bins, epsilon, arguments.matrices)
                found.setdefault((epochs, bins), {})[epsilon] = numbers
                shares = (f"{100.0 * numbers[name]:.1f} %" for name in arguments.matrices)
                cells = (str(epochs), str(bins), f"{epsilon:g}", f"{numbers['unamplified']:.3f}", *shares)
                cells += (f"{time.monotonic() - began:.0f}",)
                table.add_row(*cells)
                print("  ".join(cells), file=sys.stderr, flush=True)
    Console(width=120).print(table)
    if arguments.plot is not None:
        draw(found, arguments.plot)


if __name__ == "__main__":
    main()

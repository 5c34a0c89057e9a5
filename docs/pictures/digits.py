"""The picture of the runs on digits in docs/results.md: test accuracy at equal (ε, δ), with error bars.

    python docs/pictures/digits.py [FOLDER]

Drawn by matplotlib from digits.json beside it, which `examples/train_digits.py --save` wrote; a test compares
the file with what is drawn here.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

HERE = Path(__file__).parent
#: Text stays text, and nothing in the file depends on when or where it was drawn.
SETTINGS = {"svg.fonttype": "none", "svg.hashsalt": "digits"}


def draw(folder: Path) -> None:
    """Write digits.svg: for each method a line of means, with bars of one standard error to either side."""
    seen = json.loads((HERE / "digits.json").read_text(encoding="utf-8"))
    methods = dict.fromkeys(row["method"] for row in seen["rows"])
    with mpl.rc_context(SETTINGS):
        figure = Figure(figsize=(6.4, 3.8), layout="constrained")
        axes = figure.subplots()
        for place, method in enumerate(methods):
            rows = [row for row in seen["rows"] if row["method"] == method]
            means = [np.mean(row["accuracies"]) for row in rows]
            errors = [np.std(row["accuracies"], ddof=1) / len(row["accuracies"]) ** 0.5 for row in rows]
            # Side by side, so that bars do not hide one another.
            epsilons = [row["epsilon"] * 1.03 ** (place - 1) for row in rows]
            axes.errorbar(epsilons, means, yerr=errors, marker="o", markersize=4, capsize=3, label=method)
        ticks = sorted({row["epsilon"] for row in seen["rows"]})
        axes.set(xlabel="ε at δ = 1e-5", ylabel="test accuracy", xscale="log")
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
        axes.legend()
        figure.savefig(folder / "digits.svg", metadata={"Date": None, "Title": "Test accuracy on digits against ε"})


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)

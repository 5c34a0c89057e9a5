"""The picture of matrices optimised for balls in bins in docs/results.md: how much smaller the error is than without sampling.

    python docs/pictures/bins.py [FOLDER]

Drawn by matplotlib from bins.json beside it, which has what the command named there printed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

HERE = Path(__file__).parent
#: Text stays text, and nothing in the file depends on when or where it was drawn.
SETTINGS = {"svg.fonttype": "none", "svg.hashsalt": "bins"}
LOOKS = ("x-", "o-", "s--", "^:")


def draw(folder: Path) -> None:
    """Write bins.svg: a picture for each setting, in it a line for each sampler and matrix."""
    seen = json.loads((HERE / "bins.json").read_text(encoding="utf-8"))
    epsilons, settings = seen["epsilons"], seen["reductions"]
    with mpl.rc_context(SETTINGS):
        figure = Figure(figsize=(8.0, 6.8), layout="constrained")
        grid = figure.subplots(3, len(settings) // 3, sharex=True, sharey=True)
        for axes, (setting, lines) in zip(grid.flat, settings.items(), strict=True):
            for (label, shares), look in zip(lines.items(), LOOKS, strict=True):
                axes.plot(epsilons, shares, look, markersize=4, label=label)
            axes.set(xscale="log")
            axes.set_title(setting, fontsize="medium")
            axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
            axes.minorticks_off()
        figure.legend(*grid.flat[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
        figure.supxlabel("ε at δ = 1e-5", fontsize="medium")
        figure.supylabel("reduction of the RMSE, %", fontsize="medium")
        figure.savefig(folder / "bins.svg", metadata={"Date": None, "Title": "Errors with balls in bins against ε"})


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)

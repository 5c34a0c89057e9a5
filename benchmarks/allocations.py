"""Random allocation of k of t rounds: ε at δ = 1e-5, beside PLD_accounting 2.0, opake and bis-mc-accountant (arXiv:2605.07072).

- **pyaccount, samples**: `accounting.method: monte-carlo`, tolerance 0.005: both ends of ε, with the whole certificate's seconds.
- **pyaccount, blocks**: the default, a composition of k allocations of one round, without samples.
- **PLD_accounting** composes the same blocks: `gaussian_allocation_epsilon_range`, with its default accuracy. Its interval is of
  the composition, above the allocation's own ε.
- **opake** composes the same blocks: `random_allocation_gaussian_pld`, with its default accuracy; an upper end alone.
- **bis-mc-accountant** draws plain samples, as many in each direction and for each candidate as are fixed in advance, and accepts
  if their mean is below a bar. Its own formula says how many prove the ε that pyaccount proves from samples, if its bar is where
  pyaccount estimates δ. The pace is that of its samples of a removed record, one process, at that ε. It was not run to the end:
  such figures begin with "about", and are core seconds of one direction. It comes as a repository: `--bis-mc FOLDER`.

jax_privacy 2.0.0 and dp_accounting 0.6.0 have no accountant of random allocation with k > 1. Without a peer its rows are left
out. By hand:
PLD_accounting is not in `requirements.lock`, and its lower ends take numba to end within minutes.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from opake_native import native
from rich.console import Console
from rich.table import Table

import pyaccount

DELTA = 1e-5
#: Seconds of the peer's samples by which its pace is told.
PACED = 10.0


@dataclass(frozen=True)
class Setting:
    """k of t rounds with noise σ."""

    sigma: float
    rounds: int
    taken: int

    def certificate(self, accounting: dict[str, Any], epsilon: float | str = "solve") -> pyaccount.Certificate:
        """Certify ε, or the claim about a stated one."""
        document: dict[str, Any] = {
            "pyaccount": 1,
            "name": "allocation",
            "privacy": {"adjacency": "add-remove", "epsilon": epsilon, "delta": DELTA},
            "training": {"iterations": self.rounds},
            "sampler": {
                "kind": "random-allocation",
                "iterations_per_allocation": self.rounds,
                "participations": self.taken,
            },
            "noise": {"multiplier": self.sigma},
            "accounting": {"seed": 7, "profile": []} | accounting,
        }
        return pyaccount.certify(document)


SETTINGS = (
    Setting(0.5, 1000, 10),
    Setting(0.6, 100, 10),
    Setting(0.7, 1000, 10),
    Setting(1.0, 1000, 50),
    Setting(1.0, 100, 3),
    Setting(0.4, 2000, 20),
)
Row = tuple[str, str, str, str]


def ours(setting: Setting, name: str, accounting: dict[str, Any]) -> tuple[Row, float]:
    """The row of a certificate, and its upper end."""
    began = time.perf_counter()
    found = setting.certificate(accounting)
    seconds, sampling = time.perf_counter() - began, found.data.evidence.sampling
    samples = sum(test.samples for test in sampling.tests) if sampling is not None else 0
    row = (
        name,
        f"[{found.epsilon_lower:.4g}, {found.epsilon:.5g}]",
        f"{samples:,}" if samples else "",
        f"{seconds:.1f}",
    )
    return row, found.epsilon


def composed(setting: Setting, peer: ModuleType) -> Row:
    """PLD_accounting's interval."""
    began = time.perf_counter()
    upper, lower = peer.gaussian_allocation_epsilon_range(
        delta=DELTA, sigma=setting.sigma, num_steps=setting.rounds, num_selected=setting.taken
    )
    low, high = sorted((float(lower), float(upper)))
    return "PLD_accounting", f"[{low:.4g}, {high:.5g}]", "", f"{time.perf_counter() - began:.1f}"


def opake(setting: Setting) -> Row | None:
    """opake's upper end, None where it is not installed."""
    try:
        peer = native()
    except ImportError:
        return None
    began = time.perf_counter()
    found = peer.random_allocation_gaussian_pld(
        setting.sigma, setting.rounds, setting.taken, peer.DiscretizationConfig()
    )
    upper = float(found.epsilon_at(DELTA))
    return "opake", f"≤ {upper:.5g}", "", f"{time.perf_counter() - began:.1f}"


def plain(setting: Setting, epsilon: float, folder: Path) -> Row:
    """What bis-mc-accountant needs for the claim that pyaccount proves from samples."""
    sys.path.insert(0, str(folder))
    likelihoods = importlib.import_module("symmetric_polynomial")
    deltas = importlib.import_module("delta_calculation")
    stated = setting.certificate({"method": "monte-carlo", "profile": [epsilon]}, epsilon)
    (point,) = stated.data.directions.remove.profile
    needed = deltas.minimum_samples_to_calibrate(point.delta_estimate, DELTA)
    drawn, began = 0, time.process_time()
    while time.process_time() - began < PACED:
        likelihoods.generate_llr_sample(setting.rounds, setting.taken, setting.sigma, epsilon)
        drawn += 1
    seconds = needed * (time.process_time() - began) / drawn
    return "bis-mc-accountant", f"≤ {epsilon:.5g}", f"about {needed:.1e}", f"about {seconds:,.0f}"


def installed(name: str) -> ModuleType | None:
    """A peer's package, if there is one."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def main() -> None:
    """Run every setting and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", type=int, nargs="*", default=range(len(SETTINGS)), help="settings by their places")
    parser.add_argument("--bis-mc", type=Path, help="a checkout of bis-mc-accountant")
    options = parser.parse_args()
    table = Table(title=f"Random allocation: ε at δ = {DELTA:g}", title_justify="left")
    for heading in ("σ, t, k", "tool", "ε", "samples", "seconds"):
        table.add_column(heading, no_wrap=True)
    blocks = installed("PLD_accounting")
    for setting in (SETTINGS[place] for place in options.only):
        row, epsilon = ours(setting, "pyaccount, samples", {"method": "monte-carlo", "tolerance": 0.005})
        rows = [row, ours(setting, "pyaccount, blocks", {})[0]]
        if blocks is not None:
            rows.append(composed(setting, blocks))
        peer = opake(setting)
        if peer is not None:
            rows.append(peer)
        if options.bis_mc is not None:
            rows.append(plain(setting, epsilon, options.bis_mc))
        label = f"{setting.sigma:g}, {setting.rounds}, {setting.taken}"
        for place, row in enumerate(rows):
            table.add_row(label if place == 0 else "", *row, end_section=place == len(rows) - 1)
            print(label, *row, sep=" | ", flush=True)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()

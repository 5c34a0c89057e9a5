"""Where a sampled certificate spends its time: samples, wall and core seconds of each stage.

python benchmarks/stages.py [b8 b64 b16 … document.yaml …]

The documents are certified in turn, in one process. Stages of one kind are added up.
"""

from __future__ import annotations

import argparse
import os
import re
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from pyaccount.document.document import Document
from pyaccount.document.loading import load
from pyaccount.execute.certified import CertifiedNumbers
from pyaccount.execute.options import RunOptions
from pyaccount.execute.sampling.execute import execute_sampled
from pyaccount.execute.sampling.shards import Sampler
from pyaccount.plan.compiled import CompiledDocument
from pyaccount.plan.compiling import compile_document

#: ε, δ, the separation, which is the number of bands, and the rounds.
SETTINGS = {
    "b8": (1.0, 1e-5, 8, 2000),
    "b64": (8.0, 1e-5, 64, 2000),
    "b16": (2.0, 1e-10, 16, 2000),
    "b4": (4.0, 1e-6, 4, 500),
    "b32": (0.5, 1e-6, 32, 1000),
}


def document(name: str) -> Document:
    if name.endswith(".yaml"):
        return load(Path(name))
    epsilon, delta, separation, rounds = SETTINGS[name]
    raw: dict[str, Any] = {
        "pyaccount": 1,
        "name": name,
        "privacy": {"adjacency": "zero-out", "epsilon": epsilon, "delta": delta},
        "training": {"participation_rate": 0.01, "iterations": rounds},
        "sampler": {"kind": "b-min-sep", "min_separation": separation},
        "matrix": {"kind": "banded-square-root", "bands": separation},
        "noise": {"multiplier": "solve"},
    }
    return load(raw)


class Stages:
    """The stages of one run, as the sampler names them."""

    def __init__(self) -> None:
        self.spent: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
        self._last: tuple[str, Sampler | None, float, float, int] = ("start", None, *_clocks(), 0)

    def enter(self, sampler: Sampler | None, stage: str) -> None:
        """The end of what was done so far."""
        name, before, wall, core, samples = self._last
        now, cores = _clocks()
        drawn = 0 if before is None else before.samples - samples
        for k, more in enumerate((now - wall, cores - core, drawn)):
            self.spent[name][k] += more
        label = re.sub(r",? ?(at )?(σ = )[0-9.e-]+|\(.*\)", "", stage)
        self._last = (label, sampler, now, cores, 0 if sampler is None else sampler.samples)


def _clocks() -> tuple[float, float]:
    return time.perf_counter(), sum(os.times()[:2])


def certified(plan: CompiledDocument, seed: int) -> tuple[CertifiedNumbers, dict[str, list[float]]]:
    """A certificate's numbers, and what each stage took."""
    stages, original = Stages(), Sampler.stage

    def stage(sampler: Sampler, label: str) -> None:
        stages.enter(sampler, label)
        original(sampler, label)

    Sampler.stage = stage  # type: ignore[method-assign]
    try:
        found = execute_sampled(plan, RunOptions(threads=0, seed=seed))
        stages.enter(None, "end")
    finally:
        Sampler.stage = original  # type: ignore[method-assign]
    return found, stages.spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("settings", nargs="*", default=list(SETTINGS), metavar="setting")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    for name in options.settings:
        found, spent = certified(compile_document(document(name)), options.seed)
        assert found.solved is not None
        assert found.evidence.sampling is not None
        lower = f"ε ≥ {found.guarantee.epsilon_lower:.4g}, δ ≥ {found.guarantee.delta_lower:.4g}"
        print(f"{name}: σ = {found.solved.value:.6g}, {lower}")
        print("  δ at most " + " ".join(f"{point.delta:.3g}" for point in found.profile))
        for test in found.evidence.sampling.tests:
            outcome = "accepted" if test.accepted else "rejected"
            print(f"  {test.direction} at σ = {test.noise_multiplier:.5g}: {test.samples} samples, {outcome}")
        rows = [*spent.items(), ("in all", [sum(row[k] for row in spent.values()) for k in range(3)])]
        for label, (wall, core, samples) in rows:
            print(f"  {label:52}{wall:8.2f} s{core:8.2f} core s{samples:12.0f} samples", flush=True)


if __name__ == "__main__":
    main()

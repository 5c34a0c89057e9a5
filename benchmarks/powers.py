"""Certificates of b-min-sep sampling with samples of powers of the likelihood ratio and without, side by side.

Each document is certified twice by one build: core seconds in all, the noise that was found, and of the last test in each
direction the samples and the weight bound, as a multiple of the claim.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from typing import Any

from pyaccount.document import Document, load
from pyaccount.execute.progress import silent
from pyaccount.execute.sampling.execute import execute_sampled
from pyaccount.plan.compiling import compile_document

#: ε, δ, the separation, which is the number of bands, and the rounds.
SETTINGS = {"b8": (1.0, 1e-5, 8, 2000), "b64": (8.0, 1e-5, 64, 2000), "b16": (2.0, 1e-10, 16, 2000)}
DIRECTIONS = ("remove", "add")


def document(name: str) -> Document:
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("settings", nargs="*", choices=[[], *SETTINGS], default=list(SETTINGS))
    parser.add_argument("--time-limit", type=float, default=600.0, help="seconds for each certificate")
    options = parser.parse_args()
    heads = ("core s", "σ", *(f"{side}: {what}" for side in DIRECTIONS for what in ("samples", "W/δ₀")))
    print(f"{'':16}" + "".join(f"{head:>17}" for head in heads))
    for name in options.settings:
        plan = compile_document(document(name))
        for powers in (False, True):
            began = sum(os.times()[:2])
            found = execute_sampled(
                replace(plan, powers=powers), threads=0, time_limit=options.time_limit, report=silent, seed=1
            )
            last = {test.direction: test for test in found.tests if test.accepted}
            numbers = [f"{sum(os.times()[:2]) - began:.1f}", f"{found.solved:.5g}"]
            for side in DIRECTIONS:
                test = last.get(side)
                shown = ("–", "–")
                if test is not None:
                    shown = (f"{test.samples}", f"{test.limits.weight_bound / test.threshold:.3g}")
                numbers += shown
            label = f"{name} {'powers' if powers else 'without'}"
            print(f"{label:16}" + "".join(f"{number:>17}" for number in numbers), flush=True)


if __name__ == "__main__":
    main()

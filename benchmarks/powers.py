"""Certificates of b-min-sep sampling without samples of powers of the likelihood ratio, with them, and by moments alone.

Each document is certified three times by one build: core seconds in all, the noise that was found, and of the last test in each
direction the samples and the weight bound, as a multiple of the claim.
"""

from __future__ import annotations

import argparse
import os
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

from pyaccount.document.document import Document
from pyaccount.document.loading import load
from pyaccount.errors import LimitError, NumericsError
from pyaccount.execute.options import RunOptions
from pyaccount.execute.sampling import betting_choice
from pyaccount.execute.sampling.execute import execute_sampled
from pyaccount.plan.compiling import compile_document

#: ε, δ, the separation, which is the number of bands, and the rounds.
SETTINGS = {"b8": (1.0, 1e-5, 8, 2000), "b64": (8.0, 1e-5, 64, 2000), "b16": (2.0, 1e-10, 16, 2000)}
DIRECTIONS = ("remove", "add")


#: What is compared: the method, and whether samples of powers and clipped ones are drawn.
WAYS = {"without": ("auto", False), "powers": ("auto", True), "moments": ("renyi", True)}


def document(name: str, method: str) -> Document:
    epsilon, delta, separation, rounds = SETTINGS[name]
    raw: dict[str, Any] = {
        "pyaccount": 1,
        "name": name,
        "privacy": {"adjacency": "zero-out", "epsilon": epsilon, "delta": delta},
        "training": {"participation_rate": 0.01, "iterations": rounds},
        "sampler": {"kind": "b-min-sep", "min_separation": separation},
        "matrix": {"kind": "banded-square-root", "bands": separation},
        "noise": {"multiplier": "solve"},
        "accounting": {"method": method},
    }
    return load(raw)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("settings", nargs="*", choices=[[], *SETTINGS], default=list(SETTINGS))
    parser.add_argument("--ways", nargs="*", choices=[*WAYS], default=list(WAYS))
    parser.add_argument("--time-limit", type=float, default=600.0, help="seconds for each certificate")
    options = parser.parse_args()
    heads = ("core s", "σ", *(f"{side}: {what}" for side in DIRECTIONS for what in ("samples", "W/δ₀")))
    print(f"{'':16}" + "".join(f"{head:>17}" for head in heads))
    for name in options.settings:
        for way in options.ways:
            method, powers = WAYS[way]
            plan = compile_document(document(name, method))
            label = f"{name} {way}"
            began = sum(os.times()[:2])
            try:
                with ExitStack() as changed:
                    if not powers:
                        changed.enter_context(patch.object(betting_choice, "_special_betting", lambda *_: None))
                    found = execute_sampled(plan, RunOptions(threads=0, time_limit=options.time_limit, seed=1))
            except (LimitError, NumericsError) as error:
                print(f"{label:16}{error}", flush=True)
                continue
            assert found.solved is not None
            assert found.evidence.sampling is not None
            last = {test.direction: test for test in found.evidence.sampling.tests if test.accepted}
            numbers = [f"{sum(os.times()[:2]) - began:.1f}", f"{found.solved.value:.5g}"]
            for side in DIRECTIONS:
                test = last.get(side)
                shown = ("–", "–")
                if test is not None:
                    shown = (f"{test.samples}", f"{test.weight_bound / test.threshold:.3g}")
                numbers += shown
            print(f"{label:16}" + "".join(f"{number:>17}" for number in numbers), flush=True)


if __name__ == "__main__":
    main()

"""What `plan --estimate` says a certificate takes, beside what it takes: examples whose price is at most --most seconds.

Each is told and made in a process of its own, so that neither finds the matrices of the other. Ratios of what takes less than a
tenth of a second say nothing, and are left out of the summary.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pyaccount
from pyaccount.document.document import Document
from pyaccount.document.loading import load_any
from pyaccount.execute.forecast import price
from pyaccount.execute.options import RunOptions

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


#: Seconds below which a ratio says nothing.
SHORT = 0.1


def told(path: Path) -> tuple[float, float]:
    """The price, and how long asking for it took."""
    plan = pyaccount.compile(load_any(path))
    began = time.monotonic()
    seconds = price(plan, RunOptions()).seconds
    return seconds, time.monotonic() - began


def taken(path: Path) -> float:
    """How long the certificate takes."""
    plan = pyaccount.compile(load_any(path))
    began = time.monotonic()
    plan.run()
    return time.monotonic() - began


def fresh(function: Callable[..., Any], path: Path) -> Any:
    """The result of a function in a new process."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, path).result()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("documents", nargs="*", type=Path, help="documents; by default all examples")
    parser.add_argument(
        "--most", type=float, default=300.0, help="certify what is said to take at most so many seconds"
    )
    options = parser.parse_args()
    ratios = []
    print(f"{'document':42} {'asked in':>9} {'told':>9} {'taken':>9} {'told/taken':>11}")
    for path in options.documents or sorted(EXAMPLES.glob("*.yaml")):
        if path.name == "policy.yaml":
            continue
        document = load_any(path)
        if not isinstance(document, Document):
            continue
        expected, asked = fresh(told, path)
        if expected > options.most:
            print(f"{path.name:42} {asked:9.2f} {expected:9.1f} {'':>9} {'not run':>11}", flush=True)
            continue
        seconds = fresh(taken, path)
        if seconds >= SHORT:
            ratios.append(expected / seconds)
        print(f"{path.name:42} {asked:9.2f} {expected:9.2f} {seconds:9.2f} {expected / seconds:11.2f}", flush=True)
    if ratios:
        print(f"median {statistics.median(ratios):.2f}, from {min(ratios):.2f} to {max(ratios):.2f}")


if __name__ == "__main__":
    main()

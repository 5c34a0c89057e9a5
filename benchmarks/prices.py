"""What `plan --estimate` says a certificate takes, beside what it takes: examples whose price is at most --most seconds."""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

import pyaccount
from pyaccount.document import Document, load_any
from pyaccount.execute.forecast import price

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


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
        plan = pyaccount.compile(document)
        began = time.monotonic()
        told = price(plan).seconds
        asked = time.monotonic() - began
        if told > options.most:
            print(f"{path.name:42} {asked:9.2f} {told:9.1f} {'':>9} {'not run':>11}")
            continue
        began = time.monotonic()
        plan.run()
        taken = time.monotonic() - began
        ratios.append(told / taken)
        print(f"{path.name:42} {asked:9.2f} {told:9.2f} {taken:9.2f} {ratios[-1]:11.2f}", flush=True)
    if ratios:
        print(f"median {statistics.median(ratios):.2f}, from {min(ratios):.2f} to {max(ratios):.2f}")


if __name__ == "__main__":
    main()

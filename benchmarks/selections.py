"""Runs of the exponential mechanism at δ = 1e-6: ε of several runs together, beside other bounds on the same runs, and seconds.

*Single* composes the profile of one run. *zCDP* is the bound by ρ = kr²/8. *At least* is the lower end of the certificate: that
of two candidates whose utilities a record exchanges. Seconds are those of the whole certificate.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import pyaccount
from pyaccount._core import RoundProfile, answer_all

DELTA, TOLERANCE = 1e-6, 1e-4


def certified(mechanism: dict[str, Any], count: int = 1) -> pyaccount.Certificate:
    """Return the certificate of some runs of a mechanism."""
    privacy = {"adjacency": "zero-out", "epsilon": "solve", "delta": DELTA}
    return pyaccount.certify(
        {"pyaccount": 1, "name": "selections", "privacy": privacy, "mechanism": mechanism, "count": count}
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranges", type=float, nargs="*", default=[0.01, 0.2], help="ranges of the loss of one run")
    parser.add_argument("--counts", type=int, nargs="*", default=[2, 10, 100, 1000, 100_000], help="numbers of runs")
    options = parser.parse_args()
    print("range     runs   together     single       zCDP   at least  seconds")
    for r in options.ranges:
        for count in options.counts:
            begin = time.perf_counter()
            found = certified({"kind": "exponential", "epsilon": r}, count)
            seconds = time.perf_counter() - begin
            (single,) = answer_all([([(RoundProfile.exponential(r), count)], None, DELTA, TOLERANCE)])
            zcdp = certified({"kind": "stated", "rho": count * r * r / 8.0})
            bounds = (found.epsilon, single.upper, zcdp.epsilon, found.data.guarantee.epsilon_lower)
            print(f"{r:5g}  {count:7}  {'  '.join(f'{bound:9.6g}' for bound in bounds)}  {seconds:7.2f}", flush=True)


if __name__ == "__main__":
    main()

"""Very rare sampling, where one large loss in one round makes δ: intervals, and what they take with a profile and without.

python benchmarks/rare.py [--threads 2]
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import pyaccount

#: The sampling probability, σ, the rounds, and what is asked.
SETTINGS: tuple[tuple[float, float, int, dict[str, Any]], ...] = (
    (1e-9, 0.5, 10**6, {"epsilon": 1, "delta": "solve"}),
    (1e-9, 0.5, 10**6, {"epsilon": "solve", "delta": 1e-16}),
    (1e-9, 0.25, 1000, {"epsilon": 1, "delta": "solve"}),
    (1e-9, 1.0, 10**6, {"epsilon": "solve", "delta": 1e-16}),
    (9e-6, 1.0, 1000, {"epsilon": "solve", "delta": 1e-20}),
    (9e-6, 1.0, 10**5, {"epsilon": "solve", "delta": 1e-10}),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=0)
    options = parser.parse_args()
    heads = ("p", "σ", "rounds", "at least", "at most", "s", "s, profile")
    print("".join(f"{head:>14}" for head in heads))
    for probability, sigma, rounds, asked in SETTINGS:
        seconds = []
        for accounting in ({"profile": []}, {}):
            raw = {
                "pyaccount": 1,
                "name": "rare",
                "privacy": {"adjacency": "add-remove", **asked},
                "training": {"sampling_probability": probability, "iterations": rounds},
                "sampler": {"kind": "poisson"},
                "noise": {"multiplier": sigma},
                "accounting": accounting,
            }
            began = time.perf_counter()
            guarantee = pyaccount.certify(raw, threads=options.threads).data.guarantee
            seconds.append(time.perf_counter() - began)
        solved = (guarantee.delta_lower, guarantee.delta)
        if asked["epsilon"] == "solve":
            solved = (guarantee.epsilon_lower, guarantee.epsilon)
        numbers = [f"{probability:g}", f"{sigma:g}", f"{rounds}"]
        numbers += [f"{end:.7g}" for end in solved] + [f"{one:.2f}" for one in seconds]
        print("".join(f"{number:>14}" for number in numbers), flush=True)


if __name__ == "__main__":
    main()

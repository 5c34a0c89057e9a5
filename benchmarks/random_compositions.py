"""Random compositions of up to eight kinds of mechanisms, beside dp_accounting's distributions on a grid of 1e-4, in one run.

Gaussian, Laplace, randomized response, discrete Laplace, discrete Gaussian, (ε, δ), and Poisson-sampled Gaussian and Laplace
noise, each run 1 to 100 times: `tests/helpers/random_compositions.py` draws them, and every line of the output can be had again
by its seed. ε is asked at `--tolerance` and, while it is above dp_accounting's, at a tenth of it, and so on. The exit code is 1
if some ε of dp_accounting is below our lower end, or ours stays above theirs at a tolerance of 1e-9. Our time has the whole
certificate, theirs the distributions and one ε.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "helpers"))

from random_compositions import SAME, TOLERANCE, compared, drawn


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("compositions", type=int, nargs="?", default=50, help="how many to draw")
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument(
        "--tolerance", type=float, default=TOLERANCE, help="our relative tolerance, before it is tightened"
    )
    options = parser.parse_args()
    ratios, wrong, tightened, excess = [], 0, 0, []
    print("seed  ours at most  theirs/ours − 1   not looser at   our s  their s  composition")
    for seed in range(options.seed, options.seed + options.compositions):
        found = compared(drawn(seed), options.tolerance)
        ratios.append(found.their_seconds / found.our_seconds)
        excess.append(found.theirs / found.upper - 1.0)
        bad = found.tolerance is None or found.theirs * (1.0 + SAME) < found.lower
        wrong += bad
        tightened += found.tolerance != options.tolerance
        at = "never" if found.tolerance is None else f"{found.tolerance:g}"
        print(
            f"{seed:4}  {found.upper:12.8g}  {found.theirs / found.upper - 1.0:15.2e}  {at:>14}  {found.our_seconds:6.2f}"
            f"  {found.their_seconds:7.2f}  {found.composition.label}{'  WRONG' if bad else ''}",
            flush=True,
        )
    print(
        f"median of their time over ours {statistics.median(ratios):.3g}, least {min(ratios):.3g}, most {max(ratios):.3g}"
    )
    print(f"median of theirs/ours − 1 {statistics.median(excess):.3g}, least {min(excess):.3g}")
    print(f"a smaller tolerance was needed {tightened} times; wrong or looser {wrong} of {options.compositions}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

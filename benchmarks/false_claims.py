"""How often false claims are accepted, by powers, by clipped samples and in a direction tested once: never more often than q.

δ of each small mechanism is known exactly (`tests/helpers/exact_mixtures.py`). The claims δ(ε) < 0.9 δ and δ(ε) < δ(1 − 1e-6) are
false. They are tested again and again at q = 5 %, each time on a stream of its own, by the product's own test,
`tests_of_claims._bet`; for the direction that is tested once by the whole fixed-sequence test, with true claims in the other
direction. The betting fractions are not a pilot's: they are those that make acceptance likely. Acceptances are held against the
binomial quantile at 1 − 1e-4, and the exit code is 1 where one exceeds it. `tests/helpers/false_claims.py` has the settings; a
smaller share is a test, `tests/execute/test_hypotheses.py`.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "helpers"))

from false_claims import FACTORS, SETTINGS, accepted, most


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=10_000, help="how often each claim is tested")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", choices=list(SETTINGS), default=list(SETTINGS), help="only these settings")
    options = parser.parse_args()
    allowed, failed = most(options.runs), False
    print(f"| setting | δ | W/δ | claim/δ | accepted of {options.runs} | allowed | seconds |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name in options.only:
        setting = SETTINGS[name]()
        exact, bound = setting.delta, setting.weight_bound / setting.delta
        for factor in FACTORS:
            began = time.monotonic()
            count = accepted(setting, factor, options.runs, options.seed)
            failed |= count > allowed
            spent = time.monotonic() - began
            line = f"| {name} | {exact:.6g} | {bound:.3g} | {factor:.7g} | {count} | {allowed} | {spent:.0f} |"
            print(line, flush=True)
    sys.exit(int(failed))


if __name__ == "__main__":
    main()

"""Write `gaussian.json`: ε(δ) of the Gaussian mechanism in high precision, read by the Rust and the Python tests.

python tests/golden/make_gaussian.py
"""

import json
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "helpers"))

import oracle  # noqa: E402

MU = [0.05, 0.3, 1.0, 2.5, 8.0]
DELTA = [0.1, 1e-5, 1e-15, 1e-60]


def main() -> None:
    cases = [
        {"mu": mu, "delta": delta, "epsilon": float(oracle.gaussian_epsilon(mu, delta))} for mu in MU for delta in DELTA
    ]
    provenance = {
        "source": "Balle & Wang 2018, Theorem 8: δ(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ), inverted by bisection",
        "derivation": "mpmath with at least 50 digits (make_gaussian.py); stored as the nearest double",
        "tolerance": "relative 2e-16, the rounding of the stored value",
    }
    text = json.dumps({"provenance": provenance, "cases": cases}, indent=2, ensure_ascii=False)
    (HERE / "gaussian.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""Writes tests/golden/certificates/v1/: one certificate of each kind, as the first release with this format made them.

They pin the format: every later release must read them, find them intact, and recompute them. Files that exist are left
alone; a new format version gets a folder of its own. Run: python tests/golden/make_certificates.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyaccount

FOLDER = Path(__file__).parent / "certificates" / "v1"

TRAINING = {"sampling_probability": 0.01, "iterations": 400}
POISSON: dict[str, Any] = {
    "pyaccount": 1,
    "name": "golden",
    "privacy": {"adjacency": "add-remove", "epsilon": 2, "delta": 1e-6},
    "training": TRAINING,
    "sampler": {"kind": "poisson"},
    "noise": {"multiplier": "solve"},
    "accounting": {"profile": [0.5, 1, 2, 3]},
}
SEPARATED: dict[str, Any] = {
    "pyaccount": 1,
    "name": "golden, sampled",
    "privacy": {"adjacency": "zero-out", "epsilon": 2, "delta": 1e-2},
    "training": {"participation_rate": 0.05, "iterations": 32},
    "sampler": {"kind": "b-min-sep", "min_separation": 4, "start": "warm"},
    "matrix": {"kind": "banded-square-root", "bands": 4},
    "noise": {"multiplier": "solve"},
    "accounting": {"profile": [1, 2, 3], "tolerance": 0.05},
}
DOCUMENTS: dict[str, dict[str, Any]] = {
    "deterministic": POISSON,
    "claim-fails": POISSON | {"name": "golden, “too bold”", "noise": {"multiplier": 0.8}},
    "smallest-delta": POISSON
    | {"privacy": {"adjacency": "add-remove", "epsilon": 1, "delta": "solve"}, "noise": {"multiplier": 1.2}},
    "group-of-phases": {
        **{key: POISSON[key] for key in ("pyaccount", "name")},
        "privacy": {"adjacency": "zero-out", "group_size": 4, "epsilon": "solve", "delta": 1e-8},
        "phases": [
            {"name": "one", "training": TRAINING, "sampler": {"kind": "poisson"}, "noise": {"multiplier": 3}},
            {
                "training": {"dataset_size": 1000, "expected_batch_size": 10, "iterations": 50},
                "sampler": {"kind": "fixed-size"},
                "noise": {"multiplier": 5},
                "count": 2,
            },
        ],
    },
    # The seed of this one comes from the operating system, and is recorded.
    "verified": SEPARATED,
    "verified-choice": SEPARATED
    | {
        "matrix": {"kind": {"choose": ["banded-square-root", "optimal-toeplitz"]}, "bands": {"choose": [2, 4]}},
        "accounting": SEPARATED["accounting"] | {"seed": 7},
    },
    "confidence": SEPARATED
    | {
        "privacy": {"adjacency": "zero-out", "epsilon": "solve", "delta": 1e-2},
        "noise": {"multiplier": 1.5},
        "accounting": SEPARATED["accounting"] | {"seed": 7},
    },
}
AMPLIFICATION = {
    "pyaccount": 1,
    "kind": "amplification",
    "name": "golden, one draw",
    "base": {"kind": "laplace", "multiplier": 1, "epsilon": [0.5, 1]},
    "sampler": {"kind": "fixed-size"},
    "sampling": {"dataset_size": 1000, "expected_batch_size": 100},
}


def main() -> None:
    """Write the files that are missing."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, document in DOCUMENTS.items():
        path = FOLDER / f"{name}.json"
        if not path.exists():
            pyaccount.certify(document).save(path)
    path = FOLDER / "amplification.json"
    if not path.exists():
        pyaccount.amplify(AMPLIFICATION).save(path)


if __name__ == "__main__":
    main()

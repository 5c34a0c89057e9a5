"""Writes tests/golden/certificates/v1/: one certificate of each kind.

They pin the format: every release must read them, find them intact, and recompute them. From the first release on, what is
there stays as it is, and a new format version gets a folder of its own. Run: python tests/golden/make_certificates.py
"""

from pathlib import Path
from typing import Any

import pyaccount

#: The seed of the document that states none, as if it came from the operating system.
SEED = 2807892012428457157
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
    # This one states no seed.
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
    """Write all files."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, document in DOCUMENTS.items():
        seed = document.get("accounting", {}).get("seed", SEED)
        pyaccount.compile(document).run(seed=seed).save(FOLDER / f"{name}.json")
    pyaccount.amplify(AMPLIFICATION).save(FOLDER / "amplification.json")


if __name__ == "__main__":
    main()

"""A small run and a round, for tests of accountants."""

from __future__ import annotations

import copy
from typing import Any

POISSON: dict[str, Any] = {
    "pyaccount": 1,
    "name": "run",
    "privacy": {"adjacency": "add-remove", "epsilon": 3, "delta": 1e-5},
    "training": {"sampling_probability": 0.01, "iterations": 1000},
    "sampler": {"kind": "poisson"},
    "noise": {"multiplier": 0.8},
}
ROUND: dict[str, Any] = {"noise_multiplier": 0.8, "sampling_probability": 0.01}


def changed(**sections: Any) -> dict[str, Any]:
    return {**copy.deepcopy(POISSON), **sections}

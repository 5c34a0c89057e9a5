"""The document of the short runs by which trainers of other libraries are tested."""

from __future__ import annotations

from typing import Any


def trained(name: str, records: int, rounds: int) -> dict[str, Any]:
    """Return a document of Poisson batches of six records on average, with little noise, so that a test sees the gradients."""
    return {
        "pyaccount": 1,
        "name": name,
        "privacy": {"adjacency": "add-remove", "epsilon": 300.0, "delta": 1e-5},
        "training": {"dataset_size": records, "expected_batch_size": 6, "iterations": rounds},
        "sampler": {"kind": "poisson"},
        "noise": {"multiplier": 0.5},
    }


#: What makes the noise of such a run correlated.
CORRELATED = {
    "sampler": {"kind": "b-min-sep", "min_separation": 2},
    "matrix": {"kind": "banded-square-root", "bands": 2},
}

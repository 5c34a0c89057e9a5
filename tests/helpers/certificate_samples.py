"""Certificates that together set every optional field of the model; each takes milliseconds."""

from functools import cache
from typing import Any

from plain_documents import doc, sectioned

import pyaccount

_RISK = {"adjacency": "zero-out"}
_NONE = {"kind": "none", "max_participations": 2, "min_separation": 3}
#: Additions to a document by name, each of which gives a certificate with further fields in milliseconds.
MORE: dict[str, dict[str, Any]] = {
    "allocation": sectioned(sampler="random-allocation", iterations_per_allocation=2, dataset_size=1000, iterations=2),
    "epochs": {"training": {"epochs": 3, "dataset_size": 100, "expected_batch_size": 10}},
    "draws": sectioned("sampler=poisson draws_per_iteration=2 dataset_size=1000 expected_batch_size=20 iterations=2"),
    "releases": {"noise": {"multiplier": 2.0, "also": [{"what": "count", "multiplier": 5.0}]}},
    "schedules": {
        "sampler": {"kind": "poisson"},
        "training": {"sampling_probability": {"schedule": [0.1, 0.2, 0.3]}, "iterations": 3},
        "noise": {"multiplier": {"schedule": {"start": 2, "decay": 0.75, "every": 1}, "scale": 1.5}},
    },
    "probabilities": sectioned(
        sampler="poisson", sampling_probability={"strata": {"rare": 0.2, "common": 0.1}}, iterations=2
    ),
    "buffers": {"sampler": _NONE, "matrix": {"kind": "blt", "scales": [0.2, 0.1], "decays": [0.9, 0.5]}},
    "workload": sectioned(
        sampler=_NONE, matrix="banded-square-root", bands=3, workload={"momentum": 0.9}, iterations=6
    ),
    "inverse": {"sampler": _NONE, "matrix": {"kind": "banded-inverse", "bands": 2}, "training": {"iterations": 6}},
    "rates": {"privacy": {**_RISK, "risk": {"true_positive_rate": 0.02, "false_positive_rate": 0.01}}},
    "advantage": {"privacy": {**_RISK, "risk": {"advantage": 0.1}}},
    "gaussian": {"privacy": {**_RISK, "risk": {"gaussian_mu": 0.5}}},
    "batch": sectioned(
        "adjacency=add-remove epsilon=2 delta=1e-5 sampler=poisson dataset_size=1000",
        "expected_batch_size=solve iterations=12",
    ),
    "bins": {"sampler": {"kind": "balls-in-bins", "bins": 4}, "training": {"dataset_size": 1000, "iterations": 12}},
    "parts": {
        "phases": [
            {
                "name": "silos",
                "parallel": [
                    {"name": "north", "mechanism": {"kind": "laplace", "scale": 2}},
                    {"name": "south", "mechanism": {"kind": "laplace", "scale": 3}},
                ],
            },
            {"training": {"iterations": 2}, "sampler": {"kind": "none"}, "noise": {"multiplier": 2.0}},
        ]
    },
    "replaced": sectioned(
        "adjacency=replace-one epsilon=solve delta=1e-5 sampler=fixed-size dataset_size=1000",
        "expected_batch_size=10 iterations=2",
    ),
}
_PLAIN: dict[str, Any] = doc(name="varied", iterations=2, sampler="none", multiplier=2.0, tolerance=0.5, profile=[1])


@cache
def fresh(name: str) -> pyaccount.Certificate:
    """Return the certificate for a name of these additions."""
    document = {**_PLAIN, **MORE[name]}
    if "phases" in document:
        document = {key: value for key, value in document.items() if key not in ("training", "sampler", "noise")}
    if "risk" in document["privacy"]:
        document["noise"] = {"multiplier": "solve"}
    return pyaccount.certify(document)

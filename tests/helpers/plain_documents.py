"""A plain mechanism document as a mapping, and functions that change copies of it."""

from __future__ import annotations

import copy
from typing import Any


def document(**changes: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "pyaccount": 1,
        "name": "test",
        "privacy": {"adjacency": "add-remove", "epsilon": 2, "delta": 1e-6},
        "training": {"dataset_size": 10_000, "expected_batch_size": 100, "iterations": 400},
        "sampler": {"kind": "poisson"},
        "noise": {"multiplier": 1.0},
        "accounting": {"profile": []},
    }
    return with_changes(base, changes)


def with_changes(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Return a document with these sections replaced; `section__field` replaces only one field."""
    base = dict(base)
    for path, value in changes.items():
        section, _, field = path.partition("__")
        base[section] = {**base[section], field: value} if field else value
    return base


def one_step(sigma: float, **changes: Any) -> dict[str, Any]:
    """Return a document of one Gaussian mechanism with μ = 1/σ, whose δ is the blank unless `changes` say otherwise."""
    base = {
        "training": {"iterations": 1},
        "sampler": {"kind": "none", "max_participations": 1},
        "noise__multiplier": sigma,
        "privacy__delta": "solve",
    }
    return document(**{**base, **changes})


def changed(
    base: dict[str, Any], changes: dict[str, Any] | None, sections: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    """Return a copy of a document with some of its values replaced, and with some values of its sections replaced."""
    copied = copy.deepcopy(base) | copy.deepcopy(changes or {})
    for section, values in sections.items():
        copied[section] = {**copied.get(section, {}), **values}
    return copied

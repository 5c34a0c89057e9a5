"""Documents as mappings from the fields that a test is about: each field has one section, so nobody writes the sections."""

import copy
import shlex
from ast import literal_eval
from collections.abc import Mapping
from typing import Any

#: The fields by their section; a field whose name two sections have is written in its section.
FIELDS = {
    "privacy": "adjacency epsilon delta group_size risk",
    "training": "dataset_size expected_batch_size sampling_probability participation_rate iterations epochs",
    "sampler": "max_participations min_separation start draws_per_iteration bins partitions phase attribution"
    " records_per_user truncate_to iterations_per_allocation subset_size rounds_per_subset draws flips",
    "matrix": "bands coefficients file normalize scales decays buffers restart_every optimize_for",
    "noise": "multiplier also",
    "accounting": "tolerance seed profile method verification time_limit",
}
_SECTION = {field: section for section, fields in FIELDS.items() for field in fields.split()}


def sectioned(*stated: str | Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    """Return the sections of these fields, which texts name too: "iterations=100 sampler=b-min-sep min_separation=3".

    Where a section is a text, that is its kind. A section in full goes over its fields, and mappings replace sections.
    """
    words = (word.partition("=") for text in stated if isinstance(text, str) for word in shlex.split(text))
    made: dict[str, Any] = {}
    whole: dict[str, Any] = {}
    for name, value in ({name: _value(value) for name, _, value in words} | fields).items():
        if name in _SECTION:
            made.setdefault(_SECTION[name], {})[name] = value
        elif name in FIELDS:
            whole[name] = value
            made.setdefault(name, {})
        else:
            made[name] = value
    for name, value in whole.items():
        if isinstance(value, str):
            made[name] = {"kind": value, **made[name]}
        else:
            made[name] = {**made[name], **value} if isinstance(value, Mapping) else value
    for replaced in stated:
        made |= {} if isinstance(replaced, str) else replaced
    return made


def doc(*stated: str | Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    """Return a document of these sections; unless it says otherwise, it asks for ε at δ = 1e-5 under zero-out."""
    made = sectioned(*stated, **fields)
    privacy = made.pop("privacy", {})
    target = {} if "risk" in privacy else {"epsilon": "solve", "delta": 1e-5}
    return {"pyaccount": 1, "name": "test", "privacy": {"adjacency": "zero-out", **target, **privacy}, **made}


def _value(text: str) -> Any:
    """Return what a word means: a number or a list, or else itself."""
    try:
        return literal_eval(text)
    except (ValueError, SyntaxError):
        return text


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

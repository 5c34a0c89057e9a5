"""Certificates of bodies inside of bodies: the oracle derives what they state, and finds what was changed."""

import copy
from functools import cache
from typing import Any

import pytest
from certificate_oracle import inconsistencies
from plain_documents import sectioned

import pyaccount

STEPS: dict[str, Any] = {"training": {"iterations": 3}, "sampler": {"kind": "none"}, "noise": {"multiplier": 9}}
BATCHES: dict[str, Any] = sectioned("name=batches iterations=30 sampling_probability=0.1 sampler=poisson multiplier=4")
NUMBER: dict[str, Any] = {"mechanism": {"kind": "laplace", "scale": 50}}
SOLVED: dict[str, Any] = {**STEPS, "noise": {"multiplier": "solve"}}
SAMPLE: dict[str, Any] = {"kind": "poisson", "sampling_probability": 0.1}
STRATA: dict[str, Any] = {"strata": {"a": 0.1, "b": 0.05}}
FIXED: dict[str, Any] = sectioned(
    iterations=2, dataset_size=100, expected_batch_size=10, sampler="fixed-size", multiplier=9
)
PARTS: dict[str, Any] = {"parallel": [BATCHES, {"name": "steps", "phases": [STEPS, NUMBER]}]}

#: A phase of each form, and the head of its document.
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a sample": ({"sampler": SAMPLE, "phases": [STEPS, NUMBER], "count": 5}, {}),
    "a blank in a sample": ({"sampler": SAMPLE, "phases": [STEPS, SOLVED], "count": 5}, {}),
    "clients": ({"sampler": {**SAMPLE, "sampling_probability": STRATA, "draws": "clients"}, "phases": [STEPS]}, {}),
    "batches of clients": ({"sampler": {**SAMPLE, "draws": "clients"}, "phases": [FIXED]}, {}),
    "a mechanism on clients": ({**NUMBER, "sampler": {**SAMPLE, "draws": "clients"}, "count": 3}, {}),
    "the best run": ({"select": {"kind": "geometric", "stopping_probability": 0.5}, "phases": [STEPS, NUMBER]}, {}),
    "parts": ({**PARTS, "count": 2, "name": "silos"}, {}),
    "a blank in a part": ({"parallel": [SOLVED, BATCHES]}, {}),
    "a blank of a mechanism": ({"mechanism": {"kind": "gaussian", "sigma": "solve"}}, {}),
    "a factor of parts": (PARTS, {"noise": {"scale": "solve"}}),
}


@cache
def certified(case: str) -> pyaccount.Certificate:
    phase, head = CASES[case]
    blank = "solve" in str(CASES[case])
    privacy = {"adjacency": "add-remove", "epsilon": 2 if blank else "solve", "delta": 1e-6}
    quick = {"accounting": {"tolerance": 0.05, "profile": [0.5]}}
    return pyaccount.certify(
        {"pyaccount": 1, "name": "nested", "privacy": privacy, "phases": [phase, NUMBER], **quick, **head}
    )


@pytest.mark.parametrize("case", CASES)
def test_a_certificate_of_bodies_inside_of_a_body_is_consistent(case: str) -> None:
    assert inconsistencies(certified(case).data) == []


@pytest.mark.parametrize(
    ("case", "field", "value"),
    [
        ("a sample", "count", 4),
        ("a sample", "sampling_probability", 0.02),
        ("a sample", "iterations", 3),
        ("clients", "probabilities", None),
        ("the best run", "sampler", "poisson"),
        ("parts", "noise", "gaussian"),
        ("parts", "noise_multiplier", 4.0),
    ],
)
def test_a_field_of_such_a_phase_that_was_changed_is_found(case: str, field: str, value: object) -> None:
    data = certified(case).data
    first, *rest = data.phases
    phases = [first.model_copy(update={field: value}), *rest]
    assert f"phases[0].{field}" in {one.path for one in inconsistencies(data.model_copy(update={"phases": phases}))}


@pytest.mark.parametrize(
    ("case", "place", "value"),
    [
        ("a sample", ("phases", 0, "noise", "multiplier"), 8),
        ("a blank in a sample", ("phases", 0, "noise", "multiplier"), 8),
        ("a sample", ("phases",), []),
        ("the best run", ("select", "stopping_probability"), 0.4),
        ("the best run", ("select", "kind"), "poisson"),
        ("parts", ("parallel", 1, "phases", 1, "mechanism", "scale"), 40),
        ("a mechanism on clients", ("draws",), "records"),
        ("a factor of parts", ("noise", "scale"), 1.5),
    ],
)
def test_what_is_stated_inside_and_was_changed_is_found(case: str, place: tuple[Any, ...], value: object) -> None:
    data = certified(case).data
    first, *rest = data.phases
    assert first.mechanism is not None
    stated = copy.deepcopy(first.mechanism.stated)
    inner: Any = stated
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    changed = first.model_copy(update={"mechanism": first.mechanism.model_copy(update={"stated": stated})})
    found = inconsistencies(data.model_copy(update={"phases": [changed, *rest]}))
    assert "phases[0].mechanism.stated" in {one.path for one in found}


@pytest.mark.parametrize(
    ("case", "path"),
    [
        ("a blank in a sample", "phases[0].phases[1].noise.multiplier"),
        ("a blank in a part", "phases[0].parallel[0].noise.multiplier"),
        ("a blank of a mechanism", "phases[0].mechanism.sigma"),
    ],
)
def test_a_blank_inside_is_where_the_document_leaves_it(case: str, path: str) -> None:
    data = certified(case).data
    assert data.solved is not None
    assert data.solved.path == path
    for update in ({"value": data.solved.value * 2}, {"path": "phases[0].noise.multiplier"}):
        changed = data.model_copy(update={"solved": data.solved.model_copy(update=update)})
        assert any(one.path.startswith("solved.") for one in inconsistencies(changed))

"""The normal form of a document: one string, which the independent checker's grammar takes, and none where there is no form."""

import json
from typing import Any

import pytest

import pyaccount
from pyaccount.independent.form import parsed
from pyaccount.plan.compiling import compile_document
from pyaccount.plan.normal_form import normal_form
from pyaccount.rounding import positional

GAUSSIAN = {"mechanism": {"kind": "gaussian", "sigma": 4}}
TRAINING = {"dataset_size": 1000, "expected_batch_size": 10, "iterations": 6}
NOISE = {"multiplier": 1.5}
FORM = {"kind": "gaussian", "sensitivity": "1", "sigma": "4"}


def form_of(body: dict[str, Any], adjacency: str = "zero-out") -> str | None:
    privacy = {"adjacency": adjacency, "epsilon": "solve", "delta": 1e-5}
    document = pyaccount.load({"pyaccount": 1, "name": "formed", "privacy": privacy, **body})
    return normal_form(compile_document(document).at())


def one_round(sampler: dict[str, Any]) -> dict[str, Any]:
    one = {"kind": "round", "noise": ["1.5"], "sampler": sampler}
    return {"count": "6", "kind": "repeat", "of": one}


CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "count": (GAUSSIAN | {"count": 3}, {"count": "3", "kind": "repeat", "of": FORM}),
    "equal phases are counted": (
        {"phases": [GAUSSIAN, GAUSSIAN | {"count": 2}]},
        {"count": "3", "kind": "repeat", "of": FORM},
    ),
    "poisson": (
        {"training": TRAINING, "sampler": {"kind": "poisson"}, "noise": NOISE},
        one_round({"draws": "1", "kind": "poisson", "probability": "0.01"}),
    ),
    "truncated": (
        {"training": TRAINING, "sampler": {"kind": "poisson", "truncate_to": 30}, "noise": NOISE},
        one_round({"kind": "truncated-poisson", "probability": "0.01", "records": "1000", "size": "30"}),
    ),
    "fixed size": (
        {"training": TRAINING, "sampler": {"kind": "fixed-size"}, "noise": NOISE},
        one_round({"kind": "fixed-size", "records": "1000", "size": "10"}),
    ),
    "no sampling": (
        {"training": {"iterations": 9}, "sampler": {"kind": "none", "max_participations": 6}, "noise": NOISE},
        one_round({"kind": "all"}),
    ),
    "sample": (
        {"phases": [{"sampler": {"kind": "poisson", "sampling_probability": 0.1}, "phases": [GAUSSIAN]}]},
        {"draws": "records", "kind": "sample", "of": FORM, "probability": "0.1"},
    ),
    "best": (
        {"phases": [{"select": {"kind": "geometric", "stopping_probability": 0.5}, "phases": [GAUSSIAN]}]},
        {"kind": "best", "of": FORM, "runs": {"kind": "geometric", "stopping_probability": "0.5"}},
    ),
    "schedule": (
        {
            "training": {"sampling_probability": 0.1, "iterations": 3},
            "sampler": {"kind": "poisson"},
            "noise": {"multiplier": {"schedule": [2, 1, 2]}},
        },
        {
            "kind": "sequence",
            "of": [
                {"kind": "round", "noise": ["1"], "sampler": {"draws": "1", "kind": "poisson", "probability": "0.1"}},
                {
                    "count": "2",
                    "kind": "repeat",
                    "of": {
                        "kind": "round",
                        "noise": ["2"],
                        "sampler": {"draws": "1", "kind": "poisson", "probability": "0.1"},
                    },
                },
            ],
        },
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_document_has_its_form(name: str) -> None:
    body, wanted = CASES[name]
    text = form_of(body)
    assert text is not None
    assert json.loads(text) == {"adjacency": "zero-out", "group": "1", "mechanism": wanted}
    assert parsed(text)["mechanism"]["kind"] == wanted["kind"]


def test_what_has_no_form_has_none() -> None:
    sampler = {"kind": "balls-in-bins", "bins": 4, "truncate_to": 300}
    training = {"dataset_size": 1000, "iterations": 8}
    assert form_of({"training": training, "sampler": sampler, "noise": NOISE}) is None


@pytest.mark.parametrize(
    ("number", "text"),
    [(1e-5, "0.00001"), (0.1, "0.1"), (3.0, "3"), (1e22, "1" + "0" * 22), (0.0, "0"), (1.25e-7, "0.000000125")],
)
def test_numbers_are_positional(number: float, text: str) -> None:
    assert positional(number) == text

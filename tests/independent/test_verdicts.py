"""Verdicts of the independent checker: golden certificates are proven, and no certificate that was changed is."""

from __future__ import annotations

import copy
import json
import math
import random
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from places import CERTIFICATES
from scipy.stats import norm

import pyaccount
from pyaccount import cli, schemas
from pyaccount.independent.verdict import check, parsed

GOLDEN = CERTIFICATES / "v1"


def golden(name: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))
    return data


def verdict(certificate: dict[str, Any], seconds: float = 20.0) -> dict[str, Any]:
    return check(parsed(json.dumps(certificate)), seconds)


def certified(document: dict[str, Any]) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(pyaccount.certify({"pyaccount": 1, "name": "checked", **document}).to_json())
    return data


POISSON = {
    "privacy": {"adjacency": "add-remove", "epsilon": "solve", "delta": 1e-4},
    "training": {"sampling_probability": 0.02, "iterations": 40},
    "sampler": {"kind": "poisson"},
    "noise": {"multiplier": 1},
}
PLAIN = {
    "privacy": {"adjacency": "replace-one", "group_size": 2, "epsilon": "solve", "delta": 1e-6},
    "training": {"iterations": 30},
    "sampler": {"kind": "none", "max_participations": 4},
    "noise": {"multiplier": 5, "also": [{"multiplier": 30, "what": "a count"}]},
}


def changed(certificate: dict[str, Any], *path: str, factor: float) -> dict[str, Any]:
    """Return a copy with one number multiplied."""
    data = copy.deepcopy(certificate)
    place = data
    for key in path[:-1]:
        place = place[key]
    number = place[path[-1]] * factor
    place[path[-1]] = round(number) if path[-1] in ("iterations", "max_participations", "group_size") else number
    return data


def test_the_golden_certificates_have_their_verdicts() -> None:
    assert verdict(golden("deterministic"))["verdict"] == "proven"
    assert "without a guarantee" in verdict(golden("amplification"))["reason"]


DOCUMENTS: dict[str, dict[str, Any]] = {
    "poisson": POISSON,
    "no sampling": PLAIN,
    "replace-one": POISSON | {"privacy": POISSON["privacy"] | {"adjacency": "replace-one"}},
    "fixed size": {
        "privacy": {"adjacency": "replace-one", "epsilon": "solve", "delta": 1e-4},
        "training": {"dataset_size": 1000, "expected_batch_size": 10, "iterations": 10},
        "sampler": {"kind": "fixed-size"},
        "noise": {"multiplier": 2},
    },
    "zero-out": {
        "privacy": {"adjacency": "zero-out", "epsilon": "solve", "delta": 1e-4},
        "training": {"dataset_size": 1000, "expected_batch_size": 10, "iterations": 10},
        "sampler": {"kind": "fixed-size"},
        "noise": {"multiplier": 2},
    },
    "phases": {
        "privacy": {"adjacency": "add-remove", "epsilon": "solve", "delta": 1e-4},
        "phases": [
            {"mechanism": {"kind": "laplace", "scale": 10}},
            {"mechanism": {"kind": "stated", "epsilon": 0.1, "delta": 1e-6}},
            {"mechanism": {"kind": "gaussian", "sigma": 10}},
            {key: POISSON[key] for key in ("training", "sampler", "noise")},
        ],
        "accounting": {"tolerance": 1e-3},
    },
    "two stages": {
        "privacy": {"adjacency": "replace-one", "epsilon": "solve", "delta": 1e-4},
        "training": {"dataset_size": 1000, "expected_batch_size": 20, "iterations": 5},
        "sampler": {"kind": "must-ow", "subset_size": 100},
        "noise": {"multiplier": 1.5},
    },
    "a schedule": POISSON | {"noise": {"multiplier": {"schedule": {"start": 2, "decay": 0.9, "every": 20}}}},
    "pure": {
        "privacy": {"adjacency": "add-remove", "group_size": 3, "epsilon": "solve", "delta": 0},
        "training": {"iterations": 7},
        "sampler": {"kind": "none"},
        "noise": {"kind": "laplace", "multiplier": 20},
    },
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_certificates_are_proven(name: str) -> None:
    certificate = certified(DOCUMENTS[name])
    found = verdict(certificate, 4.0)
    assert found["verdict"] == "proven", found
    assert found["proven"]["epsilon"] <= certificate["guarantee"]["epsilon"] * 1.001


CHANGES = [
    (("guarantee", "epsilon"), 0.998),
    (("guarantee", "delta"), 0.99),
    (("document", "training", "sampling_probability"), 1.01),
    (("document", "noise", "multiplier"), 0.998),
    (("document", "training", "iterations"), 1.05),
]


@pytest.mark.parametrize(("path", "factor"), CHANGES, ids=lambda value: value[-1] if isinstance(value, tuple) else None)
def test_changed_certificates_are_not_proven(path: tuple[str, ...], factor: float) -> None:
    assert verdict(changed(certified(POISSON), *path, factor=factor), 1.5)["verdict"] in ("consistent", "refuted")


def test_what_is_far_off_is_refuted() -> None:
    found = verdict(changed(certified(POISSON), "guarantee", "epsilon", factor=0.9), 4.0)
    assert found["verdict"] == "refuted"
    assert found["delta_lower"] > found["claimed"]["delta"]


def test_many_changes_of_a_closed_form_are_all_refuted() -> None:
    drawn, certificate = random.Random(7), certified(PLAIN)
    places: list[tuple[tuple[str, ...], int]] = [
        (("guarantee", "epsilon"), -1),
        (("guarantee", "delta"), -1),
        (("document", "noise", "multiplier"), -1),
    ]
    for _ in range(100):
        path, sign = drawn.choice(places)
        factor = 1 + sign * drawn.uniform(0.002, 0.3)
        assert verdict(changed(certificate, *path, factor=factor))["verdict"] == "refuted", (path, factor)
    assert (
        verdict(changed(certificate, "document", "sampler", "max_participations", factor=1.5))["verdict"] == "refuted"
    )
    larger = changed(certificate, "document", "privacy", "group_size", factor=1.5)
    assert verdict(changed(larger, "privacy", "group_size", factor=1.5))["verdict"] == "refuted"


def test_what_is_unknown_is_not_checked() -> None:
    certificate = certified(PLAIN)
    for place, key in (("document", "surprise"), ("noise", "surprise"), ("sampler", "surprise")):
        data = copy.deepcopy(certificate)
        (data["document"] if place == "document" else data["document"][place])[key] = 1
        found = verdict(data)
        assert (found["verdict"], "surprise" in found["reason"]) == ("not checkable", True)
    damaged = copy.deepcopy(certificate)
    damaged["document"]["noise"]["multiplier"] = "much"
    assert verdict(damaged)["verdict"] == "not checkable"
    damaged["document"]["noise"]["multiplier"] = 0
    assert verdict(damaged)["verdict"] == "not checkable"
    del damaged["document"]["privacy"]
    assert "cannot be read" in verdict(damaged)["reason"]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("privacy", "adjacency"), "replace"),
        (("privacy", "group_size"), 0),
        (("noise", "multiplier"), -5),
        (("noise", "also"), [{"multiplier": -30, "what": "a count"}]),
        (("training", "iterations"), 0),
        (("training", "iterations"), 2.5),
        (("sampler", "max_participations"), 0),
        (("sampler", "min_separation"), 0),
    ],
)
def test_what_no_document_may_say_is_not_checked(path: tuple[str, str], value: object) -> None:
    data = certified(PLAIN)
    data["document"][path[0]][path[1]] = value
    found = verdict(data)
    assert found["verdict"] == "not checkable", found


def test_a_user_may_have_fewer_records_than_the_most() -> None:
    """One round after a warm start, b = 2, p = 0.9. A user with one record takes part with probability 0.1 · 0.9, one with two
    records with 0.01 · 0.99, since their draws keep it out more often. So a claim that only holds for two records is false."""
    document = {
        "privacy": {"adjacency": "zero-out", "epsilon": "solve", "delta": 1e-4},
        "training": {"sampling_probability": 0.9, "iterations": 1},
        "sampler": {"kind": "user-b-min-sep", "records_per_user": 2, "attribution": "shared", "min_separation": 2},
        "noise": {"multiplier": 1},
    }
    data = certified(document)
    assert verdict(data)["verdict"] == "proven"

    def delta(s: float, epsilon: float) -> float:
        return float(norm.cdf(s / 2 - epsilon / s) - math.exp(epsilon) * norm.cdf(-s / 2 - epsilon / s))

    of_one = 0.09 * delta(1, 0.5)
    of_two = 0.01 * (2 * 0.9 * 0.1 * delta(1, 0.5) + 0.9**2 * delta(2, 0.5))
    assert of_two < of_one / 3
    data["guarantee"] |= {"epsilon": 0.5, "delta": of_one / 2}
    assert verdict(data)["verdict"] != "proven"


@pytest.mark.parametrize("sensitivity", [0, "2", [2], True])
def test_a_sensitivity_that_is_no_number_is_not_taken_for_1(sensitivity: object) -> None:
    data = certified(
        {
            "privacy": {"adjacency": "add-remove", "epsilon": "solve", "delta": 1e-6},
            "mechanism": {"kind": "gaussian", "sigma": 3, "sensitivity": 2},
        }
    )
    assert verdict(data)["verdict"] == "proven"
    data["document"]["mechanism"]["sensitivity"] = sensitivity
    assert verdict(data)["verdict"] == "not checkable"


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "certificate.json"
    certificate = certified(PLAIN)
    path.write_text(json.dumps(certificate), encoding="utf-8")
    assert cli.run(["verify", "--independent", str(path), "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(Draft202012Validator(schemas.schema("independent-verdict")).iter_errors(found)) == []
    assert found["verdict"] == "proven"
    path.write_text(json.dumps(changed(certificate, "guarantee", "epsilon", factor=0.99)), encoding="utf-8")
    assert cli.run(["verify", "--independent", str(path)]) == 1
    text = capsys.readouterr().out
    assert "REFUTED" in text
    assert "lower bound" in text
    path.write_text("{}", encoding="utf-8")
    assert cli.run(["verify", "--independent", str(path)]) == 2
    assert "give a certificate" in " ".join(capsys.readouterr().err.split())
    assert cli.run(["verify", "--independent", str(path), "--same-version"]) == 2

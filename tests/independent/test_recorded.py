"""Certificates that rest on samples: golden ones are proven, and no changed one is."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from places import CERTIFICATES

import pyaccount
from pyaccount import cli, schemas
from pyaccount.independent.reading import process
from pyaccount.independent.shapes import NotCheckableError
from pyaccount.independent.verdict import check, parsed, sentence

GOLDEN = CERTIFICATES / "v1"
NAMES = ("verified", "verified-choice", "confidence")

Certificate = dict[str, Any]


def golden(name: str) -> Certificate:
    data: Certificate = json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))
    return data


def verdict(certificate: Certificate, seconds: float = 60.0) -> Certificate:
    """Return a verdict with a fixed seed, so that the test does not depend on chance."""
    return check(parsed(json.dumps(certificate)), seconds, seed=3)


def recorded_tests(certificate: Certificate) -> list[Certificate]:
    tests: list[Certificate] = certificate["evidence"]["sampling"]["tests"]
    return tests


@pytest.mark.parametrize("name", NAMES)
def test_golden_certificates_are_proven(name: str) -> None:
    found = verdict(golden(name))
    assert (found["verdict"], found["reason"], found["failure_probability"]) == ("proven", None, 1e-10)
    assert found["proven"] == found["claimed"]
    statements = " ".join(found["checked"])
    for direction, least in (("remove", "the least that samples of a power of f can have"), ("add", "Hölder's bound")):
        assert f"{direction}, by this checker" in statements
        assert f"{direction}: the bound on a sample is at least {least}" in statements
    assert any("sums" in each for each in found["not_checked"])
    assert "a false guarantee is proven with probability at most 1e-10" in sentence(found)
    errors = Draft202012Validator(schemas.schema("independent-verdict")).iter_errors(
        found | {"file": "certificate.json"}
    )
    assert list(errors) == []


def test_a_bound_of_delta_for_which_nothing_was_drawn_is_no_contradiction() -> None:
    """An added record moves so little that the core proves its δ, and records a bound below 1 beside no samples."""
    document = {
        "pyaccount": 1,
        "name": "few rounds",
        "privacy": {"adjacency": "add-remove", "epsilon": "solve", "delta": 1e-5},
        "training": {"iterations": 2, "sampling_probability": 0.657},
        "sampler": {"kind": "b-min-sep", "min_separation": 3, "start": "cold"},
        "noise": {"multiplier": 2.24},
        "accounting": {"tolerance": 0.2, "seed": 1, "profile": []},
    }
    certificate = json.loads(pyaccount.certify(document).to_json())
    (added,) = (test for test in recorded_tests(certificate) if test["direction"] == "add")
    assert (added["samples"], added["proposal"]["mean_scale"]) == (0, 0.0)
    assert verdict(certificate, 0.1)["verdict"] in ("proven", "consistent")


def test_new_samples_of_bins_that_are_never_used_are_refused() -> None:
    document = {
        "training": {"iterations": 8, "participation_rate": 0.05},
        "sampler": {"kind": "balls-in-bins"},
        "noise": {"multiplier": 2},
        "privacy": {"adjacency": "add-remove", "epsilon": 1, "delta": 1e-5},
    }
    with pytest.raises(NotCheckableError, match="more bins than rounds"):
        process(parsed(json.dumps({"document": {"pyaccount": 1, "name": "bins", **document}})))


@pytest.mark.parametrize("name", NAMES)
def test_recorded_weight_bounds_are_hoelders(name: str) -> None:
    """The core and the checker compute them apart: they agree to nine digits."""
    certificate = parsed(json.dumps(golden(name)))
    setting = process(certificate)
    scaled = [test for test in recorded_tests(certificate) if test["proposal"]["order"] is None]
    assert scaled
    for test in scaled:
        proposal = test["proposal"]
        bound = setting.with_noise(test["noise_multiplier"]).hoelder(
            proposal["mean_scale"], proposal["parameter"], test["epsilon"]
        )
        assert bound is not None
        assert 2.718281828459045 ** float(bound) == pytest.approx(float(test["weight_bound"]), rel=1e-9)


def smaller_delta(certificate: Certificate) -> None:
    certificate["guarantee"]["delta"] *= 0.9


def smaller_epsilon(certificate: Certificate) -> None:
    certificate["guarantee"]["epsilon"] *= 0.99


def less_noise(certificate: Certificate) -> None:
    certificate["solved"]["value"] *= 0.99


def smaller_weight_bound(certificate: Certificate) -> None:
    # 1e-4 is a hundred times the slack for the rounding of coefficients.
    for test in recorded_tests(certificate):
        test["weight_bound"] *= 1 - 1e-4


def large_fractions(certificate: Certificate) -> None:
    for test in recorded_tests(certificate):
        test["betting_fractions"] = [1.001 / (test["weight_bound"] - test["threshold"])]


def negative_fraction(certificate: Certificate) -> None:
    recorded_tests(certificate)[-1]["betting_fractions"][0] *= -1


def small_target(certificate: Certificate) -> None:
    for test in recorded_tests(certificate):
        test["log_target"] -= 0.01


def wealth_below_the_target(certificate: Certificate) -> None:
    for test in recorded_tests(certificate):
        test["log_wealth"] = test["log_target"] - 0.01


def large_mean(certificate: Certificate) -> None:
    for test in recorded_tests(certificate):
        test["mean"] = test["threshold"] * 1.01


def too_much_wealth(certificate: Certificate) -> None:
    for test in recorded_tests(certificate):
        test["log_wealth"] *= 10


def too_little_wealth(certificate: Certificate) -> None:
    for test in recorded_tests(certificate):
        if test["direction"] == "add":
            test["log_wealth"] = test["log_target"]


def without_the_direction(direction: str) -> Callable[[Certificate], None]:
    def change(certificate: Certificate) -> None:
        certificate["evidence"]["sampling"]["tests"] = [
            test for test in recorded_tests(certificate) if test["direction"] != direction
        ]

    change.__name__ = f"without_{direction}"
    return change


def without_tests(certificate: Certificate) -> None:
    certificate["evidence"]["sampling"]["tests"] = []


def rejected(certificate: Certificate) -> None:
    for test in recorded_tests(certificate):
        test["accepted"] = test["direction"] != "add"


def easier_noise(certificate: Certificate) -> None:
    for test in recorded_tests(certificate):
        test["noise_multiplier"] *= 1.5


def easier_epsilon(certificate: Certificate) -> None:
    for test in recorded_tests(certificate):
        test["epsilon"] *= 1.5


def smaller_q(certificate: Certificate) -> None:
    certificate["evidence"]["sampling"]["total_probability"] = (
        certificate["evidence"]["sampling"]["test_probability"] / 2
    )


def began_again(certificate: Certificate) -> None:
    """A third sequence of tests, after two that were rejected, and q for two."""
    tests = recorded_tests(certificate)
    first = {**tests[-1], "accepted": False, "noise_multiplier": 0.1, "epsilon": 0.1}
    tests[:0] = [first, {**first, "noise_multiplier": 0.2}]


CHANGES: list[tuple[Callable[[Certificate], None], str]] = [
    (smaller_delta, "is above the δ that is claimed"),
    (smaller_weight_bound, "the bound on a sample of add is below what is proven"),
    (large_fractions, "is not below 1/(W − δ₀)"),
    (negative_fraction, "is not below 1/(W − δ₀)"),
    (small_target, "is below ln(1/q)"),
    (wealth_below_the_target, "does not reach its target"),
    (large_mean, "samples of remove with this mean give this wealth"),
    (too_much_wealth, "samples of remove with this mean give this wealth"),
    (too_little_wealth, "samples of add with this mean give more than this wealth"),
    (without_the_direction("remove"), "no accepted test of the direction remove"),
    (without_the_direction("add"), "no accepted test of the direction add"),
    (without_tests, "no accepted test of the direction remove"),
    (rejected, "no accepted test of the direction add"),
    (easier_noise, "is as hard as the claim"),
    (easier_epsilon, "is as hard as the claim"),
    (smaller_q, "is less than 1 times that of a sequence"),
    (began_again, "is less than 3 times that of a sequence"),
]


@pytest.mark.parametrize(("change", "reason"), CHANGES, ids=[change.__name__ for change, _ in CHANGES])
def test_records_that_contradict_the_claim_refute_it(change: Callable[[Certificate], None], reason: str) -> None:
    for name in NAMES:
        certificate = golden(name)
        change(certificate)
        found = verdict(certificate, 0.0)
        assert (found["verdict"], found["proven"], found["failure_probability"]) == ("refuted", None, None)
        assert "the record of the tests contradicts the claim" in found["reason"]
        assert reason in found["reason"]


def test_a_claim_of_less_noise_or_a_smaller_epsilon_is_refuted() -> None:
    for name, change in (("verified", less_noise), ("verified", smaller_epsilon), ("confidence", smaller_epsilon)):
        certificate = golden(name)
        change(certificate)
        assert verdict(certificate, 0.0)["verdict"] == "refuted"


def test_the_failure_probability_must_cover_the_tests() -> None:
    certificate = golden("confidence")
    certificate["guarantee"]["failure_probability"] /= 2
    assert "failure probability" in verdict(certificate, 0.0)["reason"]
    certificate = golden("verified")
    certificate["evidence"]["sampling"]["total_probability"] *= 2
    assert "above the δ that is claimed" in verdict(certificate, 0.0)["reason"]


def test_the_bound_on_samples_of_a_power_is_checked() -> None:
    """The mean of the weights of samples of f³ is E f³: no bound on them is smaller."""
    certificate = golden("confidence")
    setting, epsilon = process(parsed(json.dumps(certificate))), certificate["guarantee"]["epsilon"]
    least = math.exp(setting.tuples(3).log_moment()) * 4 / 27 * math.exp(-2 * epsilon)
    for factor, expected in ((1.001, "consistent"), (0.9999, "refuted")):
        for test in recorded_tests(certificate):
            if test["direction"] == "remove":
                test["proposal"] |= {"mean_scale": 3.0, "order": 3}
                test["weight_bound"], test["log_wealth"] = factor * least, 13.0
        found = verdict(certificate, 0.05)
        assert (found["verdict"], "a power of f" in " ".join(found["checked"])) == (
            expected,
            expected == "consistent",
        ), found
    # A chain that leaves tuples out, or that counts in blocks, has another bound.
    for key in ("most_busy", "block"):
        data = copy.deepcopy(certificate)
        for test in recorded_tests(data):
            test["proposal"][key] = 2
        assert "remove: the bound on a sample" in verdict(data, 0.05)["not_checked"]


def test_a_false_claim_with_a_record_that_agrees_is_not_proven() -> None:
    """δ is ten per cent smaller, and every recorded number is what it would be then. Only new samples can tell."""
    certificate = golden("verified")
    certificate["guarantee"]["delta"] *= 0.9
    for test in recorded_tests(certificate):
        test["threshold"] *= 0.898
        test["mean"] *= 0.9
        if test["direction"] == "remove":
            test["samples"], test["log_wealth"] = 4 * test["samples"], 20.0
        else:
            # No sample was above 0, so the wealth follows.
            wealths = [(1 + each * test["threshold"]) ** test["samples"] for each in test["betting_fractions"]]
            test["log_wealth"] = math.log(sum(wealths) / len(wealths))
    found = verdict(certificate, 1.5)
    assert (found["verdict"], found["proven"]) == ("consistent", None), found
    assert "the direction remove is not proven: samples of f^3: the bets reach" in found["reason"]
    assert any(each.startswith("remove, by this checker: samples of f^3") for each in found["not_checked"])


def test_other_numbers_in_the_document_are_not_proven() -> None:
    """The record does not say how the samples were drawn, so a document with more rounds is for the new samples to find."""
    for path, value in (
        (("training", "iterations"), 40),
        (("training", "participation_rate"), 0.07),
        (("sampler", "min_separation"), 8),
    ):
        certificate = golden("verified")
        certificate["document"][path[0]][path[1]] = value
        found = verdict(certificate, 2.0)
        assert found["verdict"] != "proven", (path, found)


def test_what_has_no_new_samples_is_at_most_consistent() -> None:
    certificate = golden("verified")
    certificate["document"]["sampler"]["truncate_to"] = 100
    found = verdict(certificate, 1.0)
    assert found["verdict"] == "consistent"
    assert "truncate_to" in found["reason"]
    assert "remove: the bound on a sample" in found["not_checked"]
    for section, key, value in (
        ("privacy", "adjacency", "replace-one"),
        ("privacy", "group_size", 2),
        ("sampler", "start", "hot"),
        ("noise", "kind", "laplace"),
    ):
        certificate = golden("verified")
        certificate["document"][section][key] = value
        assert verdict(certificate, 1.0)["verdict"] in ("consistent", "refuted", "not checkable"), key


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("evidence", "sampling"), None),
        (("evidence", "sampling", "tests", 0, "weight_bound"), "large"),
        (("evidence", "sampling", "tests", 0, "proposal"), {}),
        (("evidence", "sampling", "tests"), 7),
        (("document", "noise"), {}),
        (("document", "sampler"), {"kind": "b-min-sep", "min_separation": 0}),
        (("phases",), [{"matrix": {"coefficients": [0.8, -0.4]}}]),
        (("guarantee", "delta"), 0),
    ],
)
def test_damaged_certificates_are_never_proven(path: tuple[str | int, ...], value: object) -> None:
    data: Any = copy.deepcopy(golden("confidence"))
    place = data
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    found = verdict(data, 0.0)
    assert found["verdict"] in ("not checkable", "consistent", "refuted")
    assert found["reason"]


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "certificate.json"
    certificate = golden("verified")
    without_the_direction("add")(certificate)
    path.write_text(json.dumps(certificate), encoding="utf-8")
    assert cli.run(["verify", "--independent", str(path)]) == 1
    text = " ".join(capsys.readouterr().out.split())
    assert "REFUTED" in text
    assert "no accepted test of the direction add" in text
    assert "What was not checked" in text


def test_epochs_are_as_many_rounds_as_they_have() -> None:
    """24 bins, and one epoch is one round of each bin; b-min-sep sampling with p = 1/7 and b = 4 has one of 10 rounds."""
    document = {
        "pyaccount": 1,
        "name": "epochs",
        "privacy": {"adjacency": "zero-out", "epsilon": "solve", "delta": 1e-5},
        "training": {"dataset_size": 12_000, "expected_batch_size": 500, "epochs": 10},
        "sampler": {"kind": "balls-in-bins"},
        "matrix": {"kind": "banded-square-root", "bands": 4},
        "noise": {"multiplier": 1},
    }
    assert process(parsed(json.dumps({"document": document, "phases": [{}]}))).rounds == 240
    document |= {
        "sampler": {"kind": "b-min-sep"},
        "training": {"dataset_size": 100, "expected_batch_size": 10, "epochs": 3},
    }
    assert process(parsed(json.dumps({"document": document, "phases": [{}]}))).rounds == 30

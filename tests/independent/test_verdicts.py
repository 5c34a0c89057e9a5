"""Verdicts of the independent checker: true claims are proven, and no claim that was changed is."""

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from normal_forms import claim, form, gaussian, judged, poisson, rounds, verdict_of
from places import CERTIFICATES
from scipy.stats import norm

import pyaccount
from pyaccount import cli, schemas
from pyaccount.independent.verdict import check, claim_of

GOLDEN = CERTIFICATES / "v1"
PLAIN = rounds({"kind": "all"}, 4, "5", "30")
PURE = {"count": "7", "kind": "repeat", "of": {"kind": "laplace", "moved": "1", "scale": "20", "sensitivity": "1"}}


def delta_of(s: float, epsilon: float) -> float:
    """Return δ of a Gaussian mechanism of sensitivity s."""
    return float(norm.cdf(s / 2 - epsilon / s) - math.exp(epsilon) * norm.cdf(-s / 2 - epsilon / s))


def test_the_golden_certificates_have_their_verdicts() -> None:
    golden = {
        name: json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))
        for name in ("deterministic", "amplification")
    }
    assert verdict_of(golden["deterministic"])["verdict"] == "proven"
    assert "without a guarantee" in verdict_of(golden["amplification"])["reason"]


DOCUMENTS: dict[str, dict[str, Any]] = {
    "poisson": {
        "privacy": {"adjacency": "replace-one", "epsilon": "solve", "delta": 1e-4},
        "training": {"sampling_probability": 0.02, "iterations": 20},
        "sampler": {"kind": "poisson"},
        "noise": {"multiplier": 1},
    },
    "fixed size": {
        "privacy": {"adjacency": "zero-out", "epsilon": "solve", "delta": 1e-4},
        "training": {"dataset_size": 1000, "expected_batch_size": 10, "iterations": 10},
        "sampler": {"kind": "fixed-size"},
        "noise": {"multiplier": 2},
        # Without a recursion, which the checker does not prove.
        "accounting": {"method": "pld"},
    },
    "phases": {
        "privacy": {"adjacency": "add-remove", "epsilon": "solve", "delta": 1e-4},
        "phases": [
            {"mechanism": {"kind": "laplace", "scale": 10}},
            {"mechanism": {"kind": "stated", "epsilon": 0.1, "delta": 1e-6}},
            {"mechanism": {"kind": "gaussian", "sigma": 10}, "count": 3},
            {
                "parallel": [
                    {"mechanism": {"kind": "gaussian", "sigma": 9}},
                    {"mechanism": {"kind": "laplace", "scale": 9}},
                ]
            },
        ],
        "accounting": {"tolerance": 1e-3},
    },
    "a schedule": {
        "privacy": {"adjacency": "add-remove", "epsilon": "solve", "delta": 1e-4},
        "training": {"sampling_probability": 0.02, "iterations": 40},
        "sampler": {"kind": "poisson"},
        "noise": {"multiplier": {"schedule": {"start": 2, "decay": 0.9, "every": 20}}},
    },
    "pure": {
        "privacy": {"adjacency": "add-remove", "group_size": 3, "epsilon": "solve", "delta": 0},
        "training": {"iterations": 7},
        "sampler": {"kind": "none"},
        "noise": {"kind": "laplace", "multiplier": 20},
    },
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_certificates_are_proven(name: str) -> None:
    certificate = json.loads(pyaccount.certify({"pyaccount": 1, "name": "checked", **DOCUMENTS[name]}).to_json())
    found = verdict_of(certificate, 6.0)
    assert found["verdict"] == "proven", found
    assert found["proven"]["epsilon"] <= certificate["guarantee"]["epsilon"] * 1.001


CHANGES = [
    ('"probability":"0.02"', '"probability":"0.0202"'),
    ('"noise":["1"]', '"noise":["0.998"]'),
    ('"count":"40"', '"count":"42"'),
    ('"draws":"1"', '"draws":"2"'),
    ("add-remove", "replace-one"),
    ('"group":"1"', '"group":"2"'),
]


def test_changed_forms_are_not_proven() -> None:
    document = {"pyaccount": 1, "name": "changed", **DOCUMENTS["a schedule"], "noise": {"multiplier": 1}}
    certificate = json.loads(pyaccount.certify(document).to_json())
    text, epsilon, delta = certificate["mechanism"], certificate["guarantee"]["epsilon"], 1e-4
    assert text == form(poisson())
    assert judged(text, epsilon, delta)["verdict"] == "proven"
    for before, after in CHANGES:
        changed = text.replace(before, after)
        assert changed != text
        assert judged(changed, epsilon * 0.999, delta, 1.5)["verdict"] in ("consistent", "refuted"), after
    found = judged(text, epsilon * 0.9, delta)
    assert found["verdict"] == "refuted"
    assert found["delta_lower"] > delta


def test_many_changes_of_a_closed_form_are_judged_by_it() -> None:
    drawn = random.Random(7)
    for _ in range(200):
        sigma, other, count, group = drawn.uniform(1, 9), drawn.uniform(5, 40), drawn.randint(2, 9), drawn.randint(1, 3)
        adjacency = drawn.choice(["add-remove", "zero-out", "replace-one"])
        text = form(rounds({"kind": "all"}, count, repr(sigma), repr(other)), adjacency, group)
        s = group * (2 if adjacency == "replace-one" else 1) * math.sqrt(count * (sigma**-2 + other**-2))
        epsilon = drawn.uniform(0.1, 8)
        exact = delta_of(s, epsilon)
        if not 1e-12 < exact < 0.9:
            continue
        assert judged(text, epsilon, exact * (1 + 1e-6))["verdict"] == "proven"
        assert judged(text, epsilon, exact * drawn.uniform(0.5, 0.998))["verdict"] == "refuted"


def test_pure_claims_are_sums_of_largest_losses() -> None:
    assert judged(form(PURE), 0.35, 0)["verdict"] == "proven"
    assert judged(form(PURE), 0.3499999, 0)["verdict"] == "refuted"
    assert judged(form(PURE, group=2), 0.35, 0)["verdict"] == "refuted"
    assert judged(form({"epsilon": "0.5", "kind": "bounded-range"}), 0.49, 0)["verdict"] == "consistent"
    assert judged(form(gaussian()), 100, 0)["verdict"] == "not checkable"


def test_a_user_may_have_fewer_records_than_the_most() -> None:
    """One round after a warm start, b = 2, p = 0.9. A user with one record takes part with probability 0.1 · 0.9, one with two
    records with 0.01 · 0.99, since their draws keep it out more often. So a claim that only holds for two records is false."""
    sampler = {
        "attribution": "shared",
        "kind": "users",
        "probability": "0.9",
        "records": "2",
        "separation": "2",
        "start": "warm",
    }
    run = {"kind": "run", "matrix": {"kind": "identity"}, "noise": ["1"], "rounds": "1", "sampler": sampler}
    of_one = 0.09 * delta_of(1, 0.5)
    of_two = 0.01 * (2 * 0.9 * 0.1 * delta_of(1, 0.5) + 0.9**2 * delta_of(2, 0.5))
    assert of_two < of_one / 3
    assert judged(form(run, "zero-out"), 0.5, of_one / 2)["verdict"] != "proven"
    assert judged(form(run, "zero-out"), 0.5, 0.8)["verdict"] == "proven"


REFUSED = [
    (rounds({"kind": "fixed-size", "records": "100", "size": "10"}, 1, "2"), "zero-out"),
    ({"answers": "each-record", "empty_record": "one-of-the-values", "kind": "randomized-response",
      "truth_probability": "0.5", "values": "3"}, "zero-out"),
]  # fmt: skip


@pytest.mark.parametrize("place", [0, 1])
def test_a_run_that_shows_which_records_were_drawn_is_not_hidden_by_a_sample(place: int) -> None:
    node, adjacency = REFUSED[place]
    sample = {"draws": "records", "kind": "sample", "of": node, "probability": "0.1"}
    assert judged(form(sample, adjacency), 20, 0.1)["verdict"] == "not checkable"
    assert judged(form(sample, "add-remove"), 20, 0.1)["verdict"] == "not checkable"
    assert judged(form(sample | {"draws": "clients"}, adjacency), 20, 0.1)["verdict"] in ("proven", "consistent")


def test_what_stands_around_the_form_is_not_read() -> None:
    text = form(gaussian())
    plain = check(claim_of(claim(text, 2, 1e-5)))
    assert plain["verdict"] == "proven"
    around = claim(text, 2, 1e-5, document={"noise": {"multiplier": 1e-9}}, phases=[{"matrix": 3}], solved="x")
    assert check(claim_of(around)) | {"seconds": 0} == plain | {"seconds": 0}
    for change in ({"mechanism_sha256": "0" * 64}, {"mechanism": None}, {"mechanism": {"kind": "gaussian"}}):
        assert check(claim_of(claim(text, 2, 1e-5, **change)))["verdict"] == "not checkable"
    for text_of in ("[]", "{}", '{"mechanism":1,"mechanism":1}', "3", "[" * 10_000):
        with pytest.raises(ValueError):  # noqa: PT011 - any of them
            claim_of(text_of)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "certificate.json"
    path.write_text(claim(form(PLAIN), 8, 1e-6), encoding="utf-8")
    assert cli.run(["verify", "--independent", str(path), "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(Draft202012Validator(schemas.schema("independent-verdict")).iter_errors(found)) == []
    assert found["verdict"] == "proven"
    path.write_text(claim(form(PLAIN), 0.5, 1e-6), encoding="utf-8")
    assert cli.run(["verify", "--independent", str(path)]) == 1
    text = capsys.readouterr().out
    assert "REFUTED" in text
    assert "lower bound" in text
    path.write_text("{}", encoding="utf-8")
    assert cli.run(["verify", "--independent", str(path)]) == 2
    assert "give a certificate" in " ".join(capsys.readouterr().err.split())
    assert cli.run(["verify", "--independent", str(path), "--same-version"]) == 2

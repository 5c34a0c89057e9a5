"""The samples of policies for attestations: the one in Rego is run by an engine, and Kyverno's conditions are evaluated here."""

import base64
import json
from pathlib import Path
from typing import Any

import jmespath
import pytest
import yaml
from attestation_tools import PREDICATE, STATEMENT, private_file
from gate_tools import RUNS, changed, golden
from places import EXAMPLES
from regopy import Interpreter
from securesystemslib.signer import CryptoSigner

import pyaccount

REGO = (EXAMPLES / "deploy" / "privacy.rego").read_text(encoding="utf-8")
KYVERNO: dict[str, Any] = yaml.safe_load((EXAMPLES / "deploy" / "kyverno.yaml").read_text(encoding="utf-8"))

#: Changes of a certificate that no policy may let pass, and the word in the reason of the one in Rego.
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"guarantee__epsilon": 8.001}, "epsilon"),
    ({"guarantee__epsilon": None}, "epsilon"),
    ({"guarantee__epsilon": [1]}, "epsilon"),
    ({"guarantee__epsilon": True}, "epsilon"),
    ({"guarantee__epsilon": {}}, "epsilon"),
    ({"guarantee__delta": 1.001e-5}, "delta"),
    ({"guarantee__delta": None}, "delta"),
    ({"guarantee__kind": "confidence"}, "guarantee"),
    ({"guarantee": {}}, "epsilon"),
    ({"privacy__adjacency": "replace-one"}, "adjacency"),
    ({"privacy__unit": "token"}, "unit"),
    ({"privacy": None}, "unit"),
    ({"holds": False}, "hold"),
    ({"holds": "true"}, "hold"),
    ({"pyaccount": 2}, "version"),
    ({"kind": "policy"}, "version"),
]


def statement(certificate: dict[str, Any], **fields: Any) -> dict[str, Any]:
    subject = [{"name": "model", "digest": {"sha256": "0" * 64}}]
    return {"_type": STATEMENT, "subject": subject, "predicateType": PREDICATE, "predicate": certificate, **fields}


# ---- Rego


def asked(given: dict[str, Any]) -> tuple[bool, list[str]]:
    """Return what the policy allows, and its reasons, from an engine for Rego."""
    engine = Interpreter()
    engine.add_module("privacy", REGO)
    # Numbers of Python would lose digits on their way into the engine.
    engine.set_input_term(json.dumps(given))
    return value(engine, "allow"), sorted(value(engine, "deny"))


def value(engine: Interpreter, name: str) -> Any:
    """Return the value of a rule. A query that is only the rule would be undefined where the rule is false."""
    return json.loads(str(engine.query(f"value = data.signature.{name}")))["bindings"]["value"]


@pytest.mark.parametrize("name", ["deterministic", "group-of-phases", "smallest-delta"])
def test_rego_allows_certificates_within_the_limits(name: str) -> None:
    assert asked(statement(golden(name))) == (True, [])


def test_rego_reads_what_pyaccount_signs(tmp_path: Path) -> None:
    key = private_file(tmp_path / "signing.pem", CryptoSigner.generate_ed25519().private_bytes)
    (tmp_path / "model").write_bytes(b"weights")
    signed = pyaccount.attest(RUNS["deterministic"], [tmp_path / "model"], key)
    payload = base64.b64decode(json.loads(signed.to_json())["payload"])
    assert asked(json.loads(payload)) == (True, [])


@pytest.mark.parametrize(("changes", "word"), REFUSED, ids=str)
def test_rego_refuses_what_is_not_within_them(changes: dict[str, Any], word: str) -> None:
    allowed, reasons = asked(statement(changed(golden("deterministic"), **changes)))
    assert not allowed
    assert any(word in reason for reason in reasons), reasons


@pytest.mark.parametrize(
    "fields",
    [
        {"predicateType": "https://slsa.dev/provenance/v1"},
        {"_type": "https://in-toto.io/Statement/v0.1"},
        {"subject": []},
        {"predicate": None},
        {"predicate": []},
    ],
    ids=str,
)
def test_rego_refuses_other_statements(fields: dict[str, Any]) -> None:
    assert not asked(statement(golden("deterministic"), **fields))[0]


@pytest.mark.parametrize(
    "given", [{}, {"predicate": golden("deterministic")}, golden("deterministic")], ids=["", "a", "b"]
)
def test_rego_refuses_what_is_no_statement(given: dict[str, Any]) -> None:
    allowed, reasons = asked(given)
    assert not allowed
    assert reasons


@pytest.mark.parametrize("name", ["claim-fails", "confidence"])
def test_rego_refuses_certificates_of_other_kinds(name: str) -> None:
    assert not asked(statement(golden(name)))[0]


# ---- Kyverno


def met(condition: dict[str, Any], predicate: dict[str, Any]) -> bool:
    """Return whether a condition holds for a predicate, as Kyverno's operators are described: numbers with numbers alone."""
    key = condition["key"].removeprefix("{{").removesuffix("}}").strip()
    found, value = jmespath.search(key, predicate), condition["value"]
    if found is None:
        # Kyverno fails where a variable cannot be resolved.
        return False
    if condition["operator"] == "Equals":
        return type(found) is type(value) and bool(found == value)
    if condition["operator"] == "LessThanOrEquals":
        return isinstance(found, int | float) and not isinstance(found, bool) and found <= value
    assert condition["operator"] == "AnyIn"
    return isinstance(found, str) and found in value


def conditions() -> list[dict[str, Any]]:
    (rule,) = KYVERNO["spec"]["rules"]
    (images,) = rule["verifyImages"]
    (attestation,) = images["attestations"]
    (group,) = attestation["conditions"]
    assert attestation["type"] == PREDICATE
    found: list[dict[str, Any]] = group["all"]
    return found


def passes(predicate: dict[str, Any]) -> bool:
    return all(met(condition, predicate) for condition in conditions())


@pytest.mark.parametrize("name", ["deterministic", "group-of-phases", "smallest-delta"])
def test_the_conditions_of_kyverno_are_met_within_the_limits(name: str) -> None:
    assert passes(golden(name))


@pytest.mark.parametrize(("changes", "_word"), REFUSED, ids=str)
def test_the_conditions_of_kyverno_are_not_met_otherwise(changes: dict[str, Any], _word: str) -> None:
    assert not passes(changed(golden("deterministic"), **changes))


def test_kyverno_enforces_and_fails_closed() -> None:
    assert (KYVERNO["apiVersion"], KYVERNO["kind"], KYVERNO["spec"]["failurePolicy"]) == (
        *("kyverno.io/v1", "ClusterPolicy", "Fail"),
    )
    (images,) = KYVERNO["spec"]["rules"][0]["verifyImages"]
    assert images["failureAction"] == "Enforce"
    assert images["required"]
    assert images["mutateDigest"]
    assert images["verifyDigest"]
    (attestation,) = images["attestations"]
    # Without an attestor any signature would do.
    assert attestation["attestors"][0]["entries"][0]["keys"]["publicKeys"].startswith("-----BEGIN PUBLIC KEY-----")


def test_both_samples_have_the_same_limits() -> None:
    by_key = {one["key"].strip("{} "): one["value"] for one in conditions()}
    engine = Interpreter()
    engine.add_module("privacy", REGO)
    assert value(engine, "max_epsilon") == by_key["guarantee.epsilon"]
    assert value(engine, "max_delta") == by_key["guarantee.delta"]
    assert sorted(value(engine, "adjacencies")) == sorted(by_key["privacy.adjacency"])
    assert sorted(value(engine, "units")) == sorted(by_key["privacy.unit"])
    assert sorted(value(engine, "guarantees")) == sorted(by_key["guarantee.kind"])

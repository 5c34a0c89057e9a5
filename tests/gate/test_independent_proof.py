"""A policy that asks for an independent proof of the guarantee."""

from typing import Any

import pytest

import pyaccount
from pyaccount.errors import DocumentError
from pyaccount.gate.verdict import Rule

POLICY: dict[str, Any] = {
    "pyaccount": 1,
    "kind": "policy",
    "name": "release",
    "limits": {"max_epsilon": 8, "max_delta": 1e-5},
    "independent": "required",
}
PRIVACY = {"adjacency": "add-remove", "epsilon": "solve", "delta": 1e-6}
COUNT = {"pyaccount": 1, "name": "count", "privacy": PRIVACY, "mechanism": {"kind": "gaussian", "sigma": 4}}


def proof(certificate: pyaccount.Certificate) -> Rule:
    verdict = pyaccount.check(certificate, policy=POLICY)
    (rule,) = (rule for rule in verdict.certificates[0].rules if rule.rule == "independent")
    assert verdict.passes == rule.passes
    return rule


def test_a_guarantee_that_is_proven_passes() -> None:
    rule = proof(pyaccount.certify(COUNT))
    assert (rule.origin, rule.limit, rule.value, rule.passes, rule.remark) == (
        "release",
        "proven",
        "proven",
        True,
        None,
    )


def test_one_that_cannot_be_checked_does_not_pass() -> None:
    """Groups are not checkable beside disjoint parts, and the rule says why."""
    parts = {"parallel": [{"mechanism": COUNT["mechanism"], "name": name} for name in ("north", "south")]}
    document = {key: COUNT[key] for key in ("pyaccount", "name")} | {"phases": [parts]}
    rule = proof(pyaccount.certify(document | {"privacy": COUNT["privacy"] | {"group_size": 2}}))
    assert (rule.value, rule.passes) == ("not checkable", False)
    assert rule.remark is not None
    assert "disjoint parts" in rule.remark


def test_the_checker_is_not_asked_without_that() -> None:
    policy = {key: value for key, value in POLICY.items() if key != "independent"}
    verdict = pyaccount.check(pyaccount.certify(COUNT), policy=policy)
    assert "independent" not in {rule.rule for rule in verdict.certificates[0].rules}
    with pytest.raises(DocumentError, match="independent"):
        pyaccount.check(pyaccount.certify(COUNT), policy=POLICY | {"independent": "wanted"})

"""A policy that asks for an independent proof of the guarantee."""

from pathlib import Path
from typing import Any

import pytest
from helpers.plain_documents import doc

import pyaccount
from pyaccount.errors import DocumentError
from pyaccount.gate.independent import verify_independently
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


def test_limits_are_for_the_composed_bound_where_the_guarantee_is_by_a_recursion(tmp_path: Path) -> None:
    """The recursion is not proven independently: the composed bound is, and a limit between both lets nothing pass."""
    certificate = pyaccount.certify(
        doc(
            "adjacency=replace-one sampler=fixed-size dataset_size=50 expected_batch_size=1",
            iterations=20,
            multiplier=1.0,
        )
    )
    bound = certificate.data.composed_bound
    assert bound is not None
    assert bound.epsilon is not None
    assert certificate.epsilon < bound.epsilon
    between = 0.5 * (certificate.epsilon + bound.epsilon)
    for limit, passes in ((between, False), (bound.epsilon, True)):
        verdict = pyaccount.check(certificate, policy=POLICY | {"limits": {"max_epsilon": limit, "max_delta": 1e-5}})
        rules = {rule.rule: rule for rule in verdict.certificates[0].rules}
        assert rules["independent"].passes
        assert (rules["max_epsilon"].value, rules["max_epsilon"].passes) == (bound.epsilon, passes)
        assert verdict.passes == passes
    assert pyaccount.check(certificate, max_epsilon=between, max_delta=1e-5).passes
    certificate.save(tmp_path / "run.cert.json")
    found = verify_independently(str(tmp_path / "run.cert.json"), 100.0)
    assert (found.verdict, found.proves) == ("consistent", "composed bound")
    assert found.proven is not None
    assert found.proven.epsilon == bound.epsilon


def test_a_point_of_the_profile_meets_no_limit_where_a_proof_is_required() -> None:
    """The profile is not proven: a limit that only one of its points meets lets nothing pass."""
    certificate = pyaccount.certify(COUNT | {"accounting": {"profile": [0.5, 1, 2, 3]}})
    point = next(one for one in certificate.data.profile if one.epsilon > certificate.epsilon)
    limits = {"max_epsilon": point.epsilon, "max_delta": 0.5 * (point.delta + certificate.delta)}
    assert pyaccount.check(certificate, **limits).passes
    verdict = pyaccount.check(certificate, policy=POLICY | {"limits": limits})
    rules = {rule.rule: rule for rule in verdict.certificates[0].rules}
    assert (rules["independent"].passes, rules["max_delta"].passes, verdict.passes) == (True, False, False)

"""Certificates that must be entered in a ledger, or fit into the budget of a data set."""

import json
from pathlib import Path

import pytest
from ledger_samples import data_set, gaussian
from snapshots import Snapshot

import pyaccount
from pyaccount import Certificate, DocumentError, Ledger, Verdict


def budget_rule(verdict: Verdict) -> tuple[bool, object, str | None]:
    (judged,) = verdict.certificates
    (rule,) = (rule for rule in judged.rules if rule.rule == "budget")
    return rule.passes, rule.value, rule.remark


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = Ledger(tmp_path / "budgets.db")
    made.create(data_set(privacy={"mu": 0.5}))
    return made


def certified(mu: float) -> Certificate:
    return pyaccount.certify(gaussian(mu))


def test_a_certificate_that_is_entered_passes_and_one_that_fits(ledger: Ledger) -> None:
    """A limit on each certificate alone lets ten of them through; the budget does not."""
    small, large = certified(0.3), certified(0.41)
    passes, value, remark = budget_rule(pyaccount.check(small, ledger=ledger))
    assert (passes, value) == (True, "would fit")
    assert remark is not None
    assert "it is not entered: reserve it before its run" in remark
    entry = ledger.reserve(small, who="ann", purpose="p")
    assert budget_rule(pyaccount.check(small, ledger=ledger)) == (True, f"entry {entry.id}, reserved", None)
    assert pyaccount.check(large, max_epsilon=8, max_delta=1e-5)
    verdict = pyaccount.check(large, ledger=ledger, max_epsilon=8, max_delta=1e-5)
    assert not verdict
    passes, value, remark = budget_rule(verdict)
    assert (passes, value) == (False, "does not fit")
    assert remark is not None
    assert "no room in the budget of μ = 0.5" in remark
    ledger.release(entry)
    assert budget_rule(pyaccount.check(small, ledger=ledger))[1] == "would fit"
    assert pyaccount.check(large, ledger=ledger)
    assert [event.event for event in ledger.history().events] == ["data-set-created", "reserved", "released"]


def test_a_certificate_of_other_data_does_not_fit(ledger: Ledger) -> None:
    certificate = pyaccount.certify(gaussian(0.1, adjacency="replace-one"))
    passes, _, remark = budget_rule(pyaccount.check(certificate, ledger=ledger))
    assert not passes
    assert remark is not None
    assert "is for adjacency replace-one" in remark


def test_it_must_fit_on_every_open_block(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "budgets.db")
    ledger.create(data_set(privacy={"mu": 0.5}, blocks=[{"name": "a"}, {"name": "b"}]))
    ledger.reserve(gaussian(0.5, "other"), who="ann", purpose="p", blocks=["a"])
    assert budget_rule(pyaccount.check(certified(0.1), ledger=ledger))[0] is False
    ledger.retire_block("a")
    assert budget_rule(pyaccount.check(certified(0.1), ledger=ledger))[0] is True


def test_a_policy_names_a_ledger_in_its_folder(ledger: Ledger, tmp_path: Path, snapshot: Snapshot) -> None:
    policy = tmp_path / "policy.yaml"
    mapping = {"pyaccount": 1, "kind": "policy", "name": "production", "limits": {"unit": "record"}}
    policy.write_text(json.dumps(mapping | {"budget": {"ledger": "budgets.db", "data_set": "customers"}}))
    verdict = pyaccount.check(certified(0.3), policy=policy)
    assert verdict
    (rule,) = (rule for rule in verdict.certificates[0].rules if rule.rule == "budget")
    assert (rule.origin, rule.limit) == ("production", f"customers in {tmp_path / 'budgets.db'}")
    assert not pyaccount.check(certified(0.6), policy=policy)
    for budget in (
        {"ledger": "../budgets.db"},
        {},
        {"ledger": 3},
    ):
        policy.write_text(json.dumps(mapping | {"budget": budget}))
        with snapshot.raises(DocumentError):
            pyaccount.check(certified(0.3), policy=policy)


def test_wrong_ledgers(ledger: Ledger, tmp_path: Path, snapshot: Snapshot) -> None:
    certificate = certified(0.1)
    snapshot.raised(pyaccount.check, certificate, data_set="customers", max_epsilon=8, max_delta=1e-5)
    snapshot.raised(pyaccount.check, certificate, ledger=ledger, data_set="others")
    snapshot.raised(lambda: pyaccount.check(certificate, ledger=tmp_path / "none.db"))

"""What a gate must be asked: limits on ε and δ, or on attacks, and the files of an attestation, or that they are left out."""

import json
from pathlib import Path
from typing import Any

import pytest
from gate_tools import RUNS, changed, golden, save
from ledger_samples import data_set, gaussian
from snapshots import Run, Snapshot

import pyaccount
from pyaccount import Certificate, Ledger, Verdict

GOOD = str(RUNS["deterministic"])
HEAD: dict[str, Any] = {"pyaccount": 1, "kind": "policy", "name": "deploy"}


@pytest.mark.parametrize("quiet", [(), ("--quiet",)])
@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--max-epsilon", "8"),
        ("--max-delta", "1e-5"),
        ("--adjacency", "add-remove", "--unit", "record", "--max-age", "9000d"),
        ("--guarantee", "deterministic"),
        ("--document-sha256", golden("deterministic")["document_sha256"]),
    ],
)
def test_a_gate_without_limits_on_both_is_not_opened(
    options: tuple[str, ...], quiet: tuple[str, ...], run: Run, snapshot: Snapshot
) -> None:
    snapshot(run("check", GOOD, *options, *quiet))
    # By name it may be open; what is given is judged all the same.
    assert run("check", GOOD, *options, *quiet, "--no-limits")[0] == 0
    assert run("check", RUNS["claim-fails"], *options, *quiet, "--no-limits")[0] == 1


def test_an_error_for_programs(run: Run) -> None:
    code, out, _ = run("check", GOOD, "--format", "json")
    (error,) = json.loads(out)["errors"]
    assert (code, error["slug"]) == (2, "argument")
    assert "--max-delta" in error["message"]


def test_without_limits_the_verdict_shows_what_it_passes(tmp_path: Path, run: Run) -> None:
    """A large ε and δ are seen, and a limit that is given still fails."""
    document = changed(golden("deterministic")["document"], privacy__epsilon=136, privacy__delta=0.5)
    certificate = json.loads(pyaccount.certify({**document, "noise": {"multiplier": 0.2}}).to_json())
    path = str(save(tmp_path, certificate))
    assert run("check", path)[0] == 2
    assert run("check", path, "--max-epsilon", "136")[0] == 2
    assert run("check", path, "--max-epsilon", "136", "--max-delta", "1e-5")[0] == 1
    code, out, _ = run("check", path, "--no-limits", "--format", "json")
    assert code == 0
    shown = {rule["rule"]: rule for rule in json.loads(out)["certificates"][0]["rules"]}
    assert (shown["epsilon"]["limit"], shown["epsilon"]["value"]) == (None, certificate["guarantee"]["epsilon"])
    assert (shown["delta"]["limit"], shown["delta"]["value"]) == (None, certificate["guarantee"]["delta"])
    assert shown["delta"]["remark"] == "shown only: no limit on it was asked for"
    assert run("check", path, "--no-limits", "--max-delta", "1e-3")[0] == 1


@pytest.mark.parametrize(
    ("limits", "given", "passes"),
    [
        # Both stand in the policy, or in the arguments, or one here and one there.
        ({"max_epsilon": 8, "max_delta": 1e-5}, {}, True),
        ({"max_epsilon": 8}, {"max_delta": 1e-5}, True),
        ({"max_delta": 1e-5}, {"max_epsilon": 1}, False),
        ({"adjacency": "add-remove"}, {"max_epsilon": 8, "max_delta": 1e-5}, True),
        # A limit on attacks is one on the guarantee.
        ({"max_advantage": 0.5}, {}, True),
        ({"max_true_positive_rate": 0.5, "at_false_positive_rate": 1e-3}, {}, True),
        ({"max_advantage": 0.01}, {}, False),
        ({"adjacency": "add-remove"}, {"max_advantage": 0.5}, True),
        # Neither: what the policy says is kept, and is not enough by itself.
        ({"max_epsilon": 8}, {}, None),
        ({"adjacency": "add-remove"}, {}, None),
        ({"adjacency": "add-remove"}, {"max_epsilon": 8}, None),
    ],
)
def test_limits_of_a_policy_count(limits: dict[str, Any], given: dict[str, Any], passes: bool | None) -> None:
    policy = {**HEAD, "limits": limits}
    if passes is None:
        with pytest.raises(pyaccount.DomainError, match=r"max_delta.* or a `policy` with .*; `no_limits` passes"):
            pyaccount.check(GOOD, policy=policy, **given)
        passes = True
        given = {**given, "no_limits": True}
    assert pyaccount.check(GOOD, policy=policy, **given).passes == passes


def test_no_limits_lifts_none_of_a_policy() -> None:
    policy = {**HEAD, "limits": {"max_epsilon": 1, "max_delta": 1e-5}}
    assert not pyaccount.check(GOOD, policy=policy, no_limits=True)


# ---- Certificates that must be entered in a ledger, or fit into the budget of a data set


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
    for budget in ({"ledger": "../budgets.db"}, {}, {"ledger": 3}):
        policy.write_text(json.dumps(mapping | {"budget": budget}))
        snapshot.raised(pyaccount.check, certified(0.3), policy=policy)


def test_wrong_ledgers(ledger: Ledger, tmp_path: Path, snapshot: Snapshot) -> None:
    certificate = certified(0.1)
    snapshot.raised(pyaccount.check, certificate, data_set="customers", max_epsilon=8, max_delta=1e-5)
    snapshot.raised(pyaccount.check, certificate, ledger=ledger, data_set="others")
    snapshot.raised(lambda: pyaccount.check(certificate, ledger=tmp_path / "none.db"))

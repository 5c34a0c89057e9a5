"""What a gate must be asked: limits on ε and δ, or on attacks, and the files of an attestation, or that they are left out."""

import json
from pathlib import Path
from typing import Any

import pytest
from gate_tools import RUNS, changed, golden, save
from snapshots import Run, Snapshot

import pyaccount

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

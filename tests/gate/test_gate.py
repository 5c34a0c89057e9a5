"""`pyaccount check`: limits against certificates, policies, and what contradicts itself."""

import json
import math
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from certificate_oracle import inconsistencies as oracle_inconsistencies
from gate_tools import ALL, RUNS, changed, golden, leaves, rehashed, save, sealed
from jsonschema import Draft202012Validator
from places import EXAMPLES, ROOT
from plain_documents import doc
from snapshots import Run, Snapshot

import pyaccount
from pyaccount import schemas
from pyaccount.document.policy import load_policy

POLICY = EXAMPLES / "policy.yaml"
#: What a gate must at least be asked.
LIMITS = ("--max-epsilon", "8", "--max-delta", "1e-5")


def rules(judged: Any) -> dict[str, bool]:
    return {rule.rule: rule.passes for rule in judged.rules}


def verdict(certificate: dict[str, Any] | Path, folder: Path, **limits: object) -> Any:
    """The verdict by some limits; what they leave unlimited is shown, which is not what is looked at."""
    path = certificate if isinstance(certificate, Path) else save(folder, certificate)
    (found,) = pyaccount.check(path, no_limits=True, **limits).certificates
    return replace(found, rules=tuple(rule for rule in found.rules if rule.rule not in ("epsilon", "delta")))


@pytest.mark.parametrize("name", sorted(RUNS))
def test_golden_certificates_are_intact_and_a_failed_claim_fails(name: str) -> None:
    found = pyaccount.check(RUNS[name], no_limits=True)
    assert rules(found.certificates[0]) == {
        "intact": True,
        "holds": name != "claim-fails",
        "epsilon": True,
        "delta": True,
    }
    assert found.passes == (name != "claim-fails")


# The certificate has ε ≤ 2 (1.99999…) at δ = 1e-6, and profile points at 0.5, 1, 2 and 3.
@pytest.mark.parametrize(
    ("epsilon", "delta", "source"),
    [
        (2, 1e-6, "guarantee"),
        (3, 1e-5, "guarantee"),
        (2, 1e-5, "guarantee"),
        (3, 1e-8, "profile"),
        (1, 1e-2, "profile"),
        (1.5, 1e-6, None),
        (1, 1e-6, None),
        (0.4, 0.5, None),
    ],
)
def test_epsilon_at_delta_is_met_by_the_guarantee_or_a_point(
    epsilon: float, delta: float, source: str | None, tmp_path: Path
) -> None:
    certificate = golden("deterministic")
    judged = verdict(certificate, tmp_path, max_epsilon=epsilon, max_delta=delta)
    assert judged.passes == (source is not None)
    (used,) = judged.used
    if source is not None:
        assert used.source == source
        assert used.epsilon <= epsilon
        assert used.delta <= delta
        stated = [(p["epsilon"], p["delta"]) for p in [certificate["guarantee"], *certificate["profile"]]]
        assert (used.epsilon, used.delta) in stated


def test_a_lone_limit_is_on_the_guarantee_and_says_at_which_delta(tmp_path: Path) -> None:
    certificate = golden("deterministic")
    # A point at ε = 1 exists, but without a limit on δ every certificate would have one.
    judged = verdict(certificate, tmp_path, max_epsilon=1.5)
    assert not judged.passes
    assert "1e-06" in judged.rules[-1].remark
    assert verdict(certificate, tmp_path, max_epsilon=2).passes
    assert not verdict(certificate, tmp_path, max_delta=1e-7).passes


@pytest.mark.parametrize(
    ("limit", "good", "bad"),
    [
        ("adjacency", ["add-remove", ["zero-out", "add-remove"]], ["zero-out", ["zero-out", "replace-one"]]),
        ("unit", ["record"], ["user"]),
        ("group_size", [1], [2, 5]),
        ("guarantee", ["deterministic", "verified", "confidence", ["deterministic", "verified"]], []),
        ("max_failure_probability", [0, 0.5], []),
        ("document_sha256", [golden("deterministic")["document_sha256"]], ["0" * 64]),
    ],
)
def test_limits_on_a_deterministic_certificate(limit: str, good: list[Any], bad: list[Any], tmp_path: Path) -> None:
    for value, passes in [*((value, True) for value in good), *((value, False) for value in bad)]:
        assert verdict(golden("deterministic"), tmp_path, **{limit: value}).passes == passes


def test_a_group_covers_smaller_ones_only(tmp_path: Path) -> None:
    for size, passes in ((1, True), (4, True), (5, False)):
        assert verdict(golden("group-of-phases"), tmp_path, group_size=size).passes == passes


@pytest.mark.parametrize(("name", "strength"), [("deterministic", 0), ("verified", 1), ("confidence", 2)])
def test_kinds_are_ordered(name: str, strength: int, tmp_path: Path) -> None:
    for weakest, kind in enumerate(["deterministic", "verified", "confidence"]):
        assert verdict(golden(name), tmp_path, guarantee=kind).passes == (strength <= weakest)


def test_failure_probability_is_shown_and_limited(tmp_path: Path) -> None:
    certificate = golden("confidence")
    stated = certificate["guarantee"]["failure_probability"]
    assert stated > 0
    shown = verdict(certificate, tmp_path, guarantee="confidence").rules[-1]
    assert (shown.rule, shown.value, shown.passes) == ("failure_probability", stated, True)
    assert verdict(certificate, tmp_path, max_failure_probability=stated).passes
    assert not verdict(certificate, tmp_path, max_failure_probability=stated * 0.99).passes


def test_points_of_a_sampled_profile_are_confidence_statements(tmp_path: Path) -> None:
    certificate = golden("verified")
    point = certificate["profile"][2]
    limits: dict[str, Any] = {"max_epsilon": point["epsilon"], "max_delta": point["delta"]}
    assert point["delta"] < certificate["guarantee"]["delta"]
    judged = verdict(certificate, tmp_path, **limits)
    assert judged.passes
    sampling = certificate["evidence"]["sampling"]
    pointwise = sampling["pointwise_failure_probability"]
    assert judged.used[0].kind == "confidence"
    # Any point may be false, and the tests of the guarantee, which bounds all of them.
    failure = len(certificate["profile"]) * pointwise + sampling["total_probability"]
    assert judged.used[0].failure_probability == pytest.approx(failure, rel=1e-12)
    assert not verdict(certificate, tmp_path, **limits, guarantee="verified").passes
    assert not verdict(certificate, tmp_path, **limits, max_failure_probability=pointwise).passes


def test_age_is_counted_from_the_certificates_own_time(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    for age, passes in ((timedelta(days=1), True), (timedelta(days=91), False), (timedelta(hours=-2), False)):
        certificate = changed(golden("deterministic"), created=(now - age).isoformat())
        assert verdict(certificate, tmp_path, max_age="90 d").passes == passes
    certificate = changed(golden("deterministic"), created="yesterday")
    assert rules(verdict(certificate, tmp_path, max_age="90 d")) == {"intact": False, "holds": True, "max_age": False}


SMALLER = 0.9 * golden("deterministic")["guarantee"]["epsilon"]


#: What a gate looks at, whatever the hash says: a certificate, its change, and the field that contradicts the rest.
RELIED_ON: list[tuple[str, dict[str, Any], str]] = [
    ("deterministic", {"document__privacy__delta": 1e-7}, "document_sha256"),
    ("deterministic", {"guarantee__epsilon": SMALLER}, "statement"),
    ("deterministic", {"guarantee__epsilon": 2.1}, "guarantee.epsilon"),
    ("deterministic", {"guarantee__failure_probability": 0.1}, "guarantee.failure_probability"),
    ("deterministic", {"guarantee__kind": "verified"}, "evidence.sampling"),
    ("deterministic", {"guarantee__epsilon_lower": 2.05}, "guarantee.epsilon"),
    ("deterministic", {"profile__3__delta_lower": 1e-3}, "profile[3].delta_lower"),
    ("deterministic", {"profile__0__delta": 1e-9}, "profile[0].delta"),
    ("deterministic", {"directions__remove__epsilon_lower": 3.0}, "directions.remove.epsilon_lower"),
    ("deterministic", {"directions__add__delta_lower": 0.5}, "directions.add.delta_lower"),
    ("deterministic", {"privacy__adjacency": "zero-out"}, "privacy.adjacency"),
    ("deterministic", {"privacy__group_size": 7}, "privacy.group_size"),
    ("deterministic", {"name": "another"}, "name"),
    ("deterministic", {"created": "2026-02-11"}, "created"),
    ("claim-fails", {"holds": True}, "guarantee.epsilon"),
    ("smallest-delta", {"holds": False}, "holds"),
    ("verified", {"evidence__sampling": None}, "evidence.sampling"),
    ("confidence", {"evidence__sampling__tests__-1__accepted": False}, "evidence.sampling.tests"),
    ("verified", {"evidence__sampling__tests__-1__epsilon": 2.5}, "evidence.sampling.tests"),
    ("verified", {"evidence__sampling__tests__-1__log_wealth": 1.0}, "evidence.sampling.tests"),
]
#: What only the hash or the document tells.
DERIVED: list[tuple[str, dict[str, Any], str]] = [
    ("deterministic", {"document_sha256": "0" * 64}, "document_sha256"),
    ("deterministic", {"guarantee__delta": 1e-4}, "guarantee.delta"),
    ("deterministic", {"solved": None}, "solved"),
    ("deterministic", {"solved__value": 0.5}, "solved.value"),
    ("deterministic", {"solved__path": "privacy.epsilon"}, "solved.path"),
    ("deterministic", {"phases__0__iterations": 300}, "phases[0].iterations"),
    ("deterministic", {"phases__0__sampling_probability": 0.02}, "phases[0].sampling_probability"),
    ("deterministic", {"phases__0__participation_rate": 0.02}, "phases[0].participation_rate"),
    ("deterministic", {"phases__0__sampling_probability": None}, "phases[0].sampling_probability"),
    ("group-of-phases", {"phases__1__sampling_probability": 0.02}, "phases[1].sampling_probability"),
    ("group-of-phases", {"phases__1__expected_batch_size": 20.0}, "phases[1].expected_batch_size"),
    ("confidence", {"phases__0__participation_rate": 0.02}, "phases[0].participation_rate"),
    ("deterministic", {"phases__0__sampler": "none"}, "phases[0].sampler"),
    ("deterministic", {"phases": []}, "phases"),
    ("deterministic", {"privacy__unit": "user"}, "privacy.unit"),
    ("deterministic", {"unamplified__epsilon": 0.1}, "unamplified.epsilon"),
    ("deterministic", {"statement": "All is well."}, "statement"),
    ("smallest-delta", {"guarantee__delta": 1e-9}, "solved.value"),
    ("group-of-phases", {"phases__1__count": 1}, "phases[1].count"),
    ("group-of-phases", {"phases__0__noise_multiplier": 30.0}, "phases[0].noise_multiplier"),
    ("confidence", {"guarantee__failure_probability": 1e-30}, "guarantee.failure_probability"),
    ("confidence", {"profile__2__delta": 1e-30}, "profile[2].delta"),
    ("confidence", {"directions__remove__profile__2__delta": 1e-30}, "profile[2].delta"),
    ("deterministic", {"profile__1__delta_lower": 0.0}, "profile[1].delta_lower"),
    ("deterministic", {"directions__add__profile__1__epsilon": 1.5}, "profile[1].epsilon"),
    ("deterministic", {"directions__add__profile": []}, "profile"),
    ("deterministic", {"directions__remove__epsilon": 2.5}, "guarantee.epsilon"),
    ("deterministic", {"directions__remove__delta_lower": 0.0}, "guarantee.delta_lower"),
    ("smallest-delta", {"directions__remove__delta": 0.5}, "guarantee.delta"),
    ("deterministic", {"evidence__compositions__1__upper": 0.5}, "evidence.compositions[1].upper"),
    ("group-of-phases", {"noise_multiplier": 123.0}, "noise_multiplier"),
    ("deterministic", {"noise_multiplier": None}, "noise_multiplier"),
    ("verified", {"guarantee__kind": "deterministic"}, "guarantee.kind"),
    ("verified", {"guarantee__kind": "deterministic", "evidence__error_budget": []}, "guarantee.kind"),
    ("confidence", {"guarantee__kind": "verified", "guarantee__failure_probability": 0.0}, "evidence.sampling.tests"),
    ("confidence", {"guarantee__kind": "deterministic", "guarantee__failure_probability": 0.0}, "guarantee.kind"),
    ("confidence", {"evidence__error_budget": []}, "evidence.error_budget"),
    ("confidence", {"evidence__sampling__total_probability": 1e-5}, "evidence.sampling.test_probability"),
    ("confidence", {"evidence__sampling__tests__-1__threshold": 0.02}, "evidence.sampling.tests"),
    ("verified", {"evidence__sampling__tests__-1__noise_multiplier": 0.9}, "evidence.sampling.tests"),
    ("verified", {"evidence__sampling__tests__-1__log_target": 1.0}, "evidence.sampling.tests"),
]


@pytest.mark.parametrize(("name", "change", "path"), [*RELIED_ON, *DERIVED])
def test_what_contradicts_itself_is_named(name: str, change: dict[str, Any], path: str, tmp_path: Path) -> None:
    """By the oracle that derives everything from the document; by a gate where the hash of the content says so."""
    forged = changed(golden(name), **change)
    data = pyaccount.Certificate.from_json(json.dumps(forged)).data
    assert path in {one.path for one in oracle_inconsistencies(data)}
    judged = verdict(save(tmp_path, changed(sealed(golden(name)), **change), careless=True), tmp_path)
    assert not judged.passes
    intact = judged.rules[0]
    assert (intact.rule, intact.passes) == ("intact", False)
    assert "content_sha256: the certificate has the hash " in intact.remark
    assert verdict(sealed(golden(name)), tmp_path).rules[0].passes


@pytest.mark.parametrize(("name", "change", "path"), RELIED_ON)
def test_what_a_gate_relies_on_is_looked_at_without_the_hash(
    name: str, change: dict[str, Any], path: str, tmp_path: Path
) -> None:
    intact = verdict(changed(golden(name), **change), tmp_path).rules[0]
    assert not intact.passes
    assert any(line.startswith(f"{path}: ") for line in intact.remark.splitlines())


def test_any_change_of_a_certificate_is_found(tmp_path: Path) -> None:
    """Whatever is changed, left out or added, even one digit of one number."""
    made = json.loads(pyaccount.certify(EXAMPLES / "count-and-train.yaml").to_json())
    assert made == sealed(made)
    assert verdict(save(tmp_path, made, careless=True), tmp_path).rules[0].passes
    seen = 0
    for path in leaves(made):
        value: Any = made
        for part in path:
            value = value[part]
        other: Any = value + "x" if isinstance(value, str) else None
        other = math.nextafter(value, math.inf) if isinstance(value, float) else other
        if other is None or path[0] in ("pyaccount", "kind"):
            continue
        forged = changed(made, **{"__".join(map(str, path)): other})
        judged = verdict(save(tmp_path, forged, careless=True), tmp_path)
        if judged.error is not None:
            # Not a word of the format any more.
            continue
        assert not judged.rules[0].passes, path
        seen += 1
    assert seen > 200


def test_a_rejected_test_certifies_nothing(tmp_path: Path) -> None:
    certificate = golden("verified")
    for test in certificate["evidence"]["sampling"]["tests"]:
        test["accepted"] = False
    assert "evidence.sampling.tests" in verdict(certificate, tmp_path).rules[0].remark


def test_several_certificates_and_both_sources_of_limits(run: Run) -> None:
    paths = [str(RUNS["deterministic"]), str(RUNS["group-of-phases"])]
    arguments = ("check", *paths, "--policy", str(POLICY), "--max-epsilon", "2.5", "--max-delta", "1e-6")
    code, out, _ = run(*arguments, "--format", "json")
    found = json.loads(out)
    assert list(Draft202012Validator(schemas.schema("verdict")).iter_errors(found)) == []
    origins = {rule["origin"] for one in found["certificates"] for rule in one["rules"]}
    assert origins == {"always", "production models", "command line"}
    assert found["policy"]["sha256"] == load_policy(POLICY).sha256
    assert code == (0 if found["passes"] else 1)
    assert found["recomputed"] is False
    code, out, _ = run(*arguments)
    assert "Nothing was recomputed" in out
    for words in ("max_epsilon", "at most 2.5", "production models", "group_size"):
        assert words in out


def test_quiet_prints_only_what_fails(tmp_path: Path, run: Run) -> None:
    good = [str(save(tmp_path, golden("deterministic"), f"{place}.json")) for place in range(30)]
    bad = str(save(tmp_path, changed(sealed(golden("deterministic")), noise_multiplier=9.5), "bad.json", careless=True))
    loud = run("check", *good, bad, "--max-epsilon", "8", "--max-delta", "1e-5")
    code, out, err = run("check", *good, bad, "--max-epsilon", "8", "--max-delta", "1e-5", "--quiet")
    assert (code, err) == (1, "")
    lines = out.splitlines()
    assert lines[:3] == ["Check  31 certificates  FAILS", "", f"{bad}: FAILS"]
    assert lines[4].split()[:2] == ["FAILS", "intact"]
    assert "content_sha256" in out
    # Every line is one that is printed otherwise too, but for the widths of columns.
    assert {" ".join(line.split()) for line in lines} <= {" ".join(line.split()) for line in loud[1].splitlines()}
    broken = str(save(tmp_path, "{", "broken.json"))
    assert run("check", *good, broken, *LIMITS, "--quiet")[:2] == (2, "")


def test_exit_codes(tmp_path: Path, run: Run) -> None:
    good = str(RUNS["deterministic"])
    assert run("check", good, *LIMITS, "--quiet") == (0, "", "")
    assert run("check", good, "--max-epsilon", "1", "--max-delta", "1e-5", "--quiet")[0] == 1
    assert run("check", RUNS["claim-fails"], "--max-epsilon", "100", "--max-delta", "1e-5")[0] == 1
    broken = save(tmp_path, "{")
    code, out, err = run("check", good, broken, *LIMITS, "--format", "json")
    assert code == 2
    # The good one is judged all the same.
    assert [one["passes"] for one in json.loads(out)["certificates"]] == [True, False]
    assert f"{broken}:1:2" in err


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--max-epsilon", "nan"),
        ("--max-epsilon", ""),
        ("--max-epsilon", "8 or so"),
        ("--max-delta", "1"),
        ("--adjacency", "add-or-remove"),
        ("--unit", "person"),
        ("--group-size", "0"),
        ("--guarantee", "proven"),
        ("--max-failure-probability", "2"),
        ("--max-age", "old"),
        ("--document-sha256", "abc"),
        ("--policy", "nowhere.yaml"),
        ("--policy", str(EXAMPLES / "cifar10-dp-sgd.yaml")),
    ],
)
def test_wrong_limits_are_located_and_open_no_gate(option: str, value: str, run: Run, snapshot: Snapshot) -> None:
    snapshot(run("check", RUNS["deterministic"], option, value))


POLICY_TEXT = """\
pyaccount: 1
kind: policy
name: strict
limits:
  max_epsilon: 8
"""


@pytest.mark.parametrize(
    "text",
    [
        POLICY_TEXT.replace("max_epsilon", "epsilon"),
        POLICY_TEXT.replace("8", "-1"),
        POLICY_TEXT.replace("8", "solve"),
        POLICY_TEXT + "  max_epsilon: 9\n",
        POLICY_TEXT + "  adjacency: []\n",
        POLICY_TEXT + "  adjacency: [zero-out, zero-out]\n",
        POLICY_TEXT + "  guarantee: [verified, 3]\n",
        POLICY_TEXT + "  max_age: -1 d\n",
        POLICY_TEXT.replace("policy", "polcy"),
        POLICY_TEXT.replace("kind: policy\n", ""),
        POLICY_TEXT.replace("  max_epsilon: 8\n", "  {}\n"),
        POLICY_TEXT.replace("pyaccount: 1", "pyaccount: 2"),
        POLICY_TEXT.replace("name: strict\n", ""),
    ],
)
def test_policies_are_read_strictly(text: str, tmp_path: Path, snapshot: Snapshot) -> None:
    path = save(tmp_path, text, "policy.yaml")
    snapshot.raised(lambda: pyaccount.check(RUNS["deterministic"], policy=path))


def test_policies_validate_and_are_no_mechanisms(run: Run, snapshot: Snapshot) -> None:
    assert run("validate", POLICY) == (0, f"{POLICY}: valid\n", "")
    for command in ("certify", "plan"):
        snapshot(run(command, POLICY))
    snapshot.raised(pyaccount.load, POLICY)


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_an_amplification_is_no_training_run(path: Path, run: Run, snapshot: Snapshot) -> None:
    snapshot(run("check", path, "--max-epsilon", "1e6", "--max-delta", "0.5"))


@pytest.mark.parametrize(
    "text",
    [
        '{"pyaccount": 2, "kind": "certificate"}',
        '{"pyaccount": true, "kind": "certificate"}',
        '{"kind": "certificate"}',
        '{"pyaccount": 1, "kind": "comparison"}',
        "[1]",
        "",
        "{" * 100_000,
        "[" * 100_000,
        '{"pyaccount": 1, "kind": "certificate", "document": ' + "[" * 90 + "]" * 90 + "}",
        '{"pyaccount": 1, "kind": "certificate", "kind": "certificate"}',
        '{"pyaccount": 1, "kind": "certificate", "x": {"y": NaN}}',
        '{"pyaccount": 1, "kind": "certificate", "x": [1e999]}',
        '{"pyaccount": 1, "kind": "certificate", "x": ' + "9" * 5000 + "}",
        '{"pyaccount": 1, "kind": "certificate", "x": "\\ud800"}',
        "{}x",
        b"\xff\xfe",
    ],
)
def test_files_that_hold_no_certificate_are_located(
    text: str | bytes, tmp_path: Path, run: Run, snapshot: Snapshot
) -> None:
    path = save(tmp_path, text)
    snapshot(run("check", path, *LIMITS))
    snapshot(run("verify", path))


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"guarantee__epsilon": "2"}, "guarantee.epsilon"),
        ({"guarantee__epsilon": -1.0}, "guarantee.epsilon"),
        ({"guarantee__delta": 2.0}, "guarantee.delta"),
        ({"guarantee__extra": 1}, "guarantee.extra"),
        ({"privacy__adjacency": "all"}, "privacy.adjacency"),
        ({"holds": 1}, "holds"),
        ({"profile__0__delta": True}, "profile[0].delta"),
        ({"phases__0__iterations": 1.5}, "phases[0].iterations"),
    ],
)
def test_fields_of_the_wrong_kind_are_named(change: dict[str, Any], place: str, tmp_path: Path) -> None:
    (judged,) = pyaccount.check(save(tmp_path, changed(golden("deterministic"), **change)), no_limits=True).certificates
    assert judged.error is not None
    assert f"c.json: {place}: " in judged.error


def test_files_that_cannot_be_read(tmp_path: Path, run: Run) -> None:
    for path in (tmp_path, tmp_path / "absent.json", Path("/dev/null")):
        code, _, err = run("check", path, *LIMITS)
        assert code == 2
        assert str(path) in err


def test_a_hostile_name_writes_no_line_of_its_own(tmp_path: Path) -> None:
    name = "x\n::error::y\x1b[31m"
    certificate = changed(golden("deterministic"), name=name, document__name=name)
    verdict_text = pyaccount.check(
        save(tmp_path, rehashed(certificate)), adjacency="zero-out", no_limits=True
    ).to_text()
    assert "\x1b" not in verdict_text
    assert not any(line.startswith("::") for line in verdict_text.splitlines())


def test_check_without_a_document_loads_none_of_its_models() -> None:
    script = (
        "import sys; from pyaccount import cli; "
        f"assert cli.run(['check', {str(RUNS['deterministic'])!r}, '--policy', {str(POLICY)!r}]) in (0, 1); "
        "loaded = {'pyaccount.document.sections', 'pyaccount.document.samplers'} & set(sys.modules); "
        "assert not loaded, loaded"
    )
    subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.DEVNULL)


def test_check_loads_no_numerics() -> None:
    script = (
        "import sys; from pyaccount import cli; "
        f"document = {str(EXAMPLES / 'cifar10-dp-sgd.yaml')!r}; "
        f"options = ['--policy', {str(POLICY)!r}, '--document', document]; "
        f"assert cli.run(['check', {str(RUNS['deterministic'])!r}, *options]) in (0, 1); "
        "loaded = {'numpy', 'scipy', 'pyaccount._core', 'rich.console', 'pyaccount.plan'} & set(sys.modules); "
        "assert not loaded, loaded"
    )
    # 0 until the golden certificate is older than the example's policy allows.
    subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.DEVNULL)


def test_a_pattern_that_matches_nothing_opens_no_gate(tmp_path: Path, snapshot: Snapshot) -> None:
    snapshot.raised(lambda: pyaccount.check(*tmp_path.glob("*.json"), max_epsilon=8, no_limits=True))


def test_certificates_in_memory() -> None:
    certificate = pyaccount.Certificate.load(RUNS["deterministic"])
    assert pyaccount.check(certificate, max_epsilon=2, max_delta=1e-6).passes
    assert not pyaccount.check(certificate, policy={**_MAPPING, "limits": {"max_epsilon": 1, "max_delta": 1e-5}}).passes
    assert math.isclose(certificate.epsilon, golden("deterministic")["guarantee"]["epsilon"], rel_tol=0)


def test_a_certificate_is_about_a_document(tmp_path: Path, run: Run, snapshot: Snapshot) -> None:
    certificate = golden("deterministic")
    right, wrong = tmp_path / "right.yaml", tmp_path / "wrong.yaml"
    right.write_text(json.dumps(certificate["document"]), encoding="utf-8")
    wrong.write_text(json.dumps(changed(certificate["document"], name="another")), encoding="utf-8")
    file = str(save(tmp_path, certificate))
    assert pyaccount.load(right).sha256 == certificate["document_sha256"]
    cases: list[tuple[list[str], int]] = [
        ([str(right)], 0),
        ([str(wrong)], 1),
        ([str(wrong), str(right)], 0),
        ([str(tmp_path / "absent.yaml")], 2),
        ([""], 2),
        ([file], 2),
        ([str(POLICY)], 2),
    ]
    for documents, code in cases:
        options = [word for document in documents for word in ("--document", document)]
        assert run("check", file, *options, *LIMITS)[0] == code, documents
    code, out, _ = run("check", file, "--document", wrong, *LIMITS, "--format", "json")
    (rule,) = [rule for rule in json.loads(out)["certificates"][0]["rules"] if rule["rule"] == "document"]
    assert (rule["passes"], rule["origin"], rule["limit"]) == (False, "command line", [str(wrong)])
    assert rule["value"] == certificate["document_sha256"]
    assert pyaccount.load(wrong).sha256 in rule["remark"]
    assert pyaccount.check(file, document=certificate["document"], no_limits=True)
    assert pyaccount.check(file, document=[wrong, pyaccount.load(right)], no_limits=True)
    assert not pyaccount.check(file, document=wrong, no_limits=True)
    snapshot.raised(pyaccount.check, file, document=[], no_limits=True)


@pytest.mark.parametrize(
    ("sampler", "training"),
    [
        ("poisson", {"dataset_size": 7, "expected_batch_size": 3}),
        ("poisson", {"dataset_size": 30, "expected_batch_size": 1, "sampling_probability": 0.03333333333333333}),
        ("poisson", {"dataset_size": "50_000", "participation_rate": 0.013}),
        ("poisson", {"dataset_size": 49_999, "expected_batch_size": "solve"}),
        ("fixed-size", {"dataset_size": 30, "sampling_probability": 0.0333333333333}),
        ("fixed-size", {"dataset_size": 70, "expected_batch_size": 3}),
        ("with-replacement", {"dataset_size": 70, "expected_batch_size": 3}),
    ],
)
def test_certificates_do_not_contradict_their_rates(sampler: str, training: dict[str, Any]) -> None:
    solved = training.get("expected_batch_size") == "solve"
    document = doc(
        "name=rates delta=1e-6 multiplier=3 profile=[0.1]",
        epsilon=0.05 if solved else "solve",
        training={**training, "iterations": 20},
        sampler=sampler,
    )
    assert pyaccount.check(pyaccount.certify(document), document=document, no_limits=True)


def test_a_verdict_is_as_true_as_what_it_says(tmp_path: Path) -> None:
    certificate = pyaccount.Certificate.load(RUNS["deterministic"])
    assert pyaccount.check(certificate, max_epsilon=2, max_delta=1e-6)
    assert not pyaccount.check(certificate, max_epsilon=1e-3, max_delta=1e-6)
    assert not pyaccount.check(certificate, ROOT / "nowhere.json", no_limits=True)
    assert pyaccount.verify(certificate)
    assert not pyaccount.verify(save(tmp_path, changed(golden("deterministic"), holds=False)))


_MAPPING = {"pyaccount": 1, "kind": "policy", "name": "m"}

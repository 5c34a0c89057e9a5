"""`pyaccount verify`: honest certificates agree, and whatever was changed is named."""

from __future__ import annotations

import json
import math
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from gate_tools import ALL, RUNS, changed, golden, leaves, rehashed, save, written
from jsonschema import Draft202012Validator

import pyaccount
from pyaccount import cli, schemas
from pyaccount.certificate import Certificate
from pyaccount.gate.agreement import Terms, differences
from pyaccount.plan import Plan

SAMPLED = ("verified", "verified-choice", "confidence")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli.run(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def named(verification: Any) -> set[str]:
    return {one.path for one in (*verification.flaws, *verification.differences)}


def agreeing(verification: Any) -> set[str]:
    return {one.path for one in verification.differences if one.agrees}


@pytest.fixture
def remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Certificates of equal documents and seeds are computed once in a test: it is the comparison that is tested."""
    kept: dict[tuple[str, object], Certificate] = {}
    original = Plan.run

    def run_once(self: Plan, *, seed: int | None = None, **options: Any) -> Certificate:
        key = ((self.asked or self.document).sha256, seed)
        if key not in kept:
            kept[key] = original(self, seed=seed, **options)
        return kept[key]

    monkeypatch.setattr(Plan, "run", run_once)


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_golden_certificates_agree(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "verify", str(path), "--format", "json", "--threads", "1")
    found = json.loads(out)
    assert code == 0, found["differences"]
    assert found["agrees"]
    assert list(Draft202012Validator(schemas.verification_schema()).iter_errors(found)) == []
    assert found["compared"] == ("bits" if path.stem in SAMPLED else "digits")


def scaled(value: Any) -> Any:
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return 0.9 * value if value else 1e-3
    return "0" * 64 if value is None or re.fullmatch("[0-9a-f]{64}", value) else value + " "


@pytest.mark.parametrize("name", ["deterministic", "group-of-phases", "verified", "confidence"])
@pytest.mark.usefixtures("remembered")
def test_every_changed_field_is_named(name: str, tmp_path: Path) -> None:
    certificate = golden(name)
    silent = []
    for path in leaves(certificate):
        if path[0] in ("created", "versions") or (path[0] == "document" and name != "deterministic"):
            # What nobody can recompute; and the hash tells a changed document, whatever is computed from it.
            continue
        inside = certificate
        for part in path[:-1]:
            inside = inside[part]  # type: ignore[index]
        forged = changed(certificate, **{"__".join(map(str, path)): scaled(inside[path[-1]])})  # type: ignore[index]
        place = written(path)
        try:
            found = pyaccount.verify(save(tmp_path, forged))
        except pyaccount.CertificateError as error:
            # Refused for what it is; the message must say where.
            if place not in str(error):
                silent.append(place)
            continue
        where = "document_sha256" if path[0] == "document" else place
        if found.agrees or where not in named(found):
            silent.append(place)
    assert silent == []


@pytest.mark.usefixtures("remembered")
def test_removed_and_added_entries_are_named(tmp_path: Path) -> None:
    certificate = golden("deterministic")
    for path in ("assumptions", "profile", "reductions", "evidence__error_budget"):
        inside = certificate
        for part in path.split("__"):
            inside = inside[part]
        for entries in (inside[1:], [*inside, inside[0]]):  # type: ignore[index, misc]
            found = pyaccount.verify(save(tmp_path, changed(certificate, **{path: entries})))
            assert not found.agrees
            assert path.replace("__", ".") in named(found)


@pytest.mark.parametrize("name", SAMPLED)
@pytest.mark.usefixtures("remembered")
def test_sampled_certificates_are_compared_bit_for_bit(name: str, tmp_path: Path) -> None:
    certificate = golden(name)
    estimate = certificate["profile"][0]["delta_estimate"]
    forged = changed(certificate, profile__0__delta_estimate=math.nextafter(estimate, 1.0))
    found = pyaccount.verify(save(tmp_path, forged))
    assert not found.agrees
    assert named(found) == {"profile[0].delta_estimate"}


def test_another_seed_is_another_certificate(tmp_path: Path) -> None:
    certificate = golden("verified")
    forged = changed(certificate, evidence__sampling__seed=certificate["evidence"]["sampling"]["seed"] ^ 1)
    found = pyaccount.verify(save(tmp_path, forged))
    assert not found.agrees
    assert "evidence.sampling.tests[0].mean" in named(found)


def test_threads_do_not_matter() -> None:
    for name in ("deterministic", "confidence"):
        one, two = (pyaccount.verify(RUNS[name], threads=threads) for threads in (1, 2))
        assert one == two


def forged_noise(shift: float) -> dict[str, Any]:
    """What a search that ended elsewhere would have written: the claim judged at another σ."""
    asked = golden("deterministic")
    value = asked["solved"]["value"] * (1.0 + shift)
    document = changed(asked["document"], noise__multiplier=value)
    fresh: dict[str, Any] = json.loads(pyaccount.certify(document).to_json())
    kept = {key: asked[key] for key in ("document", "document_sha256")}
    return changed(fresh, solved={**asked["solved"], "value": value}) | kept


def test_a_search_that_ended_elsewhere_within_the_tolerance_agrees(tmp_path: Path) -> None:
    found = pyaccount.verify(save(tmp_path, forged_noise(6e-5)))
    assert found.agrees, found.to_text()
    assert not found.identical
    assert "solved.value" in agreeing(found)
    assert any("put into the document" in note for note in found.notes)


@pytest.mark.parametrize(("shift", "words"), [(-9e-5, "could not be certified"), (0.01, "apart"), (-0.01, "apart")])
def test_noise_that_misses_the_claim_or_the_tolerance_does_not(shift: float, words: str, tmp_path: Path) -> None:
    found = pyaccount.verify(save(tmp_path, forged_noise(shift)))
    assert not found.agrees
    (solved,) = [one for one in found.differences if one.path == "solved.value" and not one.agrees]
    assert words in solved.reason


@pytest.mark.usefixtures("remembered")
def test_a_lowered_bound_is_refuted_even_within_the_tolerance(tmp_path: Path) -> None:
    wide = pyaccount.certify({**golden("smallest-delta")["document"], "accounting": {"tolerance": 0.2}})
    certificate = json.loads(wide.to_json())
    # The interval is much narrower than asked for: what lies below it is told apart from what moved within it.
    point = certificate["profile"][1]
    assert point["delta_lower"] * 0.95 > 0.8 * point["delta"]
    found = pyaccount.verify(save(tmp_path, changed(certificate, profile__1__delta=point["delta_lower"] * 0.95)))
    assert not found.agrees
    (lowered,) = [one for one in found.differences if one.path == "profile[1].delta"]
    assert "refuted" in lowered.reason


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_other_versions_promise_no_bits(path: Path, tmp_path: Path) -> None:
    certificate = json.loads(path.read_text(encoding="utf-8"))
    found = pyaccount.verify(save(tmp_path, changed(certificate, versions__pyaccount="0.0.9")))
    assert found.agrees, found.to_text()
    assert "pyaccount 0.0.9" in found.notes[0]
    if path.stem in SAMPLED:
        assert "bits are not promised" in found.notes[0]
        assert found.compared == "bounds"


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"assumptions": []}, "assumptions"),
        ({"guarantee__delta": 5e-3}, "guarantee.delta"),
        ({"utility__prefix_sum_mse": 1.0}, "utility.prefix_sum_mse"),
        ({"phases__0__participation_rate": 0.04}, "phases[0].participation_rate"),
        ({"guarantee__failure_probability": 1e-12}, "guarantee.failure_probability"),
    ],
)
def test_what_other_versions_do_promise(change: dict[str, Any], place: str, tmp_path: Path) -> None:
    certificate = changed(golden("confidence"), versions__pyaccount="0.0.9", **change)
    found = pyaccount.verify(save(tmp_path, certificate))
    assert not found.agrees
    assert place in {one.path for one in (*found.flaws, *found.differences) if not getattr(one, "agrees", False)}


def test_a_consistent_forgery_by_another_version_is_refuted(tmp_path: Path) -> None:
    certificate = golden("confidence")
    honest = certificate["guarantee"]["epsilon"]
    assert certificate["guarantee"]["epsilon_lower"] > 0.6 * honest
    low = 0.5 * honest
    forged = changed(
        certificate,
        versions__pyaccount="0.0.9",
        guarantee__epsilon=low,
        guarantee__epsilon_lower=0.0,
        solved__value=low,
        directions__remove__epsilon=low,
        directions__add__epsilon=low,
        directions__remove__epsilon_lower=0.0,
        directions__add__epsilon_lower=0.0,
        profile=[],
    )
    forged["directions"]["remove"]["profile"] = forged["directions"]["add"]["profile"] = []
    (judged,) = pyaccount.check(save(tmp_path, forged)).certificates
    remark = judged.rules[0].remark
    assert remark is not None
    assert remark.startswith("statement: the fields of the certificate say: ")
    forged["statement"] = remark.partition(" say: ")[2]
    assert pyaccount.check(save(tmp_path, forged)).passes
    found = pyaccount.verify(save(tmp_path, forged))
    assert not found.agrees
    assert any(one.path == "guarantee.epsilon" and "refuted" in one.reason for one in found.differences)


def test_the_document_or_the_hash_was_changed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    certificate = golden("deterministic")
    path = save(tmp_path, changed(certificate, document__privacy__delta=1e-5))
    code, out, _ = run(capsys, "verify", str(path))
    assert code == 1
    assert "document_sha256: contradicts" in out
    assert "guarantee.delta: DIFFERS" in out
    # With the hash alone, all figures agree.
    found = pyaccount.verify(save(tmp_path, changed(certificate, document_sha256="f" * 64)))
    assert [flaw.path for flaw in found.flaws] == ["document_sha256"]
    assert found.differences[0].path == "document_sha256"
    assert len(found.differences) == 1


def test_a_broken_document_is_unreadable_or_tampered(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    broken = changed(golden("deterministic"), document__privacy__delta=2)
    code, out, _ = run(capsys, "verify", str(save(tmp_path, broken)))
    assert code == 1
    assert "document.privacy.delta" in out
    assert "document_sha256" in out
    code, _, err = run(capsys, "verify", str(save(tmp_path, rehashed(broken))))
    assert code == 2
    assert "privacy.delta = 2 [out-of-range]" in err


def test_a_claim_that_nothing_reaches_does_not_agree(tmp_path: Path) -> None:
    forged = rehashed(changed(golden("deterministic"), document__privacy__epsilon=0, document__privacy__delta=1e-200))
    found = pyaccount.verify(save(tmp_path, forged))
    assert not found.agrees
    assert "document.noise.multiplier" in named(found)


def test_a_matrix_file_lies_beside_the_certificate(tmp_path: Path) -> None:
    matrix = [[1.0, 0.0, 0.0], [0.5, 1.0, 0.0], [0.25, 0.5, 1.0]]
    text = "\n".join(",".join(map(str, row)) for row in matrix)
    (tmp_path / "matrix.csv").write_text(text, encoding="utf-8")
    document = {
        "pyaccount": 1,
        "name": "dense",
        "privacy": {"adjacency": "zero-out", "epsilon": "solve", "delta": 1e-6},
        "training": {"iterations": 3},
        "sampler": {"kind": "none", "max_participations": 1, "min_separation": 3},
        "matrix": {"kind": "dense", "file": "matrix.csv"},
        "noise": {"multiplier": 2},
    }
    path = tmp_path / "dense.yaml"
    path.write_text(json.dumps(document), encoding="utf-8")
    target = tmp_path / "dense.json"
    pyaccount.certify(path).save(target)
    assert pyaccount.verify(target).identical
    (tmp_path / "matrix.csv").write_text(text.replace("0.25", "0.3"), encoding="utf-8")
    assert "phases[0].matrix.sha256" in named(pyaccount.verify(target))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "matrix.csv").write_text(text, encoding="utf-8")
    assert pyaccount.verify(target, folder=elsewhere).identical
    (tmp_path / "matrix.csv").unlink()
    with pytest.raises(pyaccount.DocumentError, match="no such file"):
        pyaccount.verify(target)


def test_limits_and_time(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "verify", str(RUNS["verified"]), "--time-limit", "1e-3 s")
    assert (code, out) == (3, "")
    assert "time limit" in err
    for bad in ("soon", "-1", "nan", "inf", "0"):
        assert run(capsys, "verify", str(RUNS["deterministic"]), "--time-limit", bad)[0] == 2
    assert run(capsys, "verify", str(RUNS["deterministic"]), "--quiet") == (0, "", "")


def test_ctrl_c_interrupts(tmp_path: Path) -> None:
    slow = rehashed(
        changed(
            golden("deterministic"),
            document__privacy={"adjacency": "add-remove", "group_size": 60, "epsilon": "solve", "delta": 1e-6},
            document__training={"sampling_probability": 0.01, "iterations": 100_000_000},
            document__noise={"multiplier": 30.0},
            document__accounting={"tolerance": 1e-8},
        )
    )
    command = [sys.executable, "-m", "pyaccount.cli", "verify", str(save(tmp_path, slow))]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(2.0)
    assert process.poll() is None, "the document was meant to take longer than this"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in err


def test_precision_is_relative_to_what_is_stated() -> None:
    stated = golden("deterministic")
    fresh = changed(stated, guarantee__epsilon=stated["guarantee"]["epsilon"] * (1 + 9e-5))
    for tolerance, agrees in ((1e-4, True), (1e-5, False)):
        (found,) = differences(stated, fresh, Terms("digits", tolerance, same_version=True))
        assert (found.path, found.agrees) == ("guarantee.epsilon", agrees)


def test_absent_fields_of_older_certificates_are_told_and_agree() -> None:
    stated = golden("deterministic")
    del stated["phases"][0]["distinct_records"]
    (found,) = differences(stated, golden("deterministic"), Terms("digits", 1e-4, same_version=True))
    assert (found.path, found.agrees, found.reason) == (
        "phases[0].distinct_records",
        True,
        "not stated by the certificate",
    )


def test_a_failed_claim_that_agrees_is_said_to_fail() -> None:
    found = pyaccount.verify(RUNS["claim-fails"])
    assert found.agrees
    assert "does not hold" in found.to_text()


def test_certificates_in_memory_and_progress() -> None:
    assert pyaccount.verify(Certificate.load(RUNS["deterministic"]), progress=True).agrees

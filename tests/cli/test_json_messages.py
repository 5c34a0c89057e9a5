"""Errors, validations and plans as JSON: one value on stdout, that satisfies its schema, with the same exit code as the text."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from places import EXAMPLES, ROOT
from snapshots import Run, Snapshot

import pyaccount
from pyaccount import cli, errors, schemas
from pyaccount.cli.streams import as_data

EXAMPLE = str(EXAMPLES / "check-a-claim.yaml")


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any], str]:
    """The exit code, the JSON on stdout, and the text on stderr."""
    code = cli.run([*arguments, "--format", "json"])
    out, err = capsys.readouterr()
    found = json.loads(out)
    validator = Draft202012Validator(schemas.SCHEMAS[found["kind"]]())
    assert [error.message for error in validator.iter_errors(found)] == []
    return code, found, err


@pytest.fixture
def bad(tmp_path: Path) -> str:
    """A document with an error in a value, one in a key, and one that has no line."""
    file = tmp_path / "bad.yaml"
    text = Path(EXAMPLE).read_text(encoding="utf-8")
    file.write_text(text.replace("delta: 1e-6", "delta: 1.5").replace("poisson", "poison"), encoding="utf-8")
    return str(file)


@pytest.mark.parametrize("command", ["certify", "plan", "matrix", "compare"])
def test_errors_of_documents_are_data_and_text(
    command: str, bad: str, capsys: pytest.CaptureFixture[str], snapshot: Snapshot
) -> None:
    code, found, err = said(capsys, command, bad)
    with pytest.raises(pyaccount.DocumentError) as caught:
        pyaccount.load(bad)
    assert (code, found["exit_code"], found["kind"], found["command"]) == (2, 2, "errors", command)
    told = [{key: value for key, value in error.items() if key != "stopped"} for error in found["errors"]]
    assert told == caught.value.to_json()
    snapshot(*(json.dumps(error, ensure_ascii=False, indent=1) for error in told))
    # The text is the one that is told without JSON.
    cli.run([command, bad])
    assert err == capsys.readouterr().err


def test_validation(bad: str, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [EXAMPLE, bad, str(EXAMPLES / "policy.yaml"), str(EXAMPLES / "one-draw.yaml")]
    code, found, err = said(capsys, "validate", *paths)
    # What is found is the result, and stands in one place.
    assert (code, found["valid"], err) == (2, False, "")
    assert [one["file"] for one in found["documents"]] == paths
    assert [one["valid"] for one in found["documents"]] == [True, False, True, True]
    assert [one["kind"] for one in found["documents"]] == ["mechanism", None, "policy", "amplification"]
    assert found["documents"][0]["document_sha256"] == pyaccount.load(EXAMPLE).sha256
    assert [error["slug"] for error in found["documents"][1]["errors"]] == ["out-of-range", "unknown-kind"]


def test_notes_of_a_valid_document(capsys: pytest.CaptureFixture[str]) -> None:
    code, found, err = said(capsys, "validate", str(EXAMPLES / "cifar10-dp-sgd.yaml"), "--set", "privacy.delta=0.01")
    (one,) = found["documents"]
    assert (code, one["valid"], err) == (0, True, "")
    assert "δ is not below 1/50_000" in one["notes"][0]


@pytest.mark.parametrize(
    "name", ["check-a-claim", "cifar10-dp-sgd", "pretrain-and-finetune", "cifar10-bandmf", "users"]
)
def test_plans(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    source = EXAMPLES / f"{name}.yaml"
    code, found, _ = said(capsys, "plan", str(source))
    plan = pyaccount.compile(source)
    assert (code, found["kind"], found["name"]) == (0, "plan", plan.document.name)
    assert found["document_sha256"] == (plan.asked or plan.document).sha256
    assert [one["theorem"] for one in found["reductions"]] == [one.theorem for one in plan.reductions]
    assert all(one["assumptions"] for one in found["reductions"])
    assert found["sampled"] == (found["cost"] is None) == bool(found["sampling_cost"])
    assert pyaccount.load(found["document"]).sha256 == found["document_sha256"]


def test_plans_of_choices_and_amplifications(capsys: pytest.CaptureFixture[str]) -> None:
    source = str(EXAMPLES / "cifar10-bandmf.yaml")
    choice = ["--set", "matrix.bands={choose: [4, 8]}"]
    _, found, _ = said(capsys, "plan", source, *choice)
    assert found["candidates"] == 2
    assert found["document"]["matrix"]["bands"] == {"choose": [4, 8]}
    _, found, _ = said(capsys, "plan", str(EXAMPLES / "one-draw.yaml"))
    assert (found["kind"], found["name"]) == ("amplification-plan", "bootstrap-query")


def test_estimates_say_that_they_are_none_but_that(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    document = tmp_path / "short.yaml"
    text = (EXAMPLES / "cifar10-bandmf.yaml").read_text(encoding="utf-8")
    document.write_text(
        text.replace("iterations: 2000", "iterations: 96").replace("multiplier: solve", "multiplier: 1")
    )
    code, found, _ = said(
        capsys, "plan", str(document), "--estimate", *("--set", "privacy.delta=1e-3", "--set", "privacy.epsilon=1")
    )
    assert code == 0
    assert {one["direction"] for one in found["forecast"]["directions"]} <= {"remove", "add", "replace"}
    assert all(one["samples"] > 0 for one in found["forecast"]["directions"])
    # Where too few samples counted there is none.
    estimates = [one["delta_estimate"] for one in found["forecast"]["directions"]]
    assert any(estimates)
    assert all(estimate is None or estimate >= 0.0 for estimate in estimates)


def test_what_else_goes_wrong_has_a_slug(
    bad: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, snapshot: Snapshot
) -> None:
    broken, forged = tmp_path / "broken.json", tmp_path / "forged.json"
    broken.write_text('{"pyaccount": 1,\n "kind": nothing}')
    certificate = json.loads(pyaccount.certify(EXAMPLE).to_json())
    certificate["guarantee"]["epsilon"] = "three"
    del certificate["holds"]
    forged.write_text(json.dumps(certificate))
    for words in (
        ("report", str(broken)),
        ("verify", str(broken)),
        ("report", str(forged)),
        ("compare", bad, EXAMPLE, "nowhere.yaml"),
        ("certfy", EXAMPLE),
        ("certify", EXAMPLE, "--sett", "x=1"),
        ("compare",),
        ("verify", EXAMPLE, "--time-limit", "soon"),
        ("check", str(broken), "--max-epsilon", "many", "--max-delta", "1e-6"),
    ):
        code, found, err = said(capsys, *words)
        assert (code, found["exit_code"], found["kind"]) == (2, 2, "errors")
        snapshot(str(found["command"]), err, *(json.dumps(error, ensure_ascii=False) for error in found["errors"]))


def test_a_limit_says_as_data_how_far_it_came(capsys: pytest.CaptureFixture[str]) -> None:
    code, found, err = said(capsys, "certify", EXAMPLE, "--set", "accounting.time_limit=1e-3")
    (error,) = found["errors"]
    assert (code, found["exit_code"], error["slug"]) == (3, 3, "limit")
    assert error["stopped"]["limit"] == {"seconds": 0.001, "set_by": "--set accounting.time_limit=1e-3"}
    assert error["stopped"]["stage"] == "checking the claim"
    assert "the time limit was reached" in err


def test_a_bug_is_data_too(monkeypatch: pytest.MonkeyPatch) -> None:
    program = (
        "import pyaccount.running, pyaccount.cli\n"
        "def fail(*_): raise ZeroDivisionError('division by zero')\n"
        "pyaccount.running.compile_document = fail\n"
        "pyaccount.cli.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "certify", EXAMPLE, "--format=json"],
        capture_output=True,
        text=True,
        check=False,
    )
    found = json.loads(done.stdout)
    assert (done.returncode, found["exit_code"], found["errors"][0]["slug"]) == (70, 70, "bug")
    assert "Traceback" in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
def test_an_error_that_cannot_be_written_keeps_its_exit_code(bad: str) -> None:
    with open("/dev/full", "wb") as full:  # noqa: PTH123
        done = subprocess.run(
            [sys.executable, "-m", "pyaccount", "certify", bad, "--format", "json"],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["validate", "certify"])
def test_a_name_that_is_no_text_is_data_all_the_same(command: str, bad: str, tmp_path: Path) -> None:
    file = os.fsencode(tmp_path) + b"/\xff.yaml"
    Path(os.fsdecode(file)).write_bytes(Path(bad).read_bytes())
    done = subprocess.run(
        [sys.executable, "-m", "pyaccount", command, file, "--format", "json"], capture_output=True, check=False
    )
    found = json.loads(done.stdout)
    (first, *_) = found["errors"] if command == "certify" else found["documents"][0]["errors"]
    assert (done.returncode, first["slug"]) == (2, "out-of-range")
    assert os.fsencode(first["file"]) == file


def test_without_json_nothing_more_is_printed(bad: str, run: Run, snapshot: Snapshot) -> None:
    for arguments in (["certify", bad], ["certify", bad, "--format", "text"], ["report", bad, "--format", "html"]):
        snapshot(run(*arguments))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["certify", "x", "--format", "json"], True),
        (["certify", "x", "--format=json"], True),
        (["certify", "x", "--format=text", "--format", "json"], True),
        (["certify", "x", "--format", "json", "--format=text"], False),
        (["certify", "--", "--format", "json"], False),
        (["certify", "json"], False),
        ([], False),
    ],
)
def test_when_json_is_asked_for(words: list[str], expected: bool) -> None:
    assert as_data(words) == expected


def test_every_error_has_a_slug_of_its_own() -> None:
    kinds = [one for one in errors.PyaccountError.__subclasses__() if one is not errors.DocumentError]
    slugs = [one.slug for one in kinds]
    assert len(set(slugs)) == len(slugs)
    assert set(slugs) | {"bug", "input-output", "interrupted", "usage"} == set(errors.FAILURES)
    assert not set(errors.FAILURES) & set(errors.SLUGS)


def test_a_file_that_is_no_certificate_has_its_errors_as_data(capsys: pytest.CaptureFixture[str]) -> None:
    limits = ["--max-epsilon", "8", "--max-delta", "1e-5"]
    code, found, _ = said(capsys, "check", "nowhere.json", EXAMPLE, *limits)
    absent, document = found["certificates"]
    (problem,) = absent["problems"]
    assert (code, problem["slug"]) == (2, "certificate")
    assert problem["message"] == "cannot be read: No such file or directory"
    assert document["problems"][0]["slug"] == "certificate"
    assert "pyaccount certify" in document["problems"][0]["message"]


def test_a_quiet_comparison_prints_what_is_asked_for_alone(
    capsys: pytest.CaptureFixture[str], run: Run, snapshot: Snapshot
) -> None:
    snapshot(run("compare", EXAMPLE, "--quiet"))
    code, found, err = said(capsys, "compare", EXAMPLE, "--quiet")
    assert (code, found["kind"], err) == (0, "comparison", "")
    # What gave no certificate is told all the same.
    snapshot(run("compare", EXAMPLE, "--quiet", "--set", "accounting.time_limit=1e-9"))

"""`pyaccount compose`: its output, its exit codes, and what it says on stderr."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from places import ROOT

import pyaccount
from pyaccount import cli

GOLDEN = ROOT / "tests" / "golden" / "certificates" / "v1"
FIRST, SECOND = str(GOLDEN / "deterministic.json"), str(GOLDEN / "smallest-delta.json")
SAMPLED = str(GOLDEN / "verified.json")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli.run(["compose", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_certificate_is_that_of_python(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command writes the certificate that Python returns, and shows it as a page with what was composed."""
    file = tmp_path / "joint.json"
    code, out, err = run(capsys, FIRST, SECOND, "--delta", "1e-6", "-o", str(file))
    assert (code, err) == (0, "")
    made = pyaccount.compose([FIRST, SECOND], delta=1e-6)
    written = pyaccount.Certificate.load(file)
    assert written.data.guarantee == made.data.guarantee
    assert written.data.document_sha256 == made.data.document_sha256
    assert "Composed from" in out
    assert "fixed before the first release" in " ".join(out.split())


def test_forms_and_claims(capsys: pytest.CaptureFixture[str]) -> None:
    """Results are on stdout in every form; a claim that does not hold has exit code 1."""
    code, out, _ = run(capsys, FIRST, SECOND, "--delta", "1e-6", "--format", "json")
    assert (code, json.loads(out)["kind"]) == (0, "certificate")
    code, out, _ = run(capsys, FIRST, SECOND, "--delta", "1e-6", "--epsilon", "2", "--brief")
    assert code == 1
    assert "is not (2, 1e-6)-differentially private" in out
    code, out, _ = run(capsys, FIRST, SECOND, "--delta", "1e-6", "--epsilon", "2", "--quiet")
    assert (code, out) == (1, "")
    code, out, _ = run(capsys, "--part", f"a={FIRST}", "--part", f"b={SECOND}", "--delta", "1e-6", "--brief")
    assert code == 0


def test_the_document_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The joint document is printed as YAML that can be certified, and nothing is computed."""
    code, out, _ = run(capsys, FIRST, SECOND, "--delta", "1e-6", "--document-only", "--name", "budget")
    assert code == 0
    (tmp_path / "joint.yaml").write_text(out, encoding="utf-8")
    document = pyaccount.load(tmp_path / "joint.yaml")
    assert document.name == "budget"
    assert document.sha256 == pyaccount.compose([FIRST, SECOND], delta=1e-6, name="budget").data.document_sha256


def test_rules_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    """What is not composed exactly is told on stderr, unless --quiet is given."""
    code, _, err = run(capsys, SAMPLED, "--brief")
    assert code == 0
    assert "composed by 3 points of its profile" in " ".join(err.split())
    code, _, err = run(capsys, SAMPLED, "--brief", "--quiet", "--points", "guarantee")
    assert (code, err) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "Missing argument 'CERT...'"),
        ((FIRST, FIRST), "composed-twice"),
        ((FIRST, SECOND), "--delta is not given"),
        ((FIRST, SAMPLED, "--delta", "1e-6"), "no bound is implemented for"),
        ((str(GOLDEN / "claim-fails.json"),), "its claim does not hold"),
        ((str(GOLDEN / "amplification.json"),), "certifies one draw"),
        (("--part", "north"), "is NAME=CERT"),
        (("--part", f"north={FIRST}"), "at least two parts"),
        (("no-such-file.json",), "file-not-found"),
        ((FIRST, "--brief", "--format", "json"), "--brief"),
        (("-", "-"), "only once"),
        ((FIRST, "--delta", "2"), "out-of-range"),
        ((SAMPLED, "--points", "guarantee", "--delta", "0.005"), "no ε is known at δ = 0.005"),
        (
            (SAMPLED, "--points", "guarantee", "--delta", "0.005"),
            "Give a larger --delta, use the profiles too (--points profile)",
        ),
        ((FIRST, FIRST), "say so with --repeat, or certify it with `count: 2`"),
        ((FIRST, "--adjacency", "swap"), "swap"),
    ],
)
def test_mistakes(arguments: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A mistake has exit code 2, and its message is on stderr."""
    code, out, err = run(capsys, *arguments)
    assert code == 2
    assert words in " ".join((err + out).split())


def test_errors_are_data(capsys: pytest.CaptureFixture[str]) -> None:
    """With --format json, errors are data with a slug and the file."""
    code, out, _ = run(capsys, FIRST, FIRST, "--format", "json")
    (error,) = json.loads(out)["errors"]
    assert (code, error["slug"], error["file"]) == (2, "composed-twice", FIRST)


def test_an_input_is_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The output may not be one of the certificates."""
    file = tmp_path / "a.json"
    file.write_bytes(Path(FIRST).read_bytes())
    code, _, err = run(capsys, str(file), "-o", str(file))
    assert code == 2
    assert "would be overwritten" in " ".join(err.split())


def test_a_time_limit(capsys: pytest.CaptureFixture[str]) -> None:
    """At the time limit there is no certificate, and the exit code is 3."""
    code, out, err = run(capsys, FIRST, SECOND, "--delta", "1e-6", "--time-limit", "1e-6")
    assert (code, out) == (3, "")
    assert "--time-limit" in err

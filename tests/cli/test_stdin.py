"""Documents from standard input: read as a file would be, once a call, and named in errors."""

import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from places import CERTIFICATES, EXAMPLES, ROOT
from snapshots import Run, Snapshot

from pyaccount import cli
from pyaccount.reading.sources import LARGEST_FILE

EXAMPLE = EXAMPLES / "check-a-claim.yaml"
TEXT = EXAMPLE.read_bytes()


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Standard input that holds the example."""
    hand(monkeypatch, TEXT)
    return monkeypatch


def hand(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
def test_a_certificate_is_the_one_of_the_file(
    name: str, given: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = []
    for document in (name, str(EXAMPLE)):
        assert cli.run(["certify", document, "--format", "json"]) == 0
        found.append(
            {
                key: value
                for key, value in json.loads(capsys.readouterr().out).items()
                if key not in ("created", "content_sha256")
            }
        )
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["plan", "-"], "question  does (3, 1e-6)-DP hold?"),
        (["validate", "-"], "<stdin>: valid"),
        (["validate", str(EXAMPLE), "-"], "<stdin>: valid"),
        (["compare", "-", str(EXAMPLE)], "check-a-claim"),
        (["certify", "-", "--set", "privacy.epsilon=solve", "-o", "-"], '"epsilon": "solve"'),
    ],
)
def test_every_command_about_documents_reads_it(
    arguments: list[str], words: str, given: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(arguments) == 0
    assert words in capsys.readouterr().out


def test_certificates_are_held_against_documents_and_policies_from_it(
    given: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, run: Run, snapshot: Snapshot
) -> None:
    certificate = tmp_path / "training.cert.json"
    assert cli.run(["certify", str(EXAMPLE), "--quiet", "-o", str(certificate)]) == 0
    assert cli.run(["check", str(certificate), "--document", "-", "--max-epsilon", "3", "--max-delta", "1e-6"]) == 0
    hand(given, TEXT.replace(b"epsilon: 3", b"epsilon: 4"))
    assert cli.run(["check", str(certificate), "--document", "-", "--no-limits"]) == 1
    policy = b"pyaccount: 1\nkind: policy\nname: strict\nlimits:\n  max_epsilon: 2\n  max_delta: 1e-6\n"
    hand(given, policy)
    assert cli.run(["check", str(certificate), "--policy", "-"]) == 1
    hand(given, policy)
    capsys.readouterr()
    snapshot(run("check", certificate, "--policy", "-", "--document", "-"))


def test_errors_name_it_with_line_and_column(monkeypatch: pytest.MonkeyPatch, run: Run, snapshot: Snapshot) -> None:
    hand(monkeypatch, TEXT.replace(b"delta: 1e-6", b"delta: 1.5"))
    snapshot(run("certify", "-"))


@pytest.mark.parametrize("data", [b"", b"\xff\xfe", b"#" * (LARGEST_FILE + 1)])
def test_what_is_no_document_is_refused_as_in_a_file(
    data: bytes, monkeypatch: pytest.MonkeyPatch, run: Run, snapshot: Snapshot
) -> None:
    hand(monkeypatch, data)
    snapshot(run("validate", "-"))


@pytest.mark.parametrize("command", ["validate", "compare"])
def test_it_is_read_once(command: str, given: pytest.MonkeyPatch, run: Run, snapshot: Snapshot) -> None:
    snapshot(run(command, "-", "-"))


def test_files_that_it_names_lie_in_the_working_folder(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    np.savetxt(tmp_path / "matrix.txt", np.tril(np.full((8, 8), 0.5)) + 0.5 * np.eye(8))
    text = b"""pyaccount: 1
name: dense
privacy: {adjacency: zero-out, epsilon: solve, delta: 1e-6}
training: {iterations: 8}
sampler: {kind: none}
matrix: {kind: dense, file: matrix.txt}
noise: {multiplier: 4}
"""
    monkeypatch.chdir(tmp_path)
    hand(monkeypatch, text)
    assert cli.run(["certify", "-", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["phases"][0]["matrix"]["kind"] == "dense"
    # And what the document reads is not what its certificate overwrites.
    hand(monkeypatch, text)
    assert cli.run(["certify", "-", "-o", "matrix.txt"]) == 2
    monkeypatch.chdir(ROOT)
    hand(monkeypatch, text)
    assert cli.run(["certify", "-"]) == 2
    assert "<stdin>:6:29: matrix.file = 'matrix.txt' [matrix-file]" in capsys.readouterr().err


def test_a_finished_certificate_from_it_is_compared_as_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], run: Run, snapshot: Snapshot
) -> None:
    certificate = CERTIFICATES / "v1" / "deterministic.json"
    # Certificates may be larger than documents.
    hand(monkeypatch, certificate.read_bytes() + b" " * LARGEST_FILE)
    assert cli.run(["compare", "-", str(EXAMPLE), "--format", "json"]) == 0
    finished, made = json.loads(capsys.readouterr().out)["rows"]
    assert (finished["finished"], made["finished"]) == (True, False)
    assert finished["epsilon"] == json.loads(certificate.read_bytes())["guarantee"]["epsilon"]
    hand(monkeypatch, b'{"kind": "certificate"}')
    snapshot(run("compare", "-"))


@pytest.mark.parametrize("command", ["validate", "certify", "compare"])
def test_a_program_without_standard_input_says_so(command: str) -> None:
    words = [sys.executable, "-m", "pyaccount", command, "-"]
    done = subprocess.run(
        ["bash", "-c", 'exec "$@" <&-', "bash", *words], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 2
    assert "<stdin>: [unreadable-file]\n    standard input is closed" in done.stderr

"""The commands `card` and `export`: what they write, what they say, and their exit codes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from gate_tools import RUNS
from snapshots import Run, Snapshot

from pyaccount import cli
from pyaccount.integrations.cyclonedx import cyclonedx
from pyaccount.integrations.facts import DescribedModel
from pyaccount.integrations.registry import registry
from pyaccount.integrations.spdx import spdx

CERTIFICATE = str(RUNS["deterministic"])


@pytest.fixture
def card(tmp_path: Path) -> Path:
    path = tmp_path / "README.md"
    path.write_text("---\nlicense: mit\n---\n# A\n", encoding="utf-8")
    return path


def test_a_card_is_written_once_and_agrees(
    card: Path, capsys: pytest.CaptureFixture[str], run: Run, snapshot: Snapshot
) -> None:
    snapshot(run("card", CERTIFICATE, card, "--check"))
    for words in (["states"], ["already states"]):
        assert cli.run(["card", CERTIFICATE, str(card)]) == 0
        out, err = capsys.readouterr()
        assert out == ""
        assert err.replace("\n", " ").split(": ", 1)[1].lstrip().startswith(words[0])
    snapshot(run("card", CERTIFICATE, card, "--check"))


def test_a_card_that_differs_ends_with_1_and_the_place(card: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["card", CERTIFICATE, str(card)]) == 0
    text = card.read_text(encoding="utf-8")
    card.write_text(text.replace("adjacency: add-remove", "adjacency: zero-out"), encoding="utf-8")
    capsys.readouterr()
    assert cli.run(["card", CERTIFICATE, str(card), "--check", "--format", "json"]) == 1
    out, err = capsys.readouterr()
    found = json.loads(out)
    (problem,) = found["errors"]
    line = 1 + card.read_text(encoding="utf-8").splitlines().index("  adjacency: zero-out")
    assert (found["command"], found["exit_code"]) == ("card", 1)
    assert (problem["slug"], problem["path"], problem["line"]) == ("card-mismatch", "privacy.adjacency", line)
    assert (problem["value"], problem["allowed"]) == ("zero-out", "add-remove")
    assert "card-mismatch" in err


def test_the_result_as_json(card: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for result, more in (("written", []), ("unchanged", []), ("agrees", ["--check"])):
        assert cli.run(["card", CERTIFICATE, str(card), "--format", "json", *more]) == 0
        out, err = capsys.readouterr()
        found = json.loads(out)
        assert (found["kind"], found["result"], found["file"], err) == ("model-card", result, str(card), "")
        assert found["privacy"]["guarantee"] == "deterministic"


def test_what_cannot_be_stated_ends_with_2(card: Path, run: Run, snapshot: Snapshot) -> None:
    before = card.read_text(encoding="utf-8")
    for arguments in (
        ("card", str(RUNS["claim-fails"]), str(card)),
        ("card", CERTIFICATE, "absent.md"),
        ("card", CERTIFICATE, CERTIFICATE),
        ("export", str(RUNS["claim-fails"]), "--to", "spdx"),
        ("export", CERTIFICATE),
        ("export", CERTIFICATE, "--to", "registry", "--model-name", "A"),
        ("export", CERTIFICATE, "--to", "cyclonedx", "--release-time", "soon"),
        ("export", CERTIFICATE, "--to", "cyclonedx", "--subject", "absent"),
        ("export", CERTIFICATE, "--to", "cyclonedx", "-o", CERTIFICATE),
    ):
        snapshot(run(*arguments))
    assert card.read_text(encoding="utf-8") == before


def test_exports_are_what_the_functions_return(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1800000000")
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(b"weights")
    options = {
        "--model-name": "tiny",
        "--model-version": "1.0",
        "--supplier": "Example Ltd",
        "--download-location": "https://example.org/tiny",
        "--license": "Apache-2.0",
        "--release-time": "2027-01-31",
    }
    words = [word for option in options.items() for word in option]
    model = DescribedModel(*options.values())
    for target, write in (("cyclonedx", cyclonedx), ("spdx", spdx)):
        assert cli.run(["export", CERTIFICATE, "--to", target, "--subject", str(weights), *words]) == 0
        out, err = capsys.readouterr()
        assert (out, err) == (write(CERTIFICATE, subjects=[weights], model=model), "")
        target_file = tmp_path / target
        assert cli.run(["export", CERTIFICATE, "--to", target, "-o", str(target_file)]) == 0
        assert target_file.read_text(encoding="utf-8") == write(CERTIFICATE)
        out, err = capsys.readouterr()
        missing = "requires --model-version, --supplier, --download-location, --release-time too"
        assert (missing in " ".join(err.split())) == (target == "spdx")


def test_a_draft_says_what_a_person_must_fill_in(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["export", CERTIFICATE, "--to", "registry"]) == 0
    out, err = capsys.readouterr()
    assert out == registry(CERTIFICATE)
    assert yaml.safe_load(out)["status"] == "Draft"
    assert f"{out.count(': fill in: ')} fields are for a person to fill in" in err


def test_names_that_are_no_text(tmp_path: Path) -> None:
    """A name may have bytes that are no UTF-8. Everything is still written, and is valid JSON."""
    name = os.fsencode(tmp_path) + b"/c\xff.json"
    Path(os.fsdecode(name)).write_bytes(Path(CERTIFICATE).read_bytes())
    card = os.fsencode(tmp_path) + b"/\xff.md"
    Path(os.fsdecode(card)).write_bytes(b"# A\n")
    for arguments in (
        [b"card", name, card, b"--format", b"json"],
        [b"card", name, card, b"--check", b"--format", b"json"],
        [b"export", name, b"--to", b"cyclonedx", b"--subject", card, b"--model-name", b"\xff"],
        [b"export", name, b"--to", b"spdx", b"--subject", card, b"--model-name", b"\xff"],
        [b"export", name, b"--to", b"registry"],
    ):
        command = [os.fsencode(sys.executable), b"-m", b"pyaccount", *arguments]
        done = subprocess.run(command, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        assert yaml.safe_load(done.stdout.decode())

"""Where results go: no file is destroyed that was not meant to be, and what is no file stays what it is."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from gate_tools import ROOT, RUNS

from pyaccount import cli
from pyaccount.files import write_atomically

EXAMPLE = ROOT / "examples" / "check-a-claim.yaml"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli.run(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_a_link_stays_and_its_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    file, link = tmp_path / "data" / "a.json", tmp_path / "link.json"
    for target in (file, Path("data") / "b.json"):
        link.unlink(missing_ok=True)
        link.symlink_to(target)
        for text in ("one", "two"):
            write_atomically(link, text)
            assert link.is_symlink()
            assert (tmp_path / target).read_text(encoding="utf-8") == text
    assert sorted(path.name for path in tmp_path.rglob("*.json")) == ["a.json", "b.json", "link.json"]


def read_all(pipe: Path) -> tuple[threading.Thread, list[bytes]]:
    read: list[bytes] = []
    thread = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    thread.start()
    return thread, read


def test_a_pipe_is_written_to_and_stays_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    link = tmp_path / "link"
    link.symlink_to(pipe)
    for target in (pipe, link):
        thread, read = read_all(pipe)
        assert run(capsys, "certify", str(EXAMPLE), "--quiet", "-o", str(target)) == (0, "", "")
        thread.join(timeout=60)
        assert json.loads(read[0])["kind"] == "certificate"
        assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "pipe"]


def test_streams_by_their_names_in_dev_are_written_to(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    command = [sys.executable, "-m", "pyaccount", "certify", str(EXAMPLE), "--quiet", "-o", "/dev/stdout"]
    with out.open("wb") as stream:
        before = os.fstat(stream.fileno()).st_ino
        subprocess.run(command, stdout=stream, check=True)
    assert out.stat().st_ino == before
    assert json.loads(out.read_text(encoding="utf-8"))["kind"] == "certificate"


@pytest.mark.parametrize("command", ["certify", "compare"])
def test_a_dash_is_stdout(
    command: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for form in ([], ["--format", "json"]):
        code, out, _ = run(capsys, command, str(EXAMPLE), "-o", "-", *form)
        assert code == 0
        assert json.loads(out)["pyaccount"] == 1
    code, out, err = run(capsys, command, str(EXAMPLE), "-o", "-", "--format", "text")
    assert (code, out) == (2, "")
    assert "--output - writes json to stdout, where --format text would follow it" in err
    assert list(tmp_path.iterdir()) == []


def test_a_report_goes_to_stdout_too(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, _ = run(capsys, "report", str(RUNS["deterministic"]), "-o", "-", "--format", "markdown")
    assert code == 0
    assert out.startswith("#")
    assert list(tmp_path.iterdir()) == []


def test_no_input_is_overwritten(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    document, certificate = tmp_path / "training.yaml", tmp_path / "training.json"
    document.write_bytes(EXAMPLE.read_bytes())
    certificate.write_bytes(RUNS["deterministic"].read_bytes())
    link, hard = tmp_path / "link.yaml", tmp_path / "hard.yaml"
    link.symlink_to(document)
    hard.hardlink_to(document)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    cases = [
        (["certify", str(document), "-o", str(document)], "--output"),
        (["certify", str(document), "-o", str(link)], "--output"),
        (["certify", str(link), "-o", str(hard)], "--output"),
        (["compare", str(EXAMPLE), str(document), "-o", str(document)], "--output"),
        (["report", str(certificate), "-o", str(certificate), "--format", "html"], "--output"),
    ]
    for arguments, option in cases:
        code, out, err = run(capsys, *arguments)
        assert (code, out) == (2, ""), arguments
        assert f"{option} {arguments[arguments.index('-o') + 1]}: is the input" in err
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert link.is_symlink()


def test_no_matrix_is_overwritten(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    matrix = tmp_path / "s.npy"
    np.save(matrix, np.eye(4))
    document = tmp_path / "training.yaml"
    document.write_text(
        "pyaccount: 1\nname: t\nprivacy: {adjacency: zero-out, epsilon: solve, delta: 1e-6}\n"
        "training: {iterations: 4}\nsampler: {kind: none}\nmatrix: {kind: dense, file: s.npy}\nnoise: {multiplier: 1}\n",
        encoding="utf-8",
    )
    before = matrix.read_bytes()
    for command in ("certify", "compare"):
        code, _, err = run(capsys, command, str(document), "-o", str(matrix))
        assert code == 2, err
        assert "s.npy: is the input" in err
    assert matrix.read_bytes() == before


def test_a_folder_behind_a_link_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    link = tmp_path / "link.json"
    link.symlink_to(tmp_path / "nowhere" / "a.json")
    code, _, err = run(capsys, "certify", str(EXAMPLE), "-o", str(link))
    assert code == 2
    assert "nowhere does not exist" in err

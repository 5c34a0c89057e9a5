"""Where results go: no file is destroyed that was not meant to be, and what is no file stays what it is."""

import json
import os
import re
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from certificate_oracle import inconsistencies
from gate_tools import RUNS
from places import EXAMPLES, ROOT
from snapshots import Run, Snapshot

import pyaccount
from pyaccount import cli
from pyaccount.files import write_atomically
from pyaccount.running import Plan

EXAMPLE = EXAMPLES / "check-a-claim.yaml"


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


def test_a_pipe_is_written_to_and_stays_one(tmp_path: Path, run: Run) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    link = tmp_path / "link"
    link.symlink_to(pipe)
    for target in (pipe, link):
        thread, read = read_all(pipe)
        assert run("certify", EXAMPLE, "--quiet", "-o", target) == (0, "", "")
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
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run, snapshot: Snapshot
) -> None:
    monkeypatch.chdir(tmp_path)
    for form in ([], ["--format", "json"]):
        code, out, _ = run(command, EXAMPLE, "-o", "-", *form)
        assert code == 0
        assert json.loads(out)["pyaccount"] == 1
    snapshot(run(command, EXAMPLE, "-o", "-", "--format", "text"))
    assert list(tmp_path.iterdir()) == []


def test_a_report_goes_to_stdout_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, _ = run("report", RUNS["deterministic"], "-o", "-", "--format", "markdown")
    assert code == 0
    assert out.startswith("#")
    assert list(tmp_path.iterdir()) == []


def test_no_matrix_is_overwritten(tmp_path: Path, run: Run, snapshot: Snapshot) -> None:
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
        snapshot(run(command, document, "-o", matrix))
    assert matrix.read_bytes() == before


def test_a_folder_behind_a_link_is_named(tmp_path: Path, run: Run, snapshot: Snapshot) -> None:
    link = tmp_path / "link.json"
    link.symlink_to(tmp_path / "nowhere" / "a.json")
    snapshot(run("certify", EXAMPLE, "-o", link))


FULL = pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")


def named(told: str) -> Path:
    """The file that a message names."""
    (name,) = re.findall(r"^the \w+ was written to (.+)$", told, flags=re.MULTILINE)
    return Path(name)


def is_certificate(text: str) -> bool:
    found = pyaccount.Certificate.from_json(text)
    return found.holds and inconsistencies(found.data) == []


@FULL
@pytest.mark.parametrize("more", [[], ["--quiet"], ["--format", "json"]])
def test_a_certificate_that_finds_no_file_goes_to_stdout(more: list[str], run: Run) -> None:
    code, out, err = run("certify", EXAMPLE, "-o", "/dev/full", *more)
    assert code == cli.STOPPED
    assert is_certificate(out)
    assert err == (
        "--output /dev/full: cannot be written: No space left on device\nthe certificate is on standard output\n"
    )


@FULL
def test_where_stdout_is_taken_it_goes_to_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full.json").write_text("mine", encoding="utf-8")
    for form, begin in (("markdown", "# Privacy"), ("text", "Privacy certificate")):
        code, out, err = run("certify", EXAMPLE, "-o", "/dev/full", "--format", form)
        assert code == cli.STOPPED
        assert out.startswith(begin)
        assert named(err).parent == tmp_path
        assert is_certificate(named(err).read_text(encoding="utf-8"))
    assert (tmp_path / "full.json").read_text(encoding="utf-8") == "mine"
    assert len(list(tmp_path.iterdir())) == 3


@FULL
def test_without_a_working_folder_it_goes_to_the_temporary_one(tmp_path: Path) -> None:
    gone, temporary = tmp_path / "gone", tmp_path / "temporary"
    temporary.mkdir()
    script = f"mkdir {gone}; cd {gone}; rmdir {gone}; {sys.executable} -m pyaccount certify {EXAMPLE} -o /dev/full"
    for stdout in (">/dev/full", ">/dev/null", ">&-"):
        done = subprocess.run(
            ["bash", "-c", f"{script} {stdout}"],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": str(ROOT)},
        )
        assert done.returncode == cli.STOPPED, done.stderr
        assert named(done.stderr).parent == temporary
        assert is_certificate(named(done.stderr).read_text(encoding="utf-8"))


@FULL
@pytest.mark.parametrize("command", ["certify", "compare", "plan", "verify"])
def test_what_a_full_stdout_takes_is_kept(command: str, tmp_path: Path) -> None:
    source = RUNS["deterministic"] if command == "verify" else EXAMPLE
    shell = f"cd {tmp_path}; {sys.executable} -m pyaccount {command} {source} > /dev/full"
    done = subprocess.run(
        ["bash", "-c", shell], capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    assert done.returncode == cli.STOPPED
    assert "standard output cannot be written to: No space left on device" in done.stderr
    kinds = {"certify": "certificate", "compare": "comparison", "plan": "plan", "verify": "verification"}
    assert json.loads(named(done.stderr).read_text(encoding="utf-8"))["kind"] == kinds[command]
    assert named(done.stderr).parent == tmp_path


@FULL
def test_a_file_that_was_written_is_named_where_stdout_is_full(tmp_path: Path) -> None:
    shell = f"cd {tmp_path}; {sys.executable} -m pyaccount certify {EXAMPLE} -o a.json > /dev/full"
    done = subprocess.run(
        ["bash", "-c", shell], capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    assert (done.returncode, done.stderr.splitlines()[-1]) == (cli.STOPPED, "the certificate is in a.json")
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


@pytest.mark.parametrize("command", ["certify", "compare"])
def test_a_folder_that_vanished_takes_no_result_with_it(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    original = Plan.run

    def vanishing(self: Plan, **options: Any) -> pyaccount.Certificate:
        folder.rmdir()
        return original(self, **options)

    monkeypatch.setattr(Plan, "run", vanishing)
    code, out, err = run(command, EXAMPLE, "-o", folder / "a.json")
    assert code == cli.STOPPED
    assert json.loads(out)["pyaccount"] == 1
    assert f"--output {folder / 'a.json'}: cannot be written: No such file or directory" in err


def test_a_pipe_without_a_reader_takes_no_certificate_with_it(tmp_path: Path) -> None:
    """It ended in 0, as if the reader of stdout had gone, and the certificate was lost."""
    shell = f"{sys.executable} -m pyaccount certify {EXAMPLE} --quiet -o >(true)"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=False)
    assert done.returncode == cli.STOPPED
    assert "Broken pipe" in done.stderr
    assert is_certificate(done.stdout)


@FULL
def test_reports_and_documents_are_not_lost(run: Run) -> None:
    code, out, err = run("report", RUNS["deterministic"], "-o", "/dev/full", "--format", "markdown")
    assert (code, out[:9]) == (cli.STOPPED, "# Privacy")
    assert "the report is on standard output" in err
    answers = ["--yes", "--sampling-probability", "0.01", "--iterations", "20", "--noise-multiplier", "1"]
    code, out, err = run("init", "/dev/full", "--force", *answers)
    assert (code, "pyaccount: 1" in out) == (cli.STOPPED, True)
    assert "the document is on standard output" in err


def test_a_name_that_no_file_can_have_is_told_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run, snapshot: Snapshot
) -> None:
    monkeypatch.setattr(Plan, "run", None)
    snapshot(run("certify", EXAMPLE, "-o", tmp_path / f"{'a' * 300}.json"))
    monkeypatch.undo()
    name = tmp_path / f"{'a' * 245}.json"
    assert run("certify", EXAMPLE, "--quiet", "-o", name) == (0, "", "")


def test_a_closed_stdout_is_no_output() -> None:
    for name in ("-", "/dev/stdout"):
        shell = f"{sys.executable} -m pyaccount certify {EXAMPLE} -o {name} >&-"
        done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=False)
        assert done.returncode == cli.WRONG
        assert f"--output {name}: standard output is closed" in done.stderr

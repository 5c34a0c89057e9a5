"""Exit codes as promised, whatever the locale, the reader of stdout and the bug."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from gate_tools import ROOT, RUNS

from pyaccount.cli.common import BUG, EXIT_CODES, FAILS, HOLDS, STOPPED, WRONG

EXAMPLE = str(ROOT / "examples" / "check-a-claim.yaml")
CERTIFICATE = str(RUNS["deterministic"])
ME = f"{sys.executable} -m pyaccount"


def bash(command: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["bash", "-c", command], capture_output=True, check=False, env={**os.environ, **environment})


@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONIOENCODING": "cp1252"},
        {"PYTHONIOENCODING": "ascii"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ],
    ids=["cp1252", "ascii", "C"],
)
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (f"certify {EXAMPLE}", HOLDS),
        (f"certify {EXAMPLE} --set privacy.epsilon=2", FAILS),
        (f"certify {EXAMPLE} --set noise.multiplier=σ", WRONG),
        (f"check {CERTIFICATE} --max-epsilon 8", HOLDS),
        (f"report {CERTIFICATE} --format text", HOLDS),
        ("certify --help", HOLDS),
    ],
)  # fmt: skip
def test_any_locale_does(environment: dict[str, str], arguments: str, code: int) -> None:
    done = bash(f"{ME} {arguments}", **environment)
    assert (done.returncode, b"Traceback" in done.stderr) == (code, False), done.stderr
    assert (done.stdout + done.stderr).decode()


def test_a_name_that_is_no_text_is_spelled_out(tmp_path: Path) -> None:
    file = os.fsencode(tmp_path) + b"/\xff.yaml"
    Path(os.fsdecode(file)).write_bytes(Path(EXAMPLE).read_bytes())
    done = subprocess.run([sys.executable, "-m", "pyaccount", "validate", file], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (HOLDS, b"")
    assert b"\\udcff.yaml: valid" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (f"check {CERTIFICATE} --max-epsilon 8", HOLDS),
        (f"check {CERTIFICATE} --max-epsilon 1e-3", FAILS),
        (f"check {CERTIFICATE} --max-epsilon 1e-3 --format json", FAILS),
        (f"certify {EXAMPLE}", HOLDS),
        (f"certify {EXAMPLE} --set privacy.epsilon=2", FAILS),
        (f"certify {EXAMPLE} --set privacy.epsilon=2 --format json", FAILS),
        (f"compare {EXAMPLE} --set privacy.epsilon=2", FAILS),
        (f"verify {CERTIFICATE}", HOLDS),
        (f"report {CERTIFICATE}", HOLDS),
        ("schema", HOLDS),
        ("--help", HOLDS),
        ("certify --help", HOLDS),
    ],
)
def test_a_reader_that_has_gone_changes_no_exit_code(arguments: str, code: int) -> None:
    done = bash(f"{{ sleep 0.1; {ME} {arguments}; }} | true; exit ${{PIPESTATUS[0]}}")
    assert (done.returncode, done.stderr) == (code, b"")


def test_a_full_disk_is_told_once() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no device that is always full")
    done = bash(f"{ME} check {CERTIFICATE} --max-epsilon 8 > /dev/full")
    assert (done.returncode, done.stderr) == (STOPPED, b"input or output: No space left on device\n")


@pytest.mark.parametrize("error", ["ZeroDivisionError('a bug')", "type('Panic', (BaseException,), {})('a bug')"])
def test_a_bug_is_no_claim_that_fails(error: str) -> None:
    script = (
        "import sys, pyaccount.gate.check, pyaccount.cli\n"
        f"def broken(*_, **__): raise {error}\n"
        "pyaccount.gate.check.check = broken\n"
        f"sys.argv = ['pyaccount', 'check', {CERTIFICATE!r}]\n"
        "pyaccount.cli.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == BUG
    assert "Traceback" in done.stderr
    assert "this is a bug of pyaccount" in done.stderr


def test_every_code_is_explained() -> None:
    reference = (ROOT / "docs" / "reference" / "errors.md").read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    listed = readme.split("Exit codes:")[1].split("\n\n")[0]
    for code in EXIT_CODES:
        assert f"| {code} |" in reference
        assert f"{code} " in listed

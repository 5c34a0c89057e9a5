"""The process of a proof: it is ended at the limit, and nothing but the four verdicts comes out of it."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from normal_forms import claim, form, gaussian, poisson, rounds
from places import ROOT

from pyaccount import cli
from pyaccount.independent import apart, verdict

VERDICTS = ("proven", "refuted", "consistent", "not checkable")
GAUSSIAN = form(gaussian())
#: A claim whose first lattice takes seconds: each value of its profile has 10^5 terms.
ENDLESS = form({"kind": "discrete-gaussian", "moved": "1", "sensitivity": "1", "sigma": "2400", "step": "1"})
PARTS = {"kind": "parts", "of": [gaussian("4"), gaussian("5")]}
LONG: dict[str, str] = {
    "little noise": form(poisson("0.05", 20, "0.0015")),
    "many parts": form({"kind": "sequence", "of": [PARTS, gaussian()] * 9}),
    "much discrete noise": ENDLESS.replace("2400", "100000"),
    "many records": form(
        rounds(
            {"kind": "truncated-poisson", "probability": "0.001", "records": "1000000000", "size": "1100000"}, 10, "4"
        ),
        "zero-out",
    ),
}


@pytest.mark.parametrize("name", LONG)
def test_forms_that_take_for_ever_end(name: str) -> None:
    found = apart.check_apart(claim(LONG[name], 9, 1e-5), 1.0)
    # A fast processor refutes what is false before the limit.
    assert found["verdict"] in ("not checkable", "refuted")
    assert found["reason"] or found["verdict"] == "refuted"


def test_a_proof_is_ended_at_the_limit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "c.json"
    path.write_text(claim(ENDLESS, 9, 1e-5))
    assert cli.run(["verify", "--independent", "--time-limit", "0.5 s", str(path)]) == 1
    assert "time: the proof was ended after 0.5 s" in " ".join(capsys.readouterr().out.split())


def test_the_verdict_is_that_of_the_same_process() -> None:
    text = claim(GAUSSIAN, 9, 1e-5)
    here, there = verdict.check(verdict.claim_of(text)), apart.check_apart(text)
    assert here["verdict"] == "proven"
    assert here | {"seconds": 0} == there | {"seconds": 0}


def test_it_works_beside_threads() -> None:
    found: list[str] = []
    threads = [
        threading.Thread(target=lambda: found.append(apart.check_apart(claim(GAUSSIAN, 9, 1e-5))["verdict"]))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["proven"] * 3


def test_without_an_interpreter_nothing_is_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    for executable in ("/nowhere/python", shutil.which("true")):
        monkeypatch.setattr(sys, "executable", executable)
        found = apart.check_apart(claim(GAUSSIAN, 9, 1e-5))
        assert found["verdict"] == "not checkable"
        assert "no verdict" in found["reason"]


@pytest.mark.skipif(sys.platform != "linux", reason="the address space is limited on Linux")
def test_memory_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    program = apart._PROGRAM.replace(
        "runpy.run", "__import__('resource').setrlimit(__import__('resource').RLIMIT_AS, (20 << 20,) * 2); runpy.run"
    )
    monkeypatch.setattr(apart, "_PROGRAM", program)
    found = apart.check_apart(claim(ENDLESS, 9, 1e-5), 20.0)
    assert found["verdict"] == "not checkable"
    assert "MemoryError" in found["reason"]


def running(process: int) -> bool:
    """Return whether a process exists that has not ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="children are listed on Linux")
def test_an_interruption_ends_the_proof_too(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text(claim(ENDLESS, 9, 1e-5))
    # A shell that starts the tests in the background lets them ignore the signal.
    program = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from pyaccount import cli; sys.exit(cli.run(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", program, "verify", "--independent", str(path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        children: list[str] = []
        while not children:
            assert process.poll() is None
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 130
    # Even a proof that had not begun ends: it finds no certificate on its stdin.
    while running(int(children[0])):
        time.sleep(0.05)


@pytest.mark.parametrize("key", ["evidence", "mechanism", "mechanism_sha256", "guarantee", "name"])
@pytest.mark.parametrize("value", ["x", 3, [1], {"path": "a"}, {"a": {}}])
def test_no_key_of_a_certificate_makes_an_error(key: str, value: Any) -> None:
    data = json.loads(claim(GAUSSIAN, 9, 1e-5)) | {key: value}
    found = verdict.check(verdict.claim_of(json.dumps(data)))
    assert found["verdict"] in VERDICTS
    assert isinstance(found["name"], str)


NAME = "x\nok: proven\r\x1b[2J \ud800 \u202e"


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_names_are_escaped(form: list[str], tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text(claim(GAUSSIAN, 9, 1e-5, name=NAME))
    command = [sys.executable, "-m", "pyaccount.independent", *form, str(path)]
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert not any(line.startswith("ok") for line in done.stdout.splitlines())
    told = json.loads(done.stdout)["name"] if form else done.stdout
    assert told.startswith("x\\nok: proven\\r\\x1b[2J \\ud800 \\u202e")


def test_values_and_keys_are_escaped() -> None:
    for text in (
        form(gaussian() | {"a\nproven": "1"}),
        form({"kind": "stated\nproven"}),
        form(gaussian("4\x1b")),
    ):
        reason = verdict.check(verdict.claim_of(claim(text, 9, 1e-5)))["reason"]
        assert reason.isprintable()


def test_a_key_that_is_given_twice_is_told_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text('{"a\\nok: proven": 1, "a\\nok: proven": 2}')
    command = [sys.executable, "-m", "pyaccount.independent", str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1


def test_the_time_is_a_number_of_seconds() -> None:
    for seconds in ("0", "-1", "nan", "inf", "x"):
        command = [sys.executable, "-m", "pyaccount.independent", "--seconds", seconds, "c.json"]
        assert subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode == 2

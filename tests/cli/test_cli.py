"""The command as people use it: output, exit codes, files, mistakes, interruption."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from gate_tools import interrupted
from places import EXAMPLES, ROOT
from plain_documents import doc

from pyaccount import cli

EXAMPLE = str(EXAMPLES / "check-a-claim.yaml")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli.run(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_certify_prints_a_certificate(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "certify", EXAMPLE)
    assert code == 0
    assert err == ""
    assert "HOLDS" in out
    assert "at most 2.955" in out
    assert "What must be true of the training run" in out


def test_certify_json_and_output_agree(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    target = tmp_path / "training.cert.json"
    code, out, _ = run(capsys, "certify", EXAMPLE, "--format", "json", "-o", str(target))
    assert code == 0
    assert json.loads(out) == json.loads(target.read_text(encoding="utf-8"))
    assert [path.name for path in tmp_path.iterdir()] == [target.name]


def test_a_claim_that_fails_exits_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "certify", EXAMPLE, "--set", "privacy.epsilon=2")
    assert code == 1
    assert "DOES NOT HOLD" in out
    assert "is not (2, 1e-06)" in out or "is not (2, 1e-6)" in out


def test_quiet_prints_nothing_unless_a_format_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "certify", EXAMPLE, "--quiet") == (0, "", "")
    code, out, err = run(capsys, "certify", EXAMPLE, "--quiet", "--format", "json")
    assert (code, err) == (0, "")
    assert json.loads(out)["holds"] is True


def test_overrides_seed_and_threads(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("certify", EXAMPLE, "--format", "json", "--set", "privacy.epsilon=solve", "--seed", "7")
    outputs = []
    for threads in ("1", "2"):
        code, out, _ = run(capsys, *arguments, "--threads", threads)
        assert code == 0
        found = json.loads(out)
        assert found["document"]["accounting"]["seed"] == 7
        outputs.append({key: value for key, value in found.items() if key not in ("created", "content_sha256")})
    assert outputs[0] == outputs[1]


def test_plan_runs_nothing_and_says_what_would_run(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "plan", str(EXAMPLES / "pretrain-and-finetune.yaml"))
    assert code == 0
    for words in ("theorem", "source", "tight", "engine", "cost", "phases[0].noise.multiplier", "σ²"):
        assert words in out


def test_validate_reports_every_error_of_every_document(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    text = Path(EXAMPLE).read_text(encoding="utf-8")
    bad.write_text(text.replace("delta: 1e-6", "delta: 1.5").replace("iterations:", "itertions:"), encoding="utf-8")
    code, out, err = run(capsys, "validate", EXAMPLE, str(bad))
    assert code == 2
    assert out == f"{EXAMPLE}: valid\n"
    assert f"{bad}:8:10: privacy.delta = 1.5 [out-of-range]" in err
    assert "did you mean iterations?" in err


@pytest.mark.parametrize("which", ["mechanism", "certificate"])
def test_schema_prints_the_committed_schema(capsys: pytest.CaptureFixture[str], which: str) -> None:
    code, out, _ = run(capsys, "schema", which)
    assert code == 0
    assert out == (ROOT / "schemas" / f"{which}.v1.schema.json").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["certify"], "Missing argument"),
        (["certfy", "x"], "did you mean certify?"),
        (["certify", EXAMPLE, "--threads", "-1"], "Invalid value"),
        (["certify", "nowhere.yaml"], "nowhere.yaml"),
        (["certify", "."], "."),
        (["certify", EXAMPLE, "--set", "privacy.epsilon"], "--set privacy.epsilon"),
        (["certify", EXAMPLE, "--set", "privacy.epsilom=4"], "epsilon"),
        (["certify", EXAMPLE, "-o", "/nowhere/x.json"], "does not exist"),
        (["certify", EXAMPLE, "--set", "privacy.epsilon=solve", "--set", "privacy.delta=solve"], "several-blanks"),
        (["certify", EXAMPLE, "--set", "noise.multiplier=solve", "--set", "privacy.delta=0.9999999999"], "hardly any"),
    ],
)
def test_mistakes_get_a_message_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    code, out, err = run(capsys, *arguments)
    assert code == 2
    assert out == ""
    assert words in err
    assert "Traceback" not in err


def test_time_limit_exits_with_3(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    code, out, err = run(capsys, "certify", EXAMPLE, "--set", "accounting.time_limit=1e-3", "-o", str(target))
    assert (code, out) == (3, "")
    assert "time limit" in err
    assert not target.exists()


def test_no_arguments_show_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys)
    assert code == 2
    assert "certify" in out + err


SLOW = doc(
    "name=slow adjacency=add-remove group_size=60 delta=1e-6 sampling_probability=0.01",
    "iterations=100_000_000 sampler=poisson multiplier=30.0 tolerance=1e-8",
)


def test_ctrl_c_stops_and_leaves_nothing(tmp_path: Path) -> None:
    document, target = tmp_path / "slow.yaml", tmp_path / "slow.cert.json"
    document.write_text(json.dumps(SLOW), encoding="utf-8")
    command = [sys.executable, "-m", "pyaccount", "certify", str(document), "-o", str(target)]
    out, err, code = interrupted(command)
    assert code == 130
    assert out == ""
    assert "interrupted" in err
    assert "Traceback" not in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["slow.yaml"]


def test_ctrl_c_within_the_code_that_a_library_makes_has_the_same_exit_code(tmp_path: Path) -> None:
    """As when a library is imported that writes classes by `exec`."""
    (tmp_path / "interrupted.py").write_text(
        "import sys; from pyaccount import cli; from pyaccount.document import loading\n"
        "loading.load_any = lambda *_, **__: exec('raise KeyboardInterrupt')\n"
        "sys.argv = ['pyaccount', 'certify', 'x.yaml']; cli.main()",
        encoding="utf-8",
    )
    program = [sys.executable, "-m", "interrupted"]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (130, ""), done.stderr


def test_python_runs_the_command_where_it_is_not_on_the_path() -> None:
    command = [sys.executable, "-m", "pyaccount", "validate", EXAMPLE]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert EXAMPLE in done.stdout


def test_a_closed_pipe_is_no_error() -> None:
    command = f"{sys.executable} -m pyaccount certify {EXAMPLE} | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True, env={**os.environ})
    assert "Traceback" not in done.stderr
    assert done.stderr == ""

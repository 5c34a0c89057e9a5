"""The command as people use it: output, exit codes, files, mistakes, interruption."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from gate_tools import interrupted
from places import EXAMPLES, ROOT
from plain_documents import doc, document
from snapshots import Run, Snapshot

import pyaccount
from pyaccount import cli

EXAMPLE = str(EXAMPLES / "check-a-claim.yaml")


def test_certify_prints_a_certificate(run: Run) -> None:
    code, out, err = run("certify", EXAMPLE)
    assert (code, err) == (0, "")
    for words in ("HOLDS", "at most 2.955", "What must be true of the training run"):
        assert words in out


def test_a_claim_that_fails_exits_with_1(run: Run) -> None:
    code, out, _ = run("certify", EXAMPLE, "--set", "privacy.epsilon=2")
    assert code == 1
    assert "DOES NOT HOLD" in out
    assert "is not (2, 1e-06)" in out or "is not (2, 1e-6)" in out


def test_quiet_prints_nothing_unless_a_format_is_asked_for(run: Run) -> None:
    assert run("certify", EXAMPLE, "--quiet") == (0, "", "")
    code, out, err = run("certify", EXAMPLE, "--quiet", "--format", "json")
    assert (code, err) == (0, "")
    assert json.loads(out)["holds"] is True


def test_overrides_seed_and_threads(run: Run) -> None:
    arguments = ("certify", EXAMPLE, "--format", "json", "--set", "privacy.epsilon=solve", "--seed", "7")
    outputs = []
    for threads in ("1", "2"):
        code, out, _ = run(*arguments, "--threads", threads)
        assert code == 0
        found = json.loads(out)
        assert found["document"]["accounting"]["seed"] == 7
        outputs.append({key: value for key, value in found.items() if key not in ("created", "content_sha256")})
    assert outputs[0] == outputs[1]


def test_plan_runs_nothing_and_says_what_would_run(run: Run, snapshot: Snapshot) -> None:
    snapshot(run("plan", EXAMPLES / "pretrain-and-finetune.yaml"))


def test_validate_reports_every_error_of_every_document(tmp_path: Path, run: Run, snapshot: Snapshot) -> None:
    bad = tmp_path / "bad.yaml"
    text = Path(EXAMPLE).read_text(encoding="utf-8")
    bad.write_text(text.replace("delta: 1e-6", "delta: 1.5").replace("iterations:", "itertions:"), encoding="utf-8")
    snapshot(run("validate", EXAMPLE, bad))


@pytest.mark.parametrize("which", ["mechanism", "certificate"])
def test_schema_prints_the_committed_schema(which: str, run: Run) -> None:
    code, out, _ = run("schema", which)
    assert code == 0
    assert out == (ROOT / "schemas" / f"{which}.v1.schema.json").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "arguments",
    [
        ["certify"],
        ["certfy", "x"],
        ["certify", EXAMPLE, "--threads", "-1"],
        ["certify", "nowhere.yaml"],
        ["certify", "."],
        ["certify", EXAMPLE, "--set", "privacy.epsilon"],
        ["certify", EXAMPLE, "--set", "privacy.epsilom=4"],
        ["certify", EXAMPLE, "-o", "/nowhere/x.json"],
        ["certify", EXAMPLE, "--set", "privacy.epsilon=solve", "--set", "privacy.delta=solve"],
        ["certify", EXAMPLE, "--set", "noise.multiplier=solve", "--set", "privacy.delta=0.9999999999"],
    ],
)
def test_mistakes_get_a_message_and_exit_code_2(arguments: list[str], run: Run, snapshot: Snapshot) -> None:
    snapshot(run(*arguments))


def test_no_arguments_show_the_help(run: Run, snapshot: Snapshot) -> None:
    snapshot(run())


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


# ---- What people type by mistake, each with the answer that leads on


LAPLACE = {"kind": "laplace", "scale": 20}


def without_noise() -> dict[str, Any]:
    return {key: value for key, value in document().items() if key != "noise"}


def mechanism(kind: str) -> dict[str, Any]:
    privacy = {"adjacency": "add-remove", "epsilon": "solve", "delta": 1e-5}
    return {"pyaccount": 1, "name": "one", "privacy": privacy, "mechanism": {"kind": kind}}


DOCUMENTS = [
    document(noise=LAPLACE, sampler={"kind": "none"}),
    document(noise=LAPLACE, sampler={"kind": "none"}),
    document(noise={"std": 20}),
    document(privacy__epsilon="8 nats"),
    without_noise(),
    document(privacy__unit="user"),
    document(privacy__unit="user"),
    document(privacy__delta=0),
    mechanism("thresholding"),
    mechanism("partition-selection"),
]


@pytest.mark.parametrize("source", DOCUMENTS)
def test_a_document_with_a_mistake(source: dict[str, Any], snapshot: Snapshot) -> None:
    snapshot.raised(pyaccount.certify, source)


COMMANDS = [
    ("certify run.yaml --json", "Write --format json"),
    ("sweep run.yaml --vary noise.multiplier", "List the values under `vary:`"),
    ("export cert.json", "Choose from: cyclonedx, spdx, registry"),
    ("report cert.json --record nothing.jsonl", "--record nothing.jsonl: there is no such file"),
    ("verify cert.json --record nothing.jsonl", "--record nothing.jsonl: there is no such file"),
    ("card README.md cert.json", "are the arguments swapped? pyaccount card cert.json README.md"),
    ("check cert.json --policy policy.yaml", "did you mean limits.max_epsilon?"),
]


@pytest.mark.parametrize(("command", "answer"), COMMANDS)
def test_a_command_with_a_mistake(
    command: str, answer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    source = document(privacy__epsilon="solve")
    Path("run.yaml").write_text(yaml.safe_dump(source))
    pyaccount.certify(source).save("cert.json")
    Path("README.md").write_text("# A model\n")
    Path("policy.yaml").write_text(json.dumps({"pyaccount": 1, "kind": "policy", "name": "p", "max_epsilon": 8}))
    assert cli.run(command.split()) == 2
    said = capsys.readouterr()
    assert answer in " ".join(said.err.split())
    assert "\t" not in said.err
    assert said.out == ""


def test_an_accountant_says_which_call_to_use(snapshot: Snapshot) -> None:
    accountant = pyaccount.Accountant(adjacency="add-remove", delta=1e-5, epsilon=3)
    snapshot.raised(lambda: accountant.get_epsilon(1e-5))
    with snapshot.raises(TypeError):
        pyaccount.Accountant(adjacency="add-remove", delta=1e-5, epsilon=3, adaptive=True).step(
            mechanism={"kind": "laplace", "scale": 1}
        )
    with snapshot.raises(AttributeError):
        _ = accountant.epsilons
